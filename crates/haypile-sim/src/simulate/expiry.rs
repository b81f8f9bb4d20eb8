//! Entries that expire.
//!
//! As in the engine, which removes expired entries when they are met, when room is needed, and with each write: here all leave at their
//! time. A value lives from when it was stored, by a write or by a read that missed; a hit does not prolong it. A request whose TTL the trace does
//! not tell has the last one of its key, or else the one that was asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use zerocopy::little_endian::U64;

use super::Options;
use crate::Trace;
use crate::trace::Op;

/// The expiry of an entry that never expires.
const NEVER: u64 = u64::MAX;

/// The rule for the lifetime (TTL) of entries in a simulated cache: the trace's own TTLs, a TTL for requests that state
/// none, or no expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TtlRule {
    /// Entries live as the trace states; an entry without a stated TTL does not expire.
    #[default]
    AsTheyAre,
    /// Entries live as the trace states, and otherwise this number of microseconds.
    Otherwise(u64),
    /// No entry expires, whatever the trace states.
    Never,
}

impl TtlRule {
    /// Returns whether entries of this trace can expire under the rule.
    pub fn applies_to(self, trace: &Trace) -> bool {
        let tells = trace.ttls_us().is_some() && trace.times_us().is_some();
        match self {
            Self::AsTheyAre => tells,
            Self::Otherwise(_) => true,
            Self::Never => false,
        }
    }
}

/// A record of when each entry in a simulated cache expires, with the simulated time.
pub(super) struct Expiries<'a> {
    times: &'a [U64],
    ttls: Option<&'a [U64]>,
    default_us: Option<u64>,
    now_us: u64,
    /// Expiry time of each key's entry in microseconds, indexed by id.
    expires_us: Vec<u64>,
    /// TTL that each key was last given in microseconds, indexed by id; 0 for none.
    last_us: Vec<u64>,
    /// Expiry times with their keys, the earliest first; those that no longer apply to the key's entry are passed over.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<'a> Expiries<'a> {
    /// Creates the record of expiry times for an empty simulated cache; `None` if entries of this trace cannot expire
    /// by the options.
    pub(super) fn new(trace: &'a Trace, options: &Options) -> Option<Self> {
        if !options.ttl.applies_to(trace) {
            return None;
        }
        let keys = trace.keys() as usize;
        let default_us = match options.ttl {
            TtlRule::Otherwise(ttl_us) => Some(ttl_us),
            _ => None,
        };
        Some(Self {
            times: trace.times_us()?,
            ttls: trace.ttls_us(),
            default_us,
            now_us: 0,
            expires_us: vec![NEVER; keys],
            last_us: vec![0; if trace.ttls_us().is_some() { keys } else { 0 }],
            queue: BinaryHeap::new(),
        })
    }

    /// Sets the simulated time to that of the trace's request number `at`, but never back to an earlier time.
    pub(super) fn advance(&mut self, at: usize) {
        self.now_us = self.now_us.max(self.times[at].get());
    }

    /// Returns the next key whose cache entry has expired at the simulated time, each once; `None` if none is left.
    pub(super) fn pop(&mut self) -> Option<u32> {
        while let Some(Reverse((expires_us, id))) = self.queue.peek().copied() {
            if expires_us > self.now_us {
                return None;
            }
            self.queue.pop();
            let current = &mut self.expires_us[id as usize];
            if *current == expires_us {
                *current = NEVER;
                return Some(id);
            }
        }
        None
    }

    /// Records the TTL that request number `at` states for its key. Deletions state none.
    pub(super) fn note(&mut self, at: usize, id: u32, op: Op) {
        if let Some(ttls) = self.ttls
            && op != Op::Delete
            && ttls[at].get() > 0
        {
            self.last_us[id as usize] = ttls[at].get();
        }
    }

    /// Records the expiry time of a key's value that is stored at the simulated time.
    pub(super) fn stored(&mut self, id: u32) {
        let known_us = self.last_us.get(id as usize).copied().filter(|ttl_us| *ttl_us > 0);
        let expires_us = match known_us.or(self.default_us) {
            Some(ttl_us) => self.now_us.saturating_add(ttl_us),
            None => NEVER,
        };
        self.expires_us[id as usize] = expires_us;
        if expires_us != NEVER {
            self.queue.push(Reverse((expires_us, id)));
        }
    }

    /// Deletes the expiry time of a key whose entry was removed from the cache.
    pub(super) fn removed(&mut self, id: u32) {
        self.expires_us[id as usize] = NEVER;
    }
}
