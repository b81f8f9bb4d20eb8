//! The outcome of the last request for a target, where its response was of no use to others.
//!
//! The entry of a target has it, so that all processes that share the store know it.

use std::time::{Duration, SystemTime};

/// For how long the first outcome of a kind counts. Each further one counts twice as long.
const FIRST_LIFETIME: Duration = Duration::from_secs(1);
/// A page that becomes public is waited for again within this time.
const LONGEST_ALONE: Duration = Duration::from_mins(2);
/// An origin that is well again is found so within this time.
const LONGEST_FAILED: Duration = Duration::from_secs(8);

/// For how long a failure is more than nothing after it counts: while it is tried again, which takes as long
/// as the origin is waited for.
const FAILED_SINCE: Duration = Duration::from_mins(2);

/// The outcome of the last request for a URL, if no other request can use its response: whether the origin failed,
/// when, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) kind: OutcomeKind,
    /// The time at which the outcome of the request was known.
    pub(crate) since: SystemTime,
    /// The time for which the outcome is valid, from `since` on.
    pub(crate) lifetime: Duration,
    /// The time that the origin took to answer the request.
    pub(crate) took: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutcomeKind {
    /// No other request could use the response.
    Alone,
    /// No other request could use the response because its own may have been of one user: it had a cookie or credentials.
    Personal,
    /// The origin failed.
    Failed,
}

impl Outcome {
    /// Returns the outcome of a request to record after the previous one for its URL; `None` if the recorded one is
    /// still accurate enough, so that nothing is written.
    pub(crate) fn after(
        previous: Option<Self>,
        kind: OutcomeKind,
        now: SystemTime,
        took: Duration,
    ) -> Option<Self> {
        let same = previous.filter(|previous| previous.kind == kind);
        if same.is_some_and(|same| same.age(now) < same.lifetime / 2) {
            return None;
        }
        let longest = match kind {
            OutcomeKind::Alone | OutcomeKind::Personal => LONGEST_ALONE,
            OutcomeKind::Failed => LONGEST_FAILED,
        };
        let lifetime = same.map_or(FIRST_LIFETIME, |same| (same.lifetime * 2).min(longest));
        Some(Self { kind, since: now, lifetime, took })
    }

    /// Whether the last request to the origin failed, and no later one has succeeded.
    pub(crate) fn is_failing(&self, now: SystemTime) -> bool {
        self.kind == OutcomeKind::Failed && self.age(now) < self.lifetime + FAILED_SINCE
    }

    /// Whether no other request can use the responses to this URL, as far as is known.
    pub(crate) fn is_alone(&self, now: SystemTime) -> bool {
        self.kind == OutcomeKind::Alone && self.counts(now)
    }

    /// Whether no other request can use the responses to requests of users, as far as is known.
    pub(crate) fn is_personal(&self, now: SystemTime) -> bool {
        self.kind == OutcomeKind::Personal && self.counts(now)
    }

    /// Whether the origin failed so recently that no request is sent to it again.
    pub(crate) fn spares_origin(&self, now: SystemTime) -> bool {
        self.kind == OutcomeKind::Failed && self.counts(now)
    }

    /// Whether the outcome still says something of the next request.
    fn counts(&self, now: SystemTime) -> bool {
        self.age(now) < self.lifetime
    }

    /// Returns the time since it came. A clock that was set back makes it old.
    fn age(&self, now: SystemTime) -> Duration {
        now.duration_since(self.since).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(milliseconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(milliseconds)
    }

    #[test]
    fn each_outcome_of_a_kind_counts_twice_as_long() {
        for (kind, longest) in [(OutcomeKind::Alone, 120), (OutcomeKind::Failed, 8)] {
            let (mut last, mut now, mut lifetimes) = (None, UNIX_EPOCH, Vec::new());
            for _ in 0..9 {
                let next = Outcome::after(last, kind, now, Duration::ZERO).expect("it is due");
                lifetimes.push(next.lifetime.as_secs());
                now += next.lifetime;
                last = Some(next);
            }
            let expected: Vec<u64> = (0..9).map(|turn| (1 << turn).min(longest)).collect();
            assert_eq!(lifetimes, expected, "{kind:?}");
        }
    }

    #[test]
    fn it_is_written_again_once_half_of_its_time_is_over_or_another_follows() {
        let took = Duration::from_millis(7);
        let first = Outcome::after(None, OutcomeKind::Alone, at(1_000), took).expect("it is new");
        let after = |kind, now| Outcome::after(Some(first), kind, at(now), took);
        assert_eq!(after(OutcomeKind::Alone, 1_499), None);
        assert_eq!(after(OutcomeKind::Alone, 1_500).map(|next| next.lifetime.as_secs()), Some(2));
        assert_eq!(after(OutcomeKind::Failed, 1_001).map(|next| next.lifetime.as_secs()), Some(1));
        assert!(first.counts(at(1_999)) && !first.counts(at(2_000)));
        assert!(
            first.is_alone(at(1_999)) && !first.is_alone(at(2_000)) && !first.is_failing(at(1_999))
        );
        let failed = after(OutcomeKind::Failed, 2_000).expect("it is another");
        assert!(failed.spares_origin(at(2_999)) && !failed.spares_origin(at(3_000)));
        assert!(failed.is_failing(at(122_999)) && !failed.is_failing(at(123_000)));
        assert!(!failed.is_alone(at(2_001)));
        // The clock was set back.
        assert!(!first.counts(at(999)));
        assert!(after(OutcomeKind::Alone, 999).is_some());
    }
}
