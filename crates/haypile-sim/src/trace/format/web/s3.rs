//! Access logs of Amazon S3:
//!
//! `owner bucket [time] client requester id operation key "request" status error sent size ...`
//!
//! The key is bucket and key. The size is that of the object, which is known even where a part was sent. Operations on
//! buckets are left out.

use super::super::bad::Bad;
use super::quoted::Columns;
use super::time::CommonLog;
use super::{Exchange, Line, Lines, Why, request_line, size, status};

#[derive(Debug, Default)]
pub(super) struct S3 {
    time: CommonLog,
    target: Vec<u8>,
}

impl Lines for S3 {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        let shape = || Bad::new("owner bucket [time] client requester id operation key ...", line);
        let mut columns = Columns(line);
        let mut next = || columns.next().ok_or_else(shape);
        let (_owner, bucket, time, _client) = (next()?, next()?, next()?, next()?);
        let (_requester, _id, operation, key) = (next()?, next()?, next()?, next()?);
        let (request, status_text, _error, _sent, size_text) =
            (next()?, next()?, next()?, next()?, next()?);
        // REST.GET.OBJECT, WEBSITE.GET.OBJECT, BATCH.DELETE.OBJECT
        if memchr::memchr_iter(b'.', operation).count() < 2 {
            return Err(shape());
        }
        let time_us = self.time.time_us(time)?;
        if key == b"-" || !operation.ends_with(b".OBJECT") || status_text == b"-" {
            return Ok(Line::LeftOut(Why::NoValue));
        }
        let (status, size_bytes) = (status(status_text)?, size(size_text)?);
        let Some((method, _)) = request_line(request) else {
            return Ok(Line::LeftOut(Why::NotHttp));
        };
        self.target.clear();
        for part in [bucket, b"/", key] {
            self.target.extend(part);
        }
        let target = &*self.target;
        Ok(Line::Exchange(Exchange::new(method, target, status, size_bytes, time_us)))
    }
}
