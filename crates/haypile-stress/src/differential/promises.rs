//! The promises of the documents, as far as the kinds of caches differ in them.

use std::time::Duration;

use haypile_policy::rules::memory::charge;

use super::time::{Expiry, Moment};
use crate::target::{Kind, Target};

/// TTLs above this may be kept or may mean "never".
const FOREVER: Duration = Duration::from_hours(500 * 365 * 24);

/// memcached ends everything by 2038, because it counts seconds in 31 bits.
const MEMCACHED_LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// The time that a server's clock can differ from ours on one machine.
const SERVER_SLACK: Duration = Duration::from_millis(5);

/// The bytes that compression can add to a value that it does not shorten.
const WRAP_BYTES: u64 = 5;

/// The properties that the URL of the cache under test promises, such as its default TTL, as far as the test checks
/// them.
#[derive(Clone, Debug)]
pub(super) struct Promises {
    kinds: Vec<Kind>,
    pub(super) last: Kind,
    /// The TTL of entries that are written without a TTL.
    pub(super) ttl: Option<Duration>,
    pub(super) is_write_back: bool,
    pub(super) outlives_its_users: bool,
    /// Whether a persistent cache loads the entries of earlier processes while it is already open.
    pub(super) loads_later: bool,
    /// The user's rule for which entries may be missing from the cache, in place of the default for the kind of cache.
    pub(super) retention: Option<Retention>,
}

/// A rule for which entries may be missing from the cache: none, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    /// No entry may be missing, whatever its size.
    KeepsAll,
    /// Any entry may be missing.
    MayForget,
}

impl Promises {
    pub(super) fn of(target: &Target, retention: Option<Retention>) -> Self {
        Self {
            kinds: target.kinds().to_vec(),
            last: target.last_kind(),
            ttl: target.ttl(),
            is_write_back: target.is_write_back(),
            outlives_its_users: target.outlives_its_users(),
            loads_later: target.loads_later(),
            retention,
        }
    }

    /// Whether all levels of the cache use the simulated clock of the test, and not a server's.
    pub(super) fn clock_is_ours(&self) -> bool {
        !self.kinds.iter().any(|kind| matches!(kind, Kind::Redis | Kind::Memcached))
    }

    pub(super) fn levels(&self) -> usize {
        self.kinds.len()
    }

    pub(super) fn has_versions(&self) -> bool {
        self.last != Kind::Redis
    }

    /// Whether a read from the cache reports the remaining lifetime of an entry with a TTL.
    pub(super) fn reports_lives(&self) -> bool {
        matches!(self.last, Kind::Memory | Kind::File)
    }

    /// Returns the coarsest unit in which a level of the cache counts lifetimes, such as a second in memcached.
    pub(super) fn coarsest(&self) -> Duration {
        let of = |kind: &Kind| match kind {
            Kind::Nothing | Kind::Memory => Duration::ZERO,
            Kind::File | Kind::Redis => Duration::from_millis(1),
            Kind::Memcached => Duration::from_secs(1),
        };
        self.kinds.iter().map(of).max().unwrap_or_default()
    }

    pub(super) fn lists_keys(&self) -> bool {
        self.last != Kind::Memcached
    }

    /// Whether the cache's `len` counts exactly the entries of the handle's namespace, which memcached cannot.
    pub(super) fn counts_entries(&self) -> bool {
        self.last != Kind::Memcached
    }

    /// Whether the cache no longer counts expired entries after an operation has read them.
    pub(super) fn drops_expired_entries(&self) -> bool {
        matches!(self.last, Kind::Memory | Kind::Nothing)
    }

    /// Whether versions of entries stay valid after the cache is closed and opened again.
    pub(super) fn keeps_versions(&self) -> bool {
        self.last != Kind::Memory
    }

    /// Returns the earliest and latest expiry of an entry that was written at `written` with this TTL; `None` if it
    /// never expires.
    pub(super) fn expiry(&self, written: Moment, ttl: Option<Duration>) -> Option<Expiry> {
        let ttl = ttl?;
        let longest = if self.last == Kind::Memcached { MEMCACHED_LONGEST } else { FOREVER };
        if ttl > longest {
            let earliest_ns = written.earliest_ns.saturating_add(nanos(longest));
            return Some(Expiry { earliest_ns, latest_ns: u64::MAX });
        }
        // An upper level may drop its copy earlier than the last level drops the entry, or later.
        let expiries = self.kinds.iter().map(|kind| expiry_of(*kind, written, ttl));
        let expiry = expiries.reduce(|one, other| Expiry {
            earliest_ns: one.earliest_ns.min(other.earliest_ns),
            latest_ns: one.latest_ns.max(other.latest_ns),
        })?;
        // A promoted copy has the remaining life that the last level reports, which rounds it up.
        let rounded_ns = if self.levels() > 1 { nanos(self.coarsest()) } else { 0 };
        Some(Expiry { latest_ns: expiry.latest_ns + rounded_ns, ..expiry })
    }

