//! Going on with a file, in whatever state it was found: every operation answers, no value is
//! wrong, and in the end everything in it has been rewritten.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use haypile::{Cursor, Durability, SetOptions, Store, Ttl, Written};

/// The size of a file with 930 segments. A bound on attempts that is below the number of segments
/// shows in such a file, and not in one of 1 MiB, which has some fourteen.
pub(crate) const LARGE: &str = "63MiB";

/// The known state of the keys of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Every value that was ever written under a key, the latest last.
    past: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Keys that were written or deleted since the file was found: what they have to be, or nothing.
    now: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Of the others, which of its values was seen: an earlier one must not come after it.
    seen: HashMap<Vec<u8>, usize>,
}

impl Known {
    /// Notes what was written before the file was found.
    pub(crate) fn note(&mut self, key: &[u8], value: Vec<u8>) {
        let values = self.past.entry(key.to_vec()).or_default();
        values.retain(|other| *other != value);
        values.push(value);
    }

    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = self.past.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// Judges what a store says that it has under a key.
    pub(crate) fn judge(&mut self, key: &[u8], found: Option<&[u8]>) {
        let Some(found) = found else {
            return;
        };
        let name = String::from_utf8_lossy(key);
        if let Some(now) = self.now.get(key) {
            let expected = now.as_deref().map(describe);
            assert!(now.as_deref() == Some(found), "{name}: {} for {expected:?}", describe(found));
            return;
        }
        let past = self.past.get(key).map_or(&[][..], Vec::as_slice);
        let Some(number) = past.iter().rposition(|value| value == found) else {
            panic!("{name}: never written: {}", describe(found));
        };
        let seen = self.seen.entry(key.to_vec()).or_insert(number);
        assert!(number >= *seen, "{name}: value {number} came back after {seen}");
        *seen = number;
    }

    /// Notes that a key was written just now, or deleted.
    pub(crate) fn is_now(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        if let Some(value) = &value {
            self.note(key, value.clone());
        }
        self.now.insert(key.to_vec(), value);
    }

    /// The keys that were written or deleted since the file was found.
    pub(crate) fn changes(&self) -> &HashMap<Vec<u8>, Option<Vec<u8>>> {
        &self.now
    }

    /// The file was found again: each change since may be undone.
    pub(crate) fn forget_order(&mut self) {
        self.now.clear();
        self.seen.clear();
    }

    pub(crate) fn clear(&mut self) {
        for key in self.keys() {
            self.is_now(&key, None);
        }
    }
}

fn describe(value: &[u8]) -> String {
    format!("{} bytes, {:02x?}", value.len(), &value[..value.len().min(24)])
}

