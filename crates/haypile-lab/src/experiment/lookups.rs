//! A job of random lookups in a cache that holds some of its keys.

use std::ops::Range;
use std::path::Path;

use haypile_measure::job::{self, JobError, Ops, Settings};
use haypile_measure::measure::{Expected, shuffle};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::keys;

/// Length of the keys of jobs that set and look up keys, in bytes: that of a UUID as text.
pub(super) const KEY_BYTES: u32 = 36;

/// An upper limit of the bytes that a cache uses per entry in addition to key and value. The engine
/// uses 168.
pub const ROOM_PER_ENTRY_BYTES: u64 = 256;

/// Returns a capacity in bytes that holds this number of entries in every cache, however it counts
/// its metadata and however unevenly its shards fill.
pub(super) fn roomy(entries: u64, entry_bytes: u64) -> u64 {
    let needed = entries * (entry_bytes + ROOM_PER_ENTRY_BYTES);
    needed + needed / 4
}

/// A job (operations to run on a cache) that sets some keys and then looks keys up.
pub(super) struct Lookups {
    /// The number of keys that the job sets, from key 0 on.
    pub(super) filled: u32,
    /// The range of keys that the job looks up, each equally probable: all of them are set, or none
    /// is.
    pub(super) looked_up: Range<u32>,
    pub(super) value_bytes: u32,
    pub(super) operations: u32,
    /// A capacity in bytes that is large enough for all keys that the job sets, in every cache.
    pub(super) capacity_bytes: u64,
    pub(super) seed: u64,
    /// Whether the process that set the keys is killed before the lookups.
    pub(super) is_killed: bool,
}

impl Lookups {
    /// Writes the files of this job of lookups into a directory, and returns the results to expect.
    pub(super) fn write(&self, directory: &Path) -> Result<Expected, JobError> {
        let Self { filled, value_bytes, capacity_bytes, seed, .. } = *self;
        let Range { start, end } = self.looked_up;
        let population = keys::population(seed, filled.max(end), KEY_BYTES, value_bytes)?;
        let entry_bytes = u64::from(KEY_BYTES + value_bytes);
        let settings = Settings::new(seed, capacity_bytes, capacity_bytes / entry_bytes);
        let settings = if self.is_killed { settings.killed() } else { settings };
        let (mut prepare, mut timed) = (Ops::new(), Ops::new());
        (0..filled).for_each(|key| prepare.set(key));
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        if end > filled {
            // A cache may remember that a key was missing: each is looked up once, as far as there are enough.
            let mut keys: Vec<u32> = self.looked_up.clone().collect();
            shuffle(&mut random, &mut keys);
            let all = keys.iter().cycle().take(self.operations as usize);
            all.for_each(|&key| timed.get(key));
        } else {
            for _ in 0..self.operations {
                // The upper bits of a product are a number below the length of the range.
                let drawn = (u64::from(random.next_u32()) * u64::from(end - start)) >> 32;
                timed.get(start + u32::try_from(drawn).expect("below the length of the range"));
            }
        }
        job::write(directory, &settings, &population, &prepare, std::slice::from_ref(&timed))?;
        let filled_keys = Some(u64::from(filled));
        Ok(Expected {
            operations: timed.operations(),
            reads: timed.reads(),
            hits: Some(if end <= filled { timed.reads() } else { 0 }),
            verified_before: filled_keys,
            verified_after: filled_keys,
            is_killed: self.is_killed,
            ..Expected::default()
        })
    }
}
