//! Parts of stored responses: RFC 9110, section 14.

use std::ops::Range;

use bytes::Buf;
use futures_util::stream;
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, IF_RANGE, RANGE,
};
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;

use super::Body;
use crate::semantics::Stored;
use crate::semantics::part::{strong_date, strong_tag};

/// The part (range of bytes) of a stored body that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole body: the request asks for no part, or for one that need not be heeded.
    Whole,
    /// The bytes in this range.
    Bytes(Range<u64>),
    /// A range of bytes that the body does not have.
    NotSatisfiable,
}

/// Returns which part of a stored response body, `length` bytes long, a request asks for; a request
/// for several parts gets the whole body.
pub(crate) fn part(request: &HeaderMap, stored: &Stored, length: u64) -> Part {
    // Most requests have none.
    let mut lines = request.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Part::Whole };
    if stored.status != StatusCode::OK || !condition_holds(request, &stored.headers) {
        return Part::Whole;
    }
    read(line.as_bytes(), length).unwrap_or(Part::Whole)
}

/// Changes the head of a whole response, of `length` bytes, to the head of one part of it (206). If the response has no such
/// part, it becomes a 416 without a body.
pub(super) fn narrow_head(part: &Part, length: u64, response: &mut Response<Body>) {
    let (status, text, bytes) = match part {
        Part::Whole => return,
        Part::Bytes(range) => {
            let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            (StatusCode::PARTIAL_CONTENT, text, range.end - range.start)
        }
        Part::NotSatisfiable => {
            *response.body_mut() = Body::empty();
            for name in [CONTENT_TYPE, CONTENT_ENCODING] {
                response.headers_mut().remove(name);
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, format!("bytes */{length}"), 0)
        }
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_RANGE, HeaderValue::try_from(text).expect("digits"));
    headers.insert(CONTENT_LENGTH, bytes.into());
}

/// Returns the bytes in this range of a body that has them.
pub(super) fn slice(body: Body, range: Range<u64>) -> Body {
    let length = range.end - range.start;
    let frames = stream::unfold((body, 0), move |(mut body, mut at)| {
        let range = range.clone();
        async move {
            while at < range.end {
                let mut piece = match body.next_bytes().await? {
                    Ok(piece) => piece,
                    Err(error) => return Some((Err(error), (Body::empty(), range.end))),
                };
                let begin = at;
                at += piece.len() as u64;
                if at > range.start {
                    let in_piece = |place: u64| {
                        usize::try_from(place.saturating_sub(begin)).unwrap_or(usize::MAX)
                    };
                    piece.truncate(in_piece(range.end).min(piece.len()));
                    piece.advance(in_piece(range.start));
                    return Some((Ok(Frame::data(piece)), (body, at)));
                }
            }
            None
        }
    });
    Body::frames(frames, Some(length))
}

fn read(line: &[u8], length: u64) -> Option<Part> {
    let text = str::from_utf8(line).ok()?.trim();
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let part = match (number(first), number(last)) {
        (Some(first), None) if last.is_empty() => first..length,
        (Some(first), Some(last)) if first <= last => first..length.min(last.saturating_add(1)),
        (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
        _ => return None,
    };
    Some(if part.is_empty() { Part::NotSatisfiable } else { Part::Bytes(part) })
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Whether the response is the one of which the request has a part: RFC 9110, section 13.1.5. Only
/// strong validators tell.
fn condition_holds(request: &HeaderMap, stored: &HeaderMap) -> bool {
    let mut conditions = request.get_all(IF_RANGE).iter();
    match (conditions.next(), conditions.next()) {
        (None, _) => true,
        (Some(condition), None) => {
            let is_tag = condition.as_bytes().starts_with(b"\"");
            let own = if is_tag { strong_tag(stored) } else { strong_date(stored) };
            own == Some(condition)
        }
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let value = |value: &str| HeaderValue::from_str(value).expect("a value");
        fields.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    fn stored() -> Stored {
        let (changed, sent) = ("Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:01 GMT");
        let headers = headers(&[("etag", "\"a\""), ("last-modified", changed), ("date", sent)]);
        let (status, requested, received) = (StatusCode::OK, UNIX_EPOCH, UNIX_EPOCH);
        Stored { status, headers, variant: None, requested, received }
    }

    #[test]
    fn ranges() {
        use Part::{Bytes, NotSatisfiable, Whole};
        for (range, expected) in [
            ("bytes=0-0", Bytes(0..1)),
            ("bytes=2-5", Bytes(2..6)),
            ("Bytes=2-", Bytes(2..10)),
            ("bytes=-3", Bytes(7..10)),
            ("bytes=-30", Bytes(0..10)),
            ("bytes=8-99999999999999999999999", Bytes(8..10)),
            ("bytes=10-", NotSatisfiable),
            ("bytes=10-12", NotSatisfiable),
            ("bytes=-0", NotSatisfiable),
            ("bytes=5-2", Whole),
            ("bytes=1-2,4-5", Whole),
            ("bytes=-", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=", Whole),
            ("bytes", Whole),
            ("chars=1-2", Whole),
            ("", Whole),
        ] {
            assert_eq!(part(&headers(&[("range", range)]), &stored(), 10), expected, "{range}");
        }
        assert_eq!(part(&headers(&[]), &stored(), 10), Whole);
        let twice = headers(&[("range", "bytes=1-2"), ("range", "bytes=1-2")]);
        assert_eq!(part(&twice, &stored(), 10), Whole);
        let other = Stored { status: StatusCode::NOT_FOUND, ..stored() };
        assert_eq!(part(&headers(&[("range", "bytes=1-2")]), &other, 10), Whole);
    }

    #[test]
    fn conditions() {
        for (condition, holds) in [
            ("\"a\"", true),
            ("\"b\"", false),
            ("W/\"a\"", false),
            ("Thu, 01 Jan 2026 00:00:00 GMT", true),
            ("Thu, 01 Jan 2026 00:00:01 GMT", false),
            ("", false),
        ] {
            let request = headers(&[("range", "bytes=1-2"), ("if-range", condition)]);
            let expected = if holds { Part::Bytes(1..3) } else { Part::Whole };
            assert_eq!(part(&request, &stored(), 10), expected, "{condition}");
        }
        let changed = "Thu, 01 Jan 2026 00:00:00 GMT";
        let request = headers(&[("range", "bytes=1-2"), ("if-range", changed)]);
        let mut within_the_second = stored();
        within_the_second.headers.insert("date", HeaderValue::from_static(changed));
        assert_eq!(part(&request, &within_the_second, 10), Part::Whole);
    }

    proptest! {
        #[test]
        fn a_part_is_in_the_body(range in "(bytes=)?[-0-9, ]{0,12}", length in 0_u64..20) {
            let request = headers(&[("range", range.as_str())]);
            if let Part::Bytes(range) = part(&request, &stored(), length) {
                prop_assert!(range.start < range.end && range.end <= length);
            }
        }
    }
}
