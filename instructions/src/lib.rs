//! Caches in a fixed state, whose operations `benches/operations.rs` counts.
//!
//! A count depends on the code and the compiler alone: hash seeds, shards, keys, values, time and the boot are fixed
//! here. gungraun empties the environment and switches off the randomisation of addresses.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haypile::file::hooks;
use haypile::memory::MemoryBuilder;
use haypile::{Cache, Clock, ManualClock, Registry};
use tempfile::TempDir;

/// Number of operations that one benchmark counts.
pub const OPERATIONS: usize = 1_000;
/// Number of writes that evict: several segments of the file leave, so that one more or less weighs little.
pub const EVICTIONS: usize = 4_000;
/// Number of calls that take [`BATCH`] keys each.
pub const BATCHES: usize = 16;
/// Number of keys of one call of `get_many` and `set_many`.
pub const BATCH: usize = 64;
/// Number of openings of the file.
pub const OPENINGS: usize = 10;

/// Groups of an entry that is in some.
pub const GROUPS: [&str; 3] = ["user:7", "pages", "article:1815"];

/// Entries of a cache that holds all of them; more than the simulated first level of the processor's caches holds.
const ENTRIES: usize = 4_096;
/// Writes that fill a cache of [`SMALL_BYTES`] until each further one evicts.
const FILLING: usize = 12_000;
const VALUE_BYTES: usize = 160;
const LARGE_BYTES: u64 = 8 << 20;
const SMALL_BYTES: u64 = 1 << 20;
const HASH_SEED: u64 = 0x0123_4567_89ab_cdef;
/// Odd, so that it permutes the numbers below a power of two: the order of access is not that of writing.
const STRIDE: usize = 2_654_435_761;

/// Kind of a cache.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `memory:`
    Memory,
    /// `file:`, on a file system in memory.
    File,
}

/// A cache in a known state, with the keys and the value of the operations on it.
#[derive(Debug)]
pub struct Fixture {
    /// The cache.
    pub cache: Cache,
    /// The key of each operation.
    pub keys: Vec<Vec<u8>>,
    /// The value that writes store.
    pub value: Vec<u8>,
    /// The keys and values of calls that write many.
    pub pairs: Vec<(Vec<u8>, Vec<u8>)>,
    // Dropped after the cache.
    _directory: Option<TempDir>,
}

/// A fixture after its operations, and how many of them found, stored or removed an entry.
pub type Outcome = (Fixture, usize);

impl Fixture {
    /// Returns a cache with room for more than its entries, and the keys of entries in it.
    pub fn present(kind: Kind, key_bytes: usize) -> Self {
        Self::new(kind, key_bytes, LARGE_BYTES, ENTRIES, |number| {
            number.wrapping_mul(STRIDE) % ENTRIES
        })
    }

    /// Returns the same, with each entry in three groups of which none is invalidated.
    pub fn grouped(kind: Kind, key_bytes: usize) -> Self {
        let fixture = Self::present(kind, key_bytes);
        let grouped = fixture.cache.in_groups(GROUPS).expect("names of groups");
        for number in 0..ENTRIES {
            let key = key(number, key_bytes);
            grouped.set(key, &fixture.value).expect("there is room for them");
        }
        fixture
    }

    /// Returns a cache with room for more than its entries, and keys that are not in it.
    pub fn absent(kind: Kind, key_bytes: usize) -> Self {
        Self::new(kind, key_bytes, LARGE_BYTES, ENTRIES, |number| ENTRIES + number)
    }

    /// Returns a full cache, and keys that are not in it.
    pub fn full(kind: Kind, key_bytes: usize) -> Self {
        Self::new(kind, key_bytes, SMALL_BYTES, FILLING, |number| FILLING + number)
    }

    fn new(
        kind: Kind,
        key_bytes: usize,
        size_bytes: u64,
        filling: usize,
        number_of: impl Fn(usize) -> usize,
    ) -> Self {
        let (cache, directory) = match kind {
            Kind::Memory => (memory(size_bytes), None),
            Kind::File => {
                let directory = directory();
                (open(&path(&directory), size_bytes), Some(directory))
            }
        };
        let value: Vec<u8> = (0..VALUE_BYTES).map(|byte| byte.to_le_bytes()[0]).collect();
        for number in 0..filling {
            cache.set(key(number, key_bytes), &value).expect("a new cache takes entries");
        }
        let keys: Vec<_> = (0..EVICTIONS).map(|number| key(number_of(number), key_bytes)).collect();
        let pairs =
            keys[..BATCHES * BATCH].iter().map(|key| (key.clone(), value.clone())).collect();
        Self { cache, keys, value, pairs, _directory: directory }
    }
}

/// Removes what a benchmark leaves, and checks that its operations did what their name says.
pub fn check<const EXPECTED: usize>((fixture, count): Outcome) {
    drop(fixture);
    assert_eq!(count, EXPECTED, "operations that found, stored or removed an entry");
}

/// A file with entries, which nobody uses.
#[derive(Debug)]
pub struct ClosedFile(TempDir);

impl ClosedFile {
    /// Makes the file.
    pub fn new() -> Self {
        let directory = directory();
        let cache = open(&path(&directory), LARGE_BYTES);
        for number in 0..ENTRIES {
            cache.set(key(number, 36), [7; VALUE_BYTES]).expect("a new cache takes entries");
        }
        drop(cache);
        Self(directory)
    }

    /// Opens it as a cache.
    pub fn open(&self) -> Cache {
        open(&path(&self.0), LARGE_BYTES)
    }
}

impl Default for ClosedFile {
    fn default() -> Self {
        Self::new()
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::new())
}

/// By default the number of processors decides how many shards there are.
fn memory(size_bytes: u64) -> Cache {
    let builder = MemoryBuilder::new(size_bytes).shards(4).hash_seed(HASH_SEED).clock(clock());
    Cache::new(builder.store().expect("the options are right"))
}

fn open(path: &Path, size_bytes: u64) -> Cache {
    hooks::set_hash_seed(Some(HASH_SEED));
    hooks::set_boot_id(Some("instructions"));
    let url = format!("file:{},size={size_bytes}", path.display());
    let registry = Registry::new().with_clock(clock());
    Cache::new(registry.open(&url).expect("the file can be made"))
}

/// On a file system in memory: its path is as long on every machine.
fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("haypile-instructions-")
        .tempdir_in("/dev/shm")
        .expect("/dev/shm takes files")
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join("cache")
}

/// A number in decimals, after as many letters as the length takes.
fn key(number: usize, bytes: usize) -> Vec<u8> {
    let mut text = "key-of-an-entry-of-a-cache".chars().take(bytes - 10).collect::<String>();
    write!(text, "{number:010}").expect("a string takes text");
    text.into_bytes()
}

/// Returns how many of the keys have a value, read one by one.
pub fn count_found(cache: &Cache, keys: &[Vec<u8>]) -> usize {
    let is_found =
        |key: &&Vec<u8>| black_box(cache.get(black_box(key))).is_ok_and(|value| value.is_some());
    keys.iter().filter(is_found).count()
}

/// Writes the keys one by one; returns how many writes succeeded.
pub fn count_written(cache: &Cache, keys: &[Vec<u8>], value: &[u8]) -> usize {
    keys.iter().filter(|key| cache.set(black_box(*key), black_box(value)).is_ok()).count()
}
