//! Responses made of what is stored.

use std::time::Duration;

use http::header::{AGE, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Response, StatusCode, request};

use super::range::{self, Part};
use super::rescue::Rescue;
use super::stored_body::stored_body;
use super::{Body, HttpCache};
use crate::semantics::validation::{Answer, answer};
use crate::semantics::{OWN_LIFETIME, Stored};
use crate::storage::{StoredBody, StoredResponse};

impl HttpCache {
    /// Builds the response to a request from a stored one; `None` if a part of it was evicted, or
    /// never stored. Parts that are evicted later are fetched by `rescue`. `age` is that of the
    /// stored response.
    pub(super) async fn serve(
        &self,
        parts: &request::Parts,
        stored: StoredResponse,
        age: Duration,
        rescue: Option<Rescue>,
    ) -> Option<Response<Body>> {
        let length = stored.body.bytes();
        let part = asked_part(parts, &stored);
        let range = match &part {
            Part::Bytes(range) => range.clone(),
            Part::Whole => 0..length,
            Part::NotSatisfiable => 0..0,
        };
        if !stored.body.has(&range) {
            return None;
        }
        let body = match stored.body {
            StoredBody::Inline(body) => {
                let place = |at: u64| usize::try_from(at).expect("it is in memory");
                Body::full(body.slice(place(range.start)..place(range.end)))
            }
            body if parts.method == Method::GET => {
                let storage = &self.inner.storage;
                // A body that breaks off is worse than one that comes later.
                if !storage.has_all(&body, range.clone()).await {
                    return None;
                }
                stored_body(storage.clone(), body, range, rescue)
            }
            _ => Body::empty(),
        };
        let mut response = Self::response(parts, stored.head, age, Some(length), body);
        if response.status() != StatusCode::OK {
            return Some(response);
        }
        range::narrow_head(&part, length, &mut response);
        Some(response)
    }

    /// Whether the range of body bytes that a request asks for is stored, according to the stored
    /// response's entry.
    pub(super) fn has_asked_part(parts: &request::Parts, stored: &StoredResponse) -> bool {
        match asked_part(parts, stored) {
            Part::Bytes(range) => stored.body.has(&range),
            Part::Whole => stored.body.has(&(0..stored.body.bytes())),
            Part::NotSatisfiable => true,
        }
    }

    /// Builds the response to a request from a stored head and a body: a 304 if the request's
    /// conditions demand it, and without a body for HEAD.
    pub(super) fn response(
        parts: &request::Parts,
        head: Stored,
        age: Duration,
        length: Option<u64>,
        body: Body,
    ) -> Response<Body> {
        let mut response = Response::new(body);
        let answer = answer(&parts.headers, &head);
        *response.status_mut() = head.status;
        let headers = response.headers_mut();
        *headers = head.headers;
        headers.remove(TRANSFER_ENCODING);
        headers.remove(OWN_LIFETIME);
        headers.insert(AGE, decimal(itoa::Buffer::new().format(age.as_secs())));
        if answer == Answer::NotModified {
            headers.remove(CONTENT_LENGTH);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = Body::empty();
            return response;
        }
        if let Some(length) = length.filter(|_| head.status != StatusCode::NO_CONTENT) {
            let mut buffer = itoa::Buffer::new();
            let length = buffer.format(length);
            // Nearly all stored responses say so themselves.
            let mut stored = headers.get_all(CONTENT_LENGTH).iter();
            let is_said = stored.next().is_some_and(|stored| stored == length);
            if !is_said || stored.next().is_some() {
                headers.insert(CONTENT_LENGTH, decimal(length));
            }
        }
        if parts.method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        response
    }
}

/// Returns the text of a number as the value of a field, in one allocation, where `HeaderValue::from` needs two.
fn decimal(digits: &str) -> HeaderValue {
    HeaderValue::from_str(digits).expect("digits are visible characters")
}

/// Returns the part of a stored response that a request asks for.
fn asked_part(parts: &request::Parts, stored: &StoredResponse) -> Part {
    match parts.method {
        Method::GET => range::part(&parts.headers, &stored.head, stored.body.bytes()),
        _ => Part::Whole,
    }
}
