//! Requests for less than a whole response that are sent for all of it, so that it can be stored:
//! those of clients who have it already, those for all bytes from the first on, and those for any part of a stale
//! response.

use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::{HeaderMap, Method, Response, StatusCode, request};

use super::Body;
use super::range::{self, Part};
use crate::semantics::Stored;
use crate::semantics::validation::{Answer, answer};

/// The largest number of bytes before a requested part for which its client waits, if the whole response is on its way.
const NEAR_BYTES: u64 = 1 << 20;

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

/// Whether a GET asks for a part so far from the begin of a whole response on its way that a request for the part alone
/// is answered sooner, by an origin that says that it has parts.
pub(super) fn asks_for_far_part(
    parts: &request::Parts,
    whole: &Stored,
    length: Option<u64>,
) -> bool {
    let units = whole.headers.get(ACCEPT_RANGES);
    let has_parts = units.is_some_and(|units| units.as_bytes().eq_ignore_ascii_case(b"bytes"));
    if !has_parts || parts.method != Method::GET {
        return false;
    }
    let part = length.map(|length| range::part(&parts.headers, whole, length));
    matches!(part, Some(Part::Bytes(bytes)) if bytes.start > NEAR_BYTES)
}

/// Removes from a request the fields by which it asks for less than the whole response.
pub(super) fn widen(headers: &mut HeaderMap) {
    for name in OF_LESS {
        headers.remove(name);
    }
}

/// Reduces a whole response to the requested one: a 304 if the client has the response already, or
/// a 206 with the bytes that it asked for.
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

/// Turns a whole response into a 206 with the bytes that the client asked for, if it asked for a range.
pub(super) fn narrow_to_range(
    parts: &request::Parts,
    whole: &Stored,
    length: Option<u64>,
    response: &mut Response<Body>,
) {
    // An empty response has no range, and is all that there is.
    let Some(length) = length.filter(|length| *length > 0) else { return };
    if response.status() != StatusCode::OK {
        return;
    }
    let part = range::part(&parts.headers, whole, length);
    if let Part::Bytes(bytes) = &part
        && *bytes != (0..length)
    {
        let body = std::mem::take(response.body_mut());
        *response.body_mut() = range::slice(body, bytes.clone());
    }
    range::narrow_head(&part, length, response);
}
