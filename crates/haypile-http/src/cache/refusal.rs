//! The reasons why a response is not stored, and what they mean for later requests.

use std::time::SystemTime;

use http::{request, response};

use super::HttpCache;
use super::origin::{CloseDelimited, FollowedRedirect};
use crate::semantics::{Lifetime, NotStored};
use crate::storage::{MOST_GROUPS, OutcomeKind};

/// The reason why a response is not stored.
pub(super) struct Refusal {
    pub(super) reason: String,
    /// The outcome of such requests, as far as this one tells.
    pub(super) outcome: Option<OutcomeKind>,
    /// Whether the response takes the place of a stored one to the same request.
    pub(super) ends_stored: bool,
}

impl Refusal {
    /// Returns the refusal of a response because of what all responses to such requests are.
    pub(super) fn of_all(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), outcome: Some(OutcomeKind::Alone), ends_stored: true }
    }

    /// Returns the refusal of a response because of its own request, or of this moment.
    pub(super) fn of_request(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), outcome: None, ends_stored: false }
    }
}

impl HttpCache {
    /// Returns why a response may not be stored; `None` if it may be.
    pub(super) fn refusal(
        &self,
        parts: &request::Parts,
        response: &response::Parts,
        length: Option<u64>,
        received: SystemTime,
    ) -> Option<Refusal> {
        let rules = &self.inner.rules;
        if response.extensions.get::<FollowedRedirect>().is_some() {
            return Some(Refusal::of_request("not stored: the client followed a redirect"));
        }
        if let Err(reason) = rules.may_store(parts, response) {
            return Some(Refusal {
                reason: reason.to_string(),
                outcome: match reason {
                    NotStored::Personal => Some(OutcomeKind::Personal),
                    reason => (!reason.is_of_request()).then_some(OutcomeKind::Alone),
                },
                ends_stored: reason.ends_stored(rules.may_be_personal(&parts.headers)),
            });
        }
        if rules.groups(&response.headers).len() > MOST_GROUPS {
            return Some(Refusal::of_all(format!(
                "not stored: the response is in more than {MOST_GROUPS} groups"
            )));
        }
        if !rules.is_useful(response, received) {
            let lifetime = rules.lifetime(response.status, &response.headers, received);
            return Some(Refusal::of_all(match lifetime {
                Lifetime::Unknown => {
                    "not stored: the response has neither a lifetime (max-age, Expires) nor a validator"
                }
                _ => "not stored: the response is stale at once, and has no validator",
            }));
        }
        let is_marked = response.extensions.get::<CloseDelimited>().is_none();
        if !is_marked && !rules.stores_close_delimited {
            return Some(Refusal::of_all("not stored: the end of the response is not marked"));
        }
        let largest = self.inner.largest_body;
        let is_too_large = length.is_some_and(|length| length > largest);
        is_too_large.then(|| {
            Refusal::of_all(format!("not stored: the response is larger than {largest} bytes"))
        })
    }
}
