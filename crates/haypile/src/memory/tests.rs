//! Properties that cannot be observed from outside: the memory that a store takes in addition to
//! its records.

use std::sync::Arc;

use haypile_policy::ghost::ByFingerprint;
use haypile_policy::rules::memory::{HEADER_BYTES, OVERHEAD_BYTES, charge, longest_value};
use haypile_policy::{Policy, PolicySpec, PolicyVisitor};

use super::contents::{Contents, HashedKey, Options, Outcome, Write};
use super::pool::Pool;
use super::record;
use super::record::Draft;
use crate::clock::ManualClock;
use crate::groups::Words;
use crate::write::WriteMode;

#[test]
fn a_record_has_the_header_that_is_charged() {
    assert_eq!(record::HEADER_BYTES as u64, HEADER_BYTES);
}

#[test]
fn the_longest_value_is_the_longest_that_is_not_charged_more() {
    for limit_bytes in 0..1_000 {
        for key_bytes in [0, 1, 7, 100] {
            let longest = longest_value(key_bytes, limit_bytes);
            let fits = |value_bytes: &u64| charge(key_bytes, *value_bytes) <= limit_bytes;
            assert_eq!(longest, (0..1_000).take_while(fits).last());
        }
    }
}

/// A shard that has all of a store, and the arguments of its operations.
struct Shard<P> {
    contents: Contents<P>,
    pool: Pool,
    clock: ManualClock,
}

impl<P: Policy> Shard<P> {
    fn new(policy: P, capacity_bytes: u64) -> Self {
        let options = Options { is_alone: true, notes_time_from_s: None, version: 0 };
        let contents =
            Contents::new(policy, capacity_bytes, options, Arc::new(Words::for_bytes(0)));
        Self { contents, pool: Pool::new(capacity_bytes), clock: ManualClock::new() }
    }

    fn fingerprint(number: u64) -> u64 {
        number.wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    fn set(&mut self, number: u64, value: &[u8]) {
        let draft = Draft::copied(Self::fingerprint(number), &number.to_le_bytes(), value)
            .expect("there is memory for it");
        let write = Write { draft, mode: WriteMode::Set, ttl: None, room: None };
        let outcome = self.contents.write(write, &self.clock, &self.pool);
        assert!(matches!(outcome, Outcome::Written(_)));
    }

    fn delete(&mut self, number: u64) {
        let key =
            HashedKey { bytes: &number.to_le_bytes(), fingerprint: Self::fingerprint(number) };
        self.contents.delete(key, &self.clock, &self.pool);
    }

    /// Returns the number of entries and the bytes of metadata.
    fn size(&self) -> (u64, u64) {
        (self.contents.len(), self.contents.metadata_bytes() as u64)
    }
}

/// Fills a shard with entries that nobody reads, which leave the most ghosts, and returns the bytes
/// of metadata per entry.
struct Fill {
    capacity_bytes: u64,
}

impl PolicyVisitor for Fill {
    type Output = f64;

    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> f64 {
        let mut shard = Shard::new(make(self.capacity_bytes), self.capacity_bytes);
        for number in 0..self.capacity_bytes / 32 {
            shard.set(number, b"v");
        }
        let (entries, bytes) = shard.size();
        bytes as f64 / entries as f64
    }
}

#[test]
fn the_overhead_is_what_the_metadata_takes() {
    let overhead = f64::from(u32::try_from(OVERHEAD_BYTES).unwrap());
    for kind in PolicySpec::kinds() {
        let spec: PolicySpec = kind.name.parse().unwrap();
        if spec.is_of_file_store() {
            continue;
        }
        // Tables double, so the test samples sizes between two powers of two.
        let fill = |eighths: u64| {
            let fill = Fill { capacity_bytes: eighths << 16 };
            spec.build::<ByFingerprint, _>(true, fill).expect("it is not the file store's")
        };
        let mean = [9, 11, 13, 15].map(fill).iter().sum::<f64>() / 4.0;
        println!("{kind:?} {mean}", kind = kind.name);
        match kind.name {
            "lirs" => assert!(mean > overhead, "lirs has as many ghosts as entries: {mean}"),
            name => assert!(mean <= overhead, "{name} takes {mean}"),
        }
        if spec == PolicySpec::default() {
            assert!(mean > 0.85 * overhead, "the default takes only {mean}");
        }
    }
}

const LARGE_BYTES: usize = 100 << 10;

/// Fills a shard with small values, lets large ones replace them as far as the policy does that,
/// deletes the remaining small ones, and clears it. Returns the sizes after each step.
struct Shrink {
    capacity_bytes: u64,
    /// The number of times that each large value is set: some policies want more than one use.
    sets: u64,
}

impl PolicyVisitor for Shrink {
    type Output = [(u64, u64); 4];

    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> Self::Output {
        let mut shard = Shard::new(make(self.capacity_bytes), self.capacity_bytes);
        let small = 0..self.capacity_bytes / 64;
        small.clone().for_each(|number| shard.set(number, b"v"));
        let full = shard.size();
        let value = vec![0; LARGE_BYTES];
        for number in (0..1_000).flat_map(|large| (0..self.sets).map(move |_| large)) {
            shard.set(small.end + number, &value);
        }
        let replaced = shard.size();
        small.for_each(|number| shard.delete(number));
        let deleted = shard.size();
        shard.contents.clear(&shard.pool);
        [full, replaced, deleted, shard.size()]
    }
}

/// Only a full `lirs` takes more than is charged: it has more ghosts than entries.
#[test]
fn the_metadata_shrinks_with_the_entries() {
    // Dropping a few dozen free slots, nodes and ghosts is not worthwhile.
    let slack_bytes = 16 << 10;
    for name in [
        "fifo",
        "lru",
        "slru",
        "slru4",
        "clock",
        "sieve",
        "s3fifo",
        "wtinylfu",
        "arc",
        "lirs:hir=5",
    ] {
        let spec: PolicySpec = name.parse().unwrap();
        let sets = if name == "wtinylfu" { 2 } else { 1 };
        let shrink = Shrink { capacity_bytes: 8 << 20, sets };
        let sizes = spec.build::<ByFingerprint, _>(true, shrink).expect("none is the file store's");
        println!("{name} {sizes:?}");
        let [(full, _), replaced, deleted, cleared] = sizes;
        assert!(full > 30_000 && deleted.0 < 82 && cleared.0 == 0, "{name}: {sizes:?}");
        for (entries, bytes) in [replaced, deleted, cleared] {
            let bound = entries * OVERHEAD_BYTES + slack_bytes;
            let is_full_of_ghosts = name.starts_with("lirs") && entries > 1_000;
            assert!(bytes <= bound || is_full_of_ghosts, "{name}: {sizes:?}");
        }
    }
}
