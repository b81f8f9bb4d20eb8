//! Responses that are a part of another: RFC 9110, sections 14.4 and 15.3.7.

use std::ops::Range;
use std::time::Duration;

use http::header::{
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderValue, LAST_MODIFIED,
};
use http::{HeaderMap, StatusCode, response};

use super::time::{date, since};

/// The position of a partial response's (206) bytes in the whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartPlace {
    /// The range of bytes of the whole body that the partial response has.
    pub range: Range<u64>,
    /// The length of the whole body, of which the response has a part, in bytes.
    pub whole: u64,
}

/// Returns the position of a partial response (206) in the whole body; `None` unless it has exactly
/// one part of a body of known length.
pub fn place(status: StatusCode, headers: &HeaderMap) -> Option<PartPlace> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let is_several = kinds.any(|kind| {
        let kind = kind.as_bytes().trim_ascii_start();
        kind.get(..20).is_some_and(|kind| kind.eq_ignore_ascii_case(b"multipart/byteranges"))
    });
    let mut lines = headers.get_all(CONTENT_RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    if status != StatusCode::PARTIAL_CONTENT || is_several {
        return None;
    }
    let (unit, rest) = line.to_str().ok()?.trim().split_once(' ')?;
    let (range, whole) = rest.trim_start().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, whole) = (number(first)?, number(last)?, number(whole)?);
    let is_sound = unit.eq_ignore_ascii_case("bytes") && first <= last && last < whole;
    is_sound.then(|| PartPlace { range: first..last + 1, whole })
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// Returns the entity tag of a response, if it is a strong one: only a strong tag proves that two
/// parts are of the same body (RFC 9110, section 8.8.3).
pub fn strong_tag(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(ETAG).iter();
    let (Some(tag), None) = (lines.next(), lines.next()) else { return None };
    let inner = tag.as_bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!inner.contains(&b'"')).then_some(tag)
}

/// Returns the `Last-Modified` of a response, if it is a strong validator: the response was sent at
/// least a second later (RFC 9110, section 8.8.2.2).
pub fn strong_date(headers: &HeaderMap) -> Option<&HeaderValue> {
    let changed = date(headers, &LAST_MODIFIED).ok()??;
    let sent = date(headers, &DATE).ok()??;
    (since(sent, changed) >= Duration::from_secs(1)).then(|| &headers[LAST_MODIFIED])
}

/// Returns the head of the whole response, made from that of a partial response (206). `None` if
/// the part cannot be combined with others (RFC 9111, section 3.4).
pub fn whole_of(part: &response::Parts) -> Option<(response::Parts, PartPlace)> {
    let place = place(part.status, &part.headers)?;
    strong_tag(&part.headers)?;
    let mut whole = part.clone();
    whole.status = StatusCode::OK;
    whole.headers.remove(CONTENT_RANGE);
    whole.headers.remove(CONTENT_LENGTH);
    Some((whole, place))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use proptest::prelude::*;

    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let value = |value: &str| HeaderValue::from_str(value).expect("a value");
        fields.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    #[test]
    fn places() {
        for (line, expected) in [
            ("bytes 0-4/10", Some((0..5, 10))),
            ("Bytes 9-9/10", Some((9..10, 10))),
            ("bytes 0-9/10", Some((0..10, 10))),
            ("bytes 0-10/10", None),
            ("bytes 5-4/10", None),
            ("bytes 0-4/*", None),
            ("bytes */10", None),
            ("bytes 0-4", None),
            ("bytes=0-4/10", None),
            ("bytes +0-4/10", None),
            ("bytes 0-18446744073709551615/18446744073709551615", None),
            ("bytes 0-4/99999999999999999999", None),
            ("chars 0-4/10", None),
            ("", None),
        ] {
            let found = place(StatusCode::PARTIAL_CONTENT, &headers(&[("content-range", line)]));
            assert_eq!(found.map(|place| (place.range, place.whole)), expected, "{line}");
        }
        let one = [("content-range", "bytes 0-4/10")];
        assert_eq!(place(StatusCode::OK, &headers(&one)), None);
        assert_eq!(place(StatusCode::PARTIAL_CONTENT, &headers(&[one[0], one[0]])), None);
        let several = [one[0], ("content-type", "Multipart/ByteRanges; boundary=x")];
        assert_eq!(place(StatusCode::PARTIAL_CONTENT, &headers(&several)), None);
    }

    #[test]
    fn strong_tags() {
        for (tag, is_strong) in [
            ("\"a\"", true),
            ("\"\"", true),
            ("W/\"a\"", false),
            ("a", false),
            ("\"", false),
            ("\"a\", \"b\"", false),
        ] {
            assert_eq!(strong_tag(&headers(&[("etag", tag)])).is_some(), is_strong, "{tag}");
        }
        assert_eq!(strong_tag(&headers(&[("etag", "\"a\""), ("etag", "\"a\"")])), None);
        assert_eq!(strong_tag(&headers(&[])), None);
    }

    #[test]
    fn strong_dates() {
        let changed = ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT");
        for (sent, is_strong) in [
            ("Thu, 01 Jan 2026 00:00:01 GMT", true),
            ("Thu, 01 Jan 2026 00:00:00 GMT", false),
            ("Wed, 31 Dec 2025 23:59:59 GMT", false),
            ("x", false),
        ] {
            let found = headers(&[changed, ("date", sent)]);
            assert_eq!(strong_date(&found).is_some(), is_strong, "{sent}");
        }
        assert_eq!(strong_date(&headers(&[changed])), None);
        assert_eq!(strong_date(&headers(&[("date", changed.1)])), None);
    }

    proptest! {
        #[test]
        fn a_place_is_in_the_whole(line in "(bytes )?[-0-9/* ]{0,16}") {
            let headers = headers(&[("content-range", line.as_str())]);
            if let Some(PartPlace { range, whole }) = place(StatusCode::PARTIAL_CONTENT, &headers) {
                prop_assert!(range.start < range.end && range.end <= whole);
            }
        }
    }
}
