//! The heads of stored responses.

use std::time::{Duration, SystemTime};

use http::header::{AGE, DATE};
use http::{HeaderMap, StatusCode, request, response};

use super::list::members;
use super::time::{LONGEST, date, seconds, since};
use super::vary::{Selection, Variant};

/// The head of a stored response, with the times at which it was requested and received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The status code of the stored response.
    pub status: StatusCode,
    /// The header fields of the stored response.
    pub headers: HeaderMap,
    /// The variant of the URL: the requests that the stored response answers, by `Vary`; `None` if it answers only its
    /// own.
    pub variant: Option<Variant>,
    /// The time at which the request for the stored response was sent.
    pub requested: SystemTime,
    /// The time at which the stored response was received.
    pub received: SystemTime,
}

impl Stored {
    /// Creates the head of a stored response from a request and its response, with the times at which they were sent
    /// and received.
    pub fn new(
        request: &request::Parts,
        response: response::Parts,
        requested: SystemTime,
        received: SystemTime,
    ) -> Self {
        Self::selected(Selection::default(), request, response, requested, received)
    }

    /// Creates the head of a stored response as [`new`](Self::new) does, for a cache that ignores some parts of request
    /// fields (such as cookies) in `Vary`.
    pub(crate) fn selected(
        selection: Selection<'_>,
        request: &request::Parts,
        response: response::Parts,
        requested: SystemTime,
        received: SystemTime,
    ) -> Self {
        let variant = Variant::selected(selection, &request.headers, &response.headers);
        let (status, headers) = (response.status, response.headers);
        Self { status, headers, variant, requested, received }
    }

    /// Returns the time since the response was created or validated at its origin (RFC 9111,
    /// section 4.2.3). Wrong clocks never make the age negative.
    pub fn age(&self, now: SystemTime) -> Duration {
        self.age_at_receipt().saturating_add(since(now, self.received)).min(LONGEST)
    }

    /// Returns the age that the stored response already had when it was received, by its `Age` and `Date` fields.
    pub(super) fn age_at_receipt(&self) -> Duration {
        let sent = date(&self.headers, &DATE).ok().flatten();
        let apparent = sent.map_or(Duration::ZERO, |sent| since(self.received, sent));
        // The first member of a list counts, and an invalid one is ignored (section 5.1).
        let stated = members(&self.headers, &AGE).next().and_then(seconds).unwrap_or_default();
        let corrected = stated.saturating_add(since(self.received, self.requested));
        apparent.max(corrected)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::{Request, Response};

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn age(ages: &[&str], sent: Option<u64>, now: u64) -> u64 {
        let mut response = Response::builder();
        for age in ages {
            response = response.header(AGE, *age);
        }
        if let Some(sent) = sent {
            response = response.header(DATE, httpdate::fmt_http_date(at(sent)));
        }
        let (response, ()) = response.body(()).expect("a response").into_parts();
        let (request, ()) = Request::get("/").body(()).expect("a request").into_parts();
        // The response took two seconds.
        Stored::new(&request, response, at(998), at(1_000)).age(at(now)).as_secs()
    }

    #[test]
    fn ages() {
        for (ages, sent, now, expected) in [
            (&[][..], Some(1_000), 1_000, 2),
            (&[], Some(1_000), 1_005, 7),
            (&[], None, 1_005, 7),
            (&["30"], Some(1_000), 1_005, 37),
            (&[], Some(900), 1_005, 105),
            (&["30"], Some(900), 1_005, 105),
            (&["300"], Some(900), 1_005, 307),
            // The origin's clock is ahead; the own one has stepped back.
            (&[], Some(5_000), 1_005, 7),
            (&["30"], Some(1_000), 400, 32),
            (&["abc"], Some(1_000), 1_000, 2),
            (&["-7200"], Some(1_000), 1_000, 2),
            (&["7200.0"], Some(1_000), 1_000, 2),
            (&["7200;foo=bar"], Some(1_000), 1_000, 2),
            (&["7200, 0"], Some(1_000), 1_000, 7_202),
            (&["0, 7200"], Some(1_000), 1_000, 2),
            (&["7200", "0"], Some(1_000), 1_000, 7_202),
            (&["0", "7200"], Some(1_000), 1_000, 2),
            (&["2147483647"], Some(1_000), 1_000, 1 << 31),
            (&["18446744073709551615"], Some(1_000), 1_000, 1 << 31),
        ] {
            assert_eq!(age(ages, sent, now), expected, "{ages:?}, sent at {sent:?}, now {now}");
        }
    }
}
