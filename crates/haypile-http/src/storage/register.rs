//! The register of entries without a response in a store that several processes share: it bounds their number over all
//! of these processes, and over those that have ended.
//!
//! A hash of its name leads each target to one line of the register, a value of the store. A line names few entries, the
//! youngest last. One more than it has room for deletes the entry that it names first. So the register has all of these
//! entries, however often processes end and begin, and no process has to know what others have written.
//!
//! ```text
//! version (1 byte) | for each entry: hash of its name (16) | hash of its value (8)
//! ```

use bytes::Buf;
use haypile::{Store, Written};
use xxhash_rust::xxh3::xxh3_64;

use super::{LIFE_OF_EMPTY, hash_key, unchanged};

/// Rises with every change of the format.
const VERSION: u8 = 1;
/// The number of entries in a line. With more, a line that others fill is rarer, and each change of it takes more room.
const PLACES: usize = 4;
/// The number of attempts to change a line, if other processes change it first each time.
const ATTEMPTS: u32 = 16;

/// The register of entries without a response that all processes of a store share.
#[derive(Debug)]
pub(super) struct Register {
    lines: u128,
}

/// An entry that a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    /// The hash of the name of its target.
    hash: u128,
    /// The hash of the value that it had, for an entry that was written again is another.
    value_hash: u64,
}

impl Register {
    /// Creates a register that names at most `most` entries, but at least those of one line. All processes that share
    /// a store have to agree on that number.
    pub(super) fn new(most: usize) -> Self {
        Self { lines: (most / PLACES).max(1) as u128 }
    }

    /// Adds an entry without a response that was just written, by the hash of its name and its value; deletes the
    /// entry for which there is no longer a place, or this one if the store does not register it.
    pub(super) fn add(&self, store: &dyn Store, hash: u128, value: &[u8]) {
        let key = self.key_of(hash);
        let added = Named { hash, value_hash: xxh3_64(value) };
        let mut bytes = Vec::new();
        for _ in 0..ATTEMPTS {
            let Ok(hit) = store.get_versioned_into(&key, &mut bytes) else { break };
            let mut line = decode(&bytes);
            line.retain(|named| named.hash != hash);
            // First: a process that ends between the two leaves no entry that no line names.
            while line.len() >= PLACES {
                delete(store, line.remove(0));
            }
            line.push(added);
            let options = unchanged(hit).with_ttl(LIFE_OF_EMPTY);
            match store.set(&key, &encode(&line), &options).map(Written::is_stored) {
                Ok(true) => return,
                Ok(false) => {}
                Err(_) => break,
            }
        }
        delete(store, added);
    }

    /// Returns the key of the line of a target.
    fn key_of(&self, hash: u128) -> Vec<u8> {
        format!("http-bare/{}", hash % self.lines).into_bytes()
    }
}

/// Deletes an entry from the store, unless it was written again since a line named it.
fn delete(store: &dyn Store, named: Named) {
    let (key, mut value) = (hash_key(named.hash), Vec::new());
    let found = store.get_into(&key, &mut value);
    if matches!(found, Ok(Some(_))) && xxh3_64(&value) == named.value_hash {
        // One that stays is one too many, and its lifetime is short.
        let _ = store.compare_and_delete(&key, &value);
    }
}

/// Returns the bytes of a line that names these entries.
fn encode(line: &[Named]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + line.len() * 24);
    bytes.push(VERSION);
    for named in line {
        bytes.extend_from_slice(&named.hash.to_le_bytes());
        bytes.extend_from_slice(&named.value_hash.to_le_bytes());
    }
    bytes
}

