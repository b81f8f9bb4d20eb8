//! The statements of a stored response that are the same for every request.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::SET_COOKIE;

use super::freshness::Lifetime;
use super::rules::{Control, Rules};
use super::stored::Stored;
use super::time::{LONGEST, since};

/// The parsed directives, lifetime and age of a stored response under the rules of one cache. They follow from the head
/// of the response, and take longer to read there than all else that decides about a hit.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(super) control: Control,
    pub(super) lifetime: Lifetime,
    pub(super) sets_cookie: bool,
    age_at_receipt: Duration,
    received: SystemTime,
}

impl Terms {
    /// Parses the directives, the lifetime and the age of a stored response from its head.
    pub(crate) fn of(rules: &Rules, stored: &Stored) -> Self {
        let control = rules.control(&stored.headers);
        let received = stored.received;
        let lifetime = rules.lifetime_under(&control, stored.status, &stored.headers, received);
        let sets_cookie = stored.headers.contains_key(SET_COOKIE);
        let age_at_receipt = stored.age_at_receipt();
        Self { control, lifetime, sets_cookie, age_at_receipt, received }
    }

    /// Returns the age of the stored response, which equals that of [`Stored::age`].
    pub(super) fn age(&self, now: SystemTime) -> Duration {
        self.age_at_receipt.saturating_add(since(now, self.received)).min(LONGEST)
    }
}

/// The parsed directives, lifetime and age of a stored response, if they have been parsed. They follow from its head,
/// so that responses with the same head are equal whether they have been or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownTerms(Option<Arc<Terms>>);

impl KnownTerms {
    /// Parses the directives, the lifetime and the age of a stored response, to be kept with it.
    pub(crate) fn of(rules: &Rules, stored: &Stored) -> Self {
        Self(Some(Arc::new(Terms::of(rules, stored))))
    }

    /// Returns the directives, the lifetime and the age of a stored response, which are parsed if they have not been
    /// yet.
    pub(crate) fn or_read(&self, rules: &Rules, stored: &Stored) -> Arc<Terms> {
        self.0.clone().unwrap_or_else(|| Arc::new(Terms::of(rules, stored)))
    }
}

impl PartialEq for KnownTerms {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for KnownTerms {}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
    use proptest::prelude::*;

    use super::*;
    use crate::semantics::Variant;

    proptest! {
        /// The age by the terms is that by the head, whatever either says.
        #[test]
        fn ages_are_the_same(
            (age, date) in ("[0-9, x]{0,12}", 0_u64..2_000_000_000),
            (requested, took, later) in (0_u64..2_000_000_000, 0_u64..100, 0_u64..4_000_000_000),
        ) {
            let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let value = |text: &str| HeaderValue::from_str(text).expect("a value");
            let headers: HeaderMap = [("age", age), ("date", httpdate::fmt_http_date(at(date)))]
                .map(|(name, text)| (HeaderName::from_static(name), value(&text)))
                .into_iter()
                .collect();
            let (requested, received) = (at(requested), at(requested + took));
            let (status, variant) = (StatusCode::OK, Some(Variant::default()));
            let stored = Stored { status, headers, variant, requested, received };
            let terms = Terms::of(&Rules::shared(), &stored);
            prop_assert_eq!(terms.age(at(later)), stored.age(at(later)));
        }
    }
}
