//! Leases on keys of a shard, and the removals that revoke them.

use haypile_policy::Policy;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::super::pool::Pool;
use super::{Contents, HashedKey};
use crate::clock::Clock;
use crate::groups::Hashes;
use crate::lease::Lease;
use crate::mutant;
use crate::removals::{Line, Since, line_of};

/// A line of removals for each part of a shard of this length: 0.8 % of it.
const BYTES_PER_LINE: u64 = 8192;
const FEWEST_LINES: u64 = 16;
const MOST_LINES: u64 = 1 << 16;

/// The record of recent removals of keys in a shard of the memory store, by which leases on the
/// keys are revoked. They take no memory until the first lease is granted.
#[derive(Debug, Default)]
pub(super) struct Removals {
    lines: Vec<Line>,
    clearings: u64,
}

impl Removals {
    /// Makes the lines for a shard of this length, or returns the bytes for which there is no memory.
    fn begin(&mut self, shard_bytes: u64) -> Result<(), usize> {
        if self.lines.is_empty() {
            let lines = (shard_bytes / BYTES_PER_LINE).clamp(FEWEST_LINES, MOST_LINES);
            let lines = usize::try_from(lines).expect("at most MOST_LINES");
            let reserved = self.lines.try_reserve_exact(lines);
            reserved.map_err(|_| lines * size_of::<Line>())?;
            self.lines.resize(lines, Line::default());
        }
        Ok(())
    }

    /// Records that the key with this hash was removed, or that a value of it was accepted but not
    /// kept, which revokes leases on the key.
    #[inline]
    pub(super) fn note(&mut self, fingerprint: u64) {
        if !self.lines.is_empty() && !mutant::is_on("memory-notes-no-removal") {
            self.note_in_line(fingerprint);
        }
    }

    #[cold]
    fn note_in_line(&mut self, fingerprint: u64) {
        let line = self.line(fingerprint);
        self.lines[line].note(fingerprint);
    }

    /// Records that all entries of a shard were removed, which revokes all leases on its keys.
    pub(super) fn note_clearing(&mut self) {
        self.clearings += 1;
    }

    fn line(&self, fingerprint: u64) -> usize {
        let lines = u32::try_from(self.lines.len()).expect("at most MOST_LINES");
        line_of(fingerprint, lines) as usize
    }

    pub(super) fn metadata_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}

impl<P: Policy> Contents<P> {
    /// Grants a lease on a key (a right to store its value until the key changes); if there is no
    /// memory for remembering removals of keys, returns the number of bytes needed.
    pub(in crate::memory) fn lease(
        &mut self,
        key: HashedKey<'_>,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> Result<Lease, usize> {
        self.removals.begin(self.fair_share)?;
        // An entry that has expired would else be removed by another write, and revoke the lease.
        self.look_and_expire(key, clock, pool);
        Ok(self.lease_again(key))
    }

    /// Returns a new lease on a key (a right to store its value), in a shard of the memory store
    /// that has granted a lease before.
    pub(super) fn lease_again(&self, key: HashedKey<'_>) -> Lease {
        let line = self.removals.line(key.fingerprint);
        let (version, count) = (self.version_of(key), self.removals.lines[line].count);
        let words = [version, count, self.groups.clock()];
        let [version, count, clock] = words;
        Lease::from_words([version, count, clock, self.check(words, key)])
    }

    /// Returns whether a lease on a key still holds: neither the key nor one of these groups of
    /// entries has changed since the lease was granted.
    pub(in crate::memory) fn is_kept(
        &self,
        lease: Lease,
        key: HashedKey<'_>,
        groups: Option<&Hashes>,
    ) -> bool {
        let [version, count, clock, sum] = lease.words();
        // Without lines, no lease was granted here.
        !self.removals.lines.is_empty()
            && sum == self.check([version, count, clock], key)
            && version == self.version_of(key)
            && !groups.is_some_and(|groups| {
                groups.are_invalid_since(clock, |hash| self.groups.number_of(hash))
            })
            && self.removals.lines[self.removals.line(key.fingerprint)]
                .since(count, key.fingerprint)
                == Since::Nothing
    }

    /// Returns the version of a key's entry, expired or not; zero if there is none.
    fn version_of(&self, key: HashedKey<'_>) -> u64 {
        self.find(key).map_or(0, |slot| self.slab.get(slot).version())
    }

    /// Binds a lease to its key, to its store, since fingerprints of another one have another seed, and to the time before the shard is
    /// cleared again.
    fn check(&self, [version, count, clock]: [u64; 3], key: HashedKey<'_>) -> u64 {
        let words = [version, count, clock, self.removals.clearings];
        xxh3_64_with_seed(words.map(u64::to_le_bytes).as_flattened(), key.fingerprint)
    }
}