    /// Returns a lower bound on the bytes of the cache's capacity that an entry with a key and a value of these lengths
    /// takes.
    pub(super) fn cost_bytes(&self, key_bytes: usize, value_bytes: usize) -> u64 {
        let (key_bytes, value_bytes) = (key_bytes as u64, value_bytes as u64 + WRAP_BYTES);
        match self.last {
            Kind::Memory => charge(key_bytes, value_bytes),
            // The words of a record, an expiry, and the longest name of a namespace here.
            Kind::File => {
                24 + 8 + (key_bytes + 8).next_multiple_of(8) + value_bytes.next_multiple_of(8)
            }
            _ => key_bytes + value_bytes,
        }
    }

    /// Returns the total size of entries up to which a cache of this capacity may not lose any entry, in bytes.
    pub(super) fn kept_bytes(&self, capacity_bytes: Option<u64>, has_pins: bool) -> u64 {
        match self.retention {
            Some(Retention::KeepsAll) => return u64::MAX,
            Some(Retention::MayForget) => return 0,
            None => {}
        }
        let capacity_bytes = capacity_bytes.unwrap_or(u64::MAX);
        // Until a deferred write replaces them, older values stay in the last level.
        let capacity_bytes = if self.is_write_back { capacity_bytes / 8 } else { capacity_bytes };
        match self.last {
            Kind::Memory => capacity_bytes,
            // What fits half of the file stays, less the quarter that may be pinned.
            Kind::File if has_pins => capacity_bytes / 4,
            Kind::File => capacity_bytes / 2,
            // The memory of memcached is divided among classes of sizes.
            Kind::Nothing | Kind::Memcached => 0,
            Kind::Redis => u64::MAX,
        }
    }
}

/// Returns the earliest and latest expiry of such an entry in a level of this kind, by the resolution of its clock.
fn expiry_of(kind: Kind, written: Moment, ttl: Duration) -> Expiry {
    let Moment { earliest_ns, latest_ns } = written;
    let (ms, second, slack) =
        (nanos(Duration::from_millis(1)), nanos(Duration::from_secs(1)), nanos(SERVER_SLACK));
    let up = |unit: u64| nanos(ttl).div_ceil(unit).saturating_mul(unit);
    let (earliest_ns, latest_ns) = match kind {
        Kind::Nothing | Kind::Memory => (earliest_ns + nanos(ttl), latest_ns + nanos(ttl)),
        // By the time of day in whole milliseconds.
        Kind::File => (earliest_ns / ms * ms + up(ms), latest_ns / ms * ms + up(ms)),
        Kind::Redis => {
            ((earliest_ns + nanos(ttl)).saturating_sub(slack), latest_ns + up(ms) + slack)
        }
        // In whole seconds, and up to one early by the ticks of its clock.
        Kind::Memcached => (
            (earliest_ns + up(second)).saturating_sub(second + slack),
            latest_ns + up(second) + second + slack,
        ),
    };
    Expiry { earliest_ns, latest_ns }
}

/// Converts a duration to nanoseconds, at most `u64::MAX`.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promises(url: &str) -> Promises {
        Promises::of(&Target::new(url).unwrap(), None)
    }

    #[test]
    fn a_life_has_the_resolution_of_its_store() {
        let (written, ttl) = (Moment::at(5_900_000), Some(Duration::from_micros(500)));
        let expiry = |url| promises(url).expiry(written, ttl).unwrap();
        let memory = Expiry { earliest_ns: 6_400_000, latest_ns: 6_400_000 };
        assert_eq!(expiry("memory:"), memory);
        let file = Expiry { earliest_ns: 6_000_000, latest_ns: 6_000_000 };
        assert_eq!(expiry("file:{dir}/x"), file);
        let both = Expiry { earliest_ns: 6_000_000, latest_ns: 7_400_000 };
        assert_eq!(expiry("memory:+file:{dir}/x"), both);
        assert_eq!(promises("memory:").expiry(written, None), None);
    }

    #[test]
    fn half_of_a_file_stays() {
        let file = promises("file:{dir}/x");
        assert_eq!(file.kept_bytes(Some(1_000), false), 500);
        assert_eq!(file.kept_bytes(Some(1_000), true), 250);
        let forgets = Promises { retention: Some(Retention::MayForget), ..file };
        assert_eq!(forgets.kept_bytes(Some(1_000), false), 0);
    }
}
