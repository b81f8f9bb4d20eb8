//! Logs of Amazon's load balancers: classic (ELB) and for applications (ALB), whose lines begin with a type:
//!
//! `[https] time balancer client:port target:port t t t status status received sent "GET https://host:443/ HTTP/1.1" ...`
//!
//! The key is the URL. The size is what the balancer sent, headers included. A miss costs the time that the target took to answer.

use super::super::bad::Bad;
use super::super::options::TimeUnit;
use super::quoted::Columns;
use super::{Exchange, Line, Lines, Why, cost_ns, request_line, size, status, time};

#[derive(Debug)]
pub(super) struct Elb;

/// Columns between the time and the time that the target took: the balancer's name, two addresses, and the time before that.
const BEFORE_COST: usize = 4;

impl Lines for Elb {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        if line.starts_with(b"#") {
            return Ok(Line::Nothing);
        }
        let shape = || Bad::new("[type] time balancer client target ... \"request\"", line);
        let mut columns = Columns(line);
        let mut next = || columns.next().ok_or_else(shape);
        let mut first = next()?;
        if first.first().is_some_and(u8::is_ascii_lowercase) {
            first = next()?;
        }
        let time_us = time::any(first).filter(|_| first.contains(&b'T')).ok_or_else(shape)?;
        for _ in 0..BEFORE_COST {
            next()?;
        }
        let (of_target, _response_time) = (next()?, next()?);
        let (status_text, _of_target, _received, sent, request) =
            (next()?, next()?, next()?, next()?, next()?);
        if status_text == b"-" {
            return Ok(Line::LeftOut(Why::NotHttp));
        }
        let (status, size_bytes) = (status(status_text)?, size(sent)?);
        let Some((method, target)) = request_line(request) else {
            return Ok(Line::LeftOut(Why::NotHttp));
        };
        Ok(Line::Exchange(Exchange {
            cost_ns: cost_ns(of_target, TimeUnit::Seconds),
            ..Exchange::new(method, target, status, size_bytes, time_us)
        }))
    }

    fn counts_headers(&self) -> bool {
        true
    }
}