/// Reads a line, and returns the entries that it names, the oldest first; none if the bytes are not a line.
fn decode(mut bytes: &[u8]) -> Vec<Named> {
    let mut line = Vec::new();
    if bytes.try_get_u8() != Ok(VERSION) {
        return line;
    }
    while let (Ok(hash), Ok(value_hash)) = (bytes.try_get_u128_le(), bytes.try_get_u64_le()) {
        line.push(Named { hash, value_hash });
    }
    line
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicU32, Ordering};

    use haypile::{Cache, Layer, Result, SetOptions};

    use super::super::tests::{cache, has, write};
    use super::*;

    fn left(cache: &Cache, hashes: impl Iterator<Item = u128>) -> HashSet<u128> {
        hashes.filter(|hash| has(cache, *hash)).collect()
    }

    #[test]
    fn the_oldest_of_a_line_is_deleted_unless_it_was_written_again() {
        let (cache, register) = (cache(), Register::new(2 * PLACES));
        for hash in 0..20 {
            write(&cache, hash, b"value");
            register.add(&**cache.store(), hash, b"value");
            if hash == 3 {
                write(&cache, hash, b"another");
            }
        }
        assert_eq!(left(&cache, 0..20), HashSet::from([3, 12, 13, 14, 15, 16, 17, 18, 19]));
        // One that is added again is the youngest, and takes no second place.
        register.add(&**cache.store(), 12, b"value");
        for hash in [20, 22] {
            write(&cache, hash, b"value");
            register.add(&**cache.store(), hash, b"value");
        }
        assert_eq!(left(&cache, 12..23), HashSet::from([12, 13, 15, 17, 18, 19, 20, 22]));
    }

    #[test]
    fn processes_that_end_leave_no_entries_to_those_that_begin() {
        let cache = cache();
        for process in 0..50_u128 {
            let register = Register::new(40);
            for hash in process * 40..(process + 1) * 40 {
                write(&cache, hash, b"value");
                register.add(&**cache.store(), hash, b"value");
            }
        }
        assert_eq!(left(&cache, 0..2_000).len(), 40);
    }

    /// A store in which another process changes the line each time that this one is about to, for a number of times.
    #[derive(Debug)]
    struct Contended {
        cache: Cache,
        register: Register,
        times: AtomicU32,
    }

    impl Layer for Contended {
        fn inner(&self) -> &dyn Store {
            &**self.cache.store()
        }

        fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
            let fewer = |times: u32| times.checked_sub(1);
            let left = self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
            if let Ok(left) = left {
                write(&self.cache, left.into(), b"value");
                self.register.add(self.inner(), left.into(), b"value");
            }
            self.inner().set(key, value, options)
        }
    }

    #[test]
    fn a_line_that_another_process_changes_at_the_same_time_names_the_entries_of_both() {
        // It is changed once; most often; and more often than this one tries.
        for (times, is_left) in [(1, true), (ATTEMPTS - 1, true), (ATTEMPTS, false)] {
            let (cache, register) = (cache(), Register::new(PLACES));
            let store = Contended {
                cache: cache.clone(),
                register: Register::new(PLACES),
                times: AtomicU32::new(times),
            };
            write(&cache, 100, b"value");
            register.add(&store, 100, b"value");
            let left = left(&cache, 0..=100);
            assert_eq!(left.contains(&100), is_left, "{times}");
            let mut line = Vec::new();
            cache.store().get_into(&register.key_of(0), &mut line).expect("memory does not fail");
            let named = decode(&line).into_iter().map(|named| named.hash).collect();
            assert_eq!(left, named, "{times}");
        }
    }

    #[test]
    fn a_level_above_a_file_hides_nothing_that_others_have_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!("file:{},size=2MiB", folder.path().join("f").display());
        let url = format!("memory:size=1MiB,stale=1h+{file}");
        let processes = [(); 2].map(|()| Cache::open(&url).expect("it opens"));
        let register = Register::new(PLACES);
        for (hash, process) in (0..40).zip(processes.iter().cycle()) {
            write(process, hash, b"value");
            register.add(&**process.store(), hash, b"value");
        }
        let file = Cache::open(&file).expect("it opens");
        assert_eq!(left(&file, 0..40), HashSet::from([36, 37, 38, 39]));
    }

    #[test]
    fn bytes_of_others_are_an_empty_line() {
        let line = [Named { hash: 7, value_hash: 8 }, Named { hash: u128::MAX, value_hash: 0 }];
        assert_eq!(decode(&encode(&line)), line);
        for bytes in [&b""[..], b"\x02", &[0; 25]] {
            assert!(decode(bytes).is_empty());
        }
        assert_eq!(decode(&encode(&line)[..48]), line[..1]);
    }
}