/// A value that no other write of the same number has, and that says which it is in every word.
pub(crate) fn value(number: u64, bytes: usize) -> Vec<u8> {
    let words = (0_u64..).map(|at| (number << 20 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    words.flat_map(u64::to_le_bytes).take(bytes).collect()
}

/// Flips a bit of the only value in a file that has these bytes.
pub(crate) fn flip_in(path: &Path, value: &[u8]) {
    let mut bytes = fs::read(path).expect("bytes");
    let at = bytes.windows(value.len()).position(|window| window == value).expect("the value");
    bytes[at + value.len() / 2] ^= 1;
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    file.write_all_at(&bytes[at..at + value.len()], at as u64).expect("written");
}

/// Reads every key in each way that there is.
pub(crate) fn read_all(store: &dyn Store, known: &mut Known) {
    for key in known.keys() {
        let found = store.get(&key).expect("a read");
        known.judge(&key, found.as_deref());
        let pinned = store.get_pinned(&key).expect("a read in place");
        known.judge(&key, pinned.as_deref());
        if store.contains(&key).expect("a look") {
            assert!(known.past.contains_key(&key) || known.now.contains_key(&key));
        }
    }
}

/// Goes through all keys, and counts.
pub(crate) fn list(store: &dyn Store, known: &Known) -> u64 {
    let (mut from, mut count) = (Cursor::default(), 0);
    for _ in 0..100_000 {
        let page = store.keys(from, 100).expect("keys");
        for key in &page.keys {
            let name = String::from_utf8_lossy(key);
            assert!(known.past.contains_key(key) || known.now.contains_key(key), "{name}");
            assert_ne!(known.now.get(key), Some(&None), "{name} is gone");
            count += 1;
        }
        match page.next {
            Some(next) => from = next,
            None => return count,
        }
    }
    panic!("keys have no end");
}

/// Changes every key in one way or another.
fn change_all(store: &dyn Store, known: &mut Known, seed: u64) {
    let hour = Ttl::from(Some(Duration::from_hours(1)));
    for (number, key) in (seed..).zip(known.keys()) {
        match number % 8 {
            0 => {
                let found = store.get(&key).expect("a read");
                assert_eq!(store.delete(&key).expect("a deletion"), found.is_some());
                known.is_now(&key, None);
                assert_eq!(store.get(&key).expect("a read"), None, "a deleted key is gone");
            }
            1 => {
                let _ = store.touch(&key, hour).expect("a touch");
                known.judge(&key, store.get(&key).expect("a read").as_deref());
            }
            2 => {
                let found = store.get(&key).expect("a read");
                known.judge(&key, found.as_deref());
                let value = value(number, 300);
                let added = store.set(&key, &value, &SetOptions::add()).expect("an addition");
                let expected = if found.is_some() { Written::Exists } else { Written::Stored };
                assert_eq!(added, expected, "{}", String::from_utf8_lossy(&key));
                if added == Written::Stored {
                    known.is_now(&key, Some(value));
                }
                known.judge(&key, store.get(&key).expect("a read").as_deref());
            }
            3 => {
                let mut found = Vec::new();
                let hit = store.get_into(&key, &mut found).expect("a read");
                let Some(version) = hit.and_then(|hit| hit.version) else {
                    continue;
                };
                let value = value(number, 500);
                let options = SetOptions::cas(version);
                let written = store.set(&key, &value, &options).expect("a comparison");
                match written {
                    Written::Stored => known.is_now(&key, Some(value)),
                    // Room for the new value was made by evicting the old one.
                    other => assert_eq!(
                        (other, store.get(&key).expect("a read")),
                        (Written::Absent, None)
                    ),
                }
                known.judge(&key, store.get(&key).expect("a read").as_deref());
            }
            4 => {
                let found = store.get(&key).expect("a read");
                known.judge(&key, found.as_deref());
                match store.incr(&key, 1) {
                    Ok(Some(count)) => known.is_now(&key, Some(count.to_string().into_bytes())),
                    // There was none; or room for the new one was made by evicting it.
                    Ok(None) => assert_eq!(store.get(&key).expect("a read"), None),
                    Err(haypile::Error::NotACounter { .. }) => assert!(found.is_some()),
                    Err(error) => panic!("{error}"),
                }
                known.judge(&key, store.get(&key).expect("a read").as_deref());
            }
            5 => {}
            _ => set(store, known, &key, number, 200),
        }
    }
}

pub(crate) fn set(store: &dyn Store, known: &mut Known, key: &[u8], number: u64, bytes: usize) {
    let value = value(number, bytes);
    let written = store
        .set(key, &value, &SetOptions::set())
        .unwrap_or_else(|error| panic!("{bytes} bytes: {error}"));
    assert_eq!(written, Written::Stored);
    known.is_now(key, Some(value));
    known.judge(key, store.get(key).expect("a read").as_deref());
}

/// Writes enough to fill every segment again, twice.
fn fill(store: &dyn Store, known: &mut Known, seed: u64) {
    let capacity_bytes = store.limits().capacity_bytes.expect("a file has one");
    fill_bytes(store, known, seed, 2 * capacity_bytes);
}

/// Writes enough to fill a third of the segments: of a large file, hundreds.
pub(crate) fn fill_a_third(store: &dyn Store, known: &mut Known, seed: u64) {
    let capacity_bytes = store.limits().capacity_bytes.expect("a file has one");
    fill_bytes(store, known, seed, capacity_bytes / 3);
}

fn fill_bytes(store: &dyn Store, known: &mut Known, seed: u64, most_bytes: u64) {
    if known.keys().is_empty() {
        set(store, known, b"first", seed, 100);
    }
    let keys = known.keys();
    let (mut written_bytes, mut number) = (0, seed << 20);
    while written_bytes < most_bytes {
        number += 1;
        let key = match number % 4 {
            0 => keys[(number / 4 % keys.len() as u64) as usize].clone(),
            _ => format!("new-{}", number % 1_000).into_bytes(),
        };
        let bytes = if number % 100 == 0 { 70_000 } else { 2_000 + (number % 7 * 300) as usize };
        set(store, known, &key, number, bytes);
        let other = &keys[(number.wrapping_mul(7) % keys.len() as u64) as usize];
        known.judge(other, store.get(other).expect("a read").as_deref());
        written_bytes += bytes as u64;
    }
}

/// Does everything that can be done to a store.
pub(crate) fn go_on(store: &dyn Store, known: &mut Known, seed: u64) {
    read_all(store, known);
    list(store, known);
    let stats = store.stats().expect("counts");
    assert!(stats.bytes <= stats.capacity_bytes.expect("a file has one"), "{stats:?}");
    assert_eq!(store.len().expect("a count"), stats.entries);
    assert_eq!(store.bytes().expect("a count"), stats.bytes);
    if seed % 5 == 0 {
        clear(store, known);
    }
    change_all(store, known, seed);
    read_all(store, known);
    fill(store, known, seed);
    read_all(store, known);
    list(store, known);
    store.flush(Durability::Visible).expect("visible");
    if seed % 2 == 0 {
        return;
    }
    clear(store, known);
    fill(store, known, seed + 1);
    read_all(store, known);
}

fn clear(store: &dyn Store, known: &mut Known) {
    store.clear().expect("a clearing");
    known.clear();
    read_all(store, known);
    assert_eq!(list(store, known), 0);
    assert_eq!(store.len().expect("a count"), 0);
}
