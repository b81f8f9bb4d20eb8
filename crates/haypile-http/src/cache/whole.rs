//! Requests for less than a whole response that are sent for all of it, so that it can be stored:
//! those of clients who have it already, and those for all bytes from the first on.

use http::header::{
    CONTENT_LENGTH, CONTENT_RANGE, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::{HeaderMap, Response, StatusCode, request};

use super::Body;
use super::range::{self, Part};
use crate::semantics::Stored;
use crate::semantics::validation::{Answer, answer};

/// The fields by which a client asks for less.
const OF_LESS: [http::HeaderName; 4] = [RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE];

/// Whether a request is for all bytes of a response from the first on (`Range: bytes=0-`), as media
/// players send it.
pub(super) fn asks_from_first_byte(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(RANGE).iter();
    let is_from_first = |line: &HeaderValue| line.as_bytes().eq_ignore_ascii_case(b"bytes=0-");
    lines.next().is_some_and(is_from_first) && lines.next().is_none()
}

/// Whether a request asks for less than the whole response, in a way that the whole response can
/// answer.
pub(super) fn asks_for_less(headers: &HeaderMap) -> bool {
    let has_condition =
        headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE);
    if headers.contains_key(RANGE) { asks_from_first_byte(headers) } else { has_condition }
}

/// Removes from a request the fields by which it asks for less than the whole response.
pub(super) fn widen(headers: &mut HeaderMap) {
    for name in OF_LESS {
        headers.remove(name);
    }
}

/// Reduces a whole response to the requested one: a 304 if the client has the response already, or
/// a 206 with the bytes from the first on.
pub(super) fn narrow(
    parts: &request::Parts,
    whole: &Stored,
    length: Option<u64>,
    response: &mut Response<Body>,
) {
    if answer(&parts.headers, whole) == Answer::NotModified {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::empty();
    }
    narrow_to_range(parts, whole, length, response);
}

/// Turns a whole response into a 206 with all its bytes, if the client asked for the bytes from the
/// first on.
pub(super) fn narrow_to_range(
    parts: &request::Parts,
    whole: &Stored,
    length: Option<u64>,
    response: &mut Response<Body>,
) {
    let Some(length) = length else { return };
    if response.status() != StatusCode::OK || !asks_from_first_byte(&parts.headers) {
        return;
    }
    if let Part::Bytes(all) = range::part(&parts.headers, whole, length) {
        debug_assert_eq!(all, 0..length, "the body is that of the whole");
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let text = format!("bytes 0-{}/{length}", length - 1);
        let range = HeaderValue::try_from(text).expect("digits");
        response.headers_mut().insert(CONTENT_RANGE, range);
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
}
