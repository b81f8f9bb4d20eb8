//! The bound on entries that have no response: what a process knows of targets whose responses are not
//! stored.
//!
//! Each miss writes one, so that an invalidation reaches the response on its way, and a target that is not
//! cacheable keeps it, with its outcome. There may be far more of these targets than pages that are worth
//! their room.
//!
//! - **In a file**, the entries of targets without a request on its way are 65,536 at most, and take one hundredth of
//!   the file at most, over all of its processes and those that have ended: the [`register`](super::register) in the
//!   file has them. Of those whose hashes lead to the same line of it, the oldest goes first, so that a few are deleted
//!   before the register is full.
//! - **In other stores** each process keeps the same number for itself, the oldest of which goes first. Memory belongs
//!   to one process; servers evict what is not read.
//! - **Entries of requests on their way** are bounded in each process: one hundredth of the store, but at least 1,024. A
//!   process that is killed leaves those of its requests, until their lifetime of an hour is over or the store evicts
//!   what nobody reads.

use std::collections::{BTreeMap, HashMap};

use haypile::Store;
use parking_lot::Mutex;

use super::hash_key;
use super::register::Register;

/// The most targets without a response whose entries are kept: by all processes of a file together, or by each process
/// of another store.
const MOST_TARGETS: usize = 64 << 10;
/// The part of a store that their entries may take: one hundredth.
const SHARE: u64 = 100;
/// The number of requests whose entries are kept while they are on their way, however small the store is.
const LEAST_ON_THEIR_WAY: usize = 1_024;
/// The approximate number of bytes that a store needs for an entry in addition to its value: for the key and the record.
const RECORD_BYTES: u64 = 144;
/// The length of the value of an entry whose outcome is known, in bytes.
const KNOWN_BYTES: u64 = 60;

/// The entries without responses that this process has written, the oldest of which are deleted when they are too many.
///
/// In a file, the entries of targets whose outcome is known are listed in the file instead, for all of its processes.
#[derive(Debug)]
pub(super) struct Bare {
    most_bytes: u64,
    register: Option<Register>,
    listed: Mutex<Listed>,
}

/// The list of the entries, in two classes with a bound each.
#[derive(Debug, Default)]
struct Listed {
    places: HashMap<u128, Place>,
    known: Class,
    on_their_way: Class,
    next: u64,
}

/// The entries of targets whose requests are on their way, or of those whose outcome is known, in the order in which they
/// were written.
#[derive(Debug, Default)]
struct Class {
    order: BTreeMap<u64, u128>,
    bytes: u64,
}

/// An entry without responses as it was written last.
#[derive(Debug)]
struct Place {
    number: u64,
    is_known: bool,
    value: Vec<u8>,
}

impl Place {
    fn bytes(&self) -> u64 {
        RECORD_BYTES + self.value.len() as u64
    }
}

impl Listed {
    fn class(&mut self, is_known: bool) -> &mut Class {
        if is_known { &mut self.known } else { &mut self.on_their_way }
    }

    fn remove(&mut self, hash: u128) -> Option<Place> {
        let place = self.places.remove(&hash)?;
        let class = self.class(place.is_known);
        class.order.remove(&place.number);
        class.bytes -= place.bytes();
        Some(place)
    }

    fn insert(&mut self, hash: u128, is_known: bool, value: Vec<u8>) {
        self.remove(hash);
        let place = Place { number: self.next, is_known, value };
        self.next += 1;
        let class = self.class(is_known);
        class.order.insert(place.number, hash);
        class.bytes += place.bytes();
        self.places.insert(hash, place);
    }
}

impl Bare {
    /// Creates the bound for a store of this capacity in bytes (`None` if that is unknown). `is_shared` says that other
    /// processes keep entries in the store, those that have ended included, which count as well.
    pub(super) fn new(capacity_bytes: Option<u64>, is_shared: bool) -> Self {
        let most_bytes = capacity_bytes.map_or(u64::MAX, |bytes| bytes / SHARE);
        let most = usize::try_from(most_bytes / (RECORD_BYTES + KNOWN_BYTES));
        let most = most.map_or(MOST_TARGETS, |most| most.min(MOST_TARGETS));
        let register = is_shared.then(|| Register::new(most));
        Self { most_bytes, register, listed: Mutex::default() }
    }

    /// Records that the entry of a target, by the hash of its name, has this value now and no response, and deletes the
    /// oldest such entries if they are too many. `is_known` says that no request for the target is on its way.
    pub(super) fn keep(&self, store: &dyn Store, hash: u128, value: Vec<u8>, is_known: bool) {
        if let (Some(register), true) = (&self.register, is_known) {
            self.forget(hash);
            return register.add(store, hash, &value);
        }
        let gone = {
            let mut listed = self.listed.lock();
            listed.insert(hash, is_known, value);
            self.overdue(&mut listed)
        };
        delete(store, gone);
    }

    /// Whether an entry without responses awaits the end of its request.
    pub(super) fn is_on_its_way(&self, hash: u128) -> bool {
        self.listed.lock().places.get(&hash).is_some_and(|place| !place.is_known)
    }

    /// Records that the request for a target is over, whose entry got no response.
    pub(super) fn settle(&self, store: &dyn Store, hash: u128) {
        let removed = self.listed.lock().remove(hash);
        if let Some(place) = removed {
            self.keep(store, hash, place.value, true);
        }
    }

    /// Records that the entry of a target has a response now.
    pub(super) fn forget(&self, hash: u128) {
        self.listed.lock().remove(hash);
    }

    /// Removes the oldest entries that are too many from the list, and returns them.
    fn overdue(&self, listed: &mut Listed) -> Vec<(u128, Vec<u8>)> {
        let mut gone = Vec::new();
        for (is_known, least) in [(true, 0), (false, LEAST_ON_THEIR_WAY)] {
            while let Some(hash) = self.oldest_overdue(listed.class(is_known), least) {
                let place = listed.remove(hash).expect("it is in the order");
                gone.push((hash, place.value));
            }
        }
        gone
    }

    /// Returns the oldest entry of a class that has too many, of which `least` may have any number of bytes.
    fn oldest_overdue(&self, class: &Class, least: usize) -> Option<u128> {
        let number = class.order.len();
        let is_overdue = number > MOST_TARGETS || (number > least && class.bytes > self.most_bytes);
        class.order.values().next().filter(|_| is_overdue).copied()
    }
}

/// Deletes entries that still have the value that this process wrote.
fn delete(store: &dyn Store, entries: Vec<(u128, Vec<u8>)>) {
    for (hash, value) in entries {
        // One that stays is one too many, and its lifetime is short.
        let _ = store.compare_and_delete(&hash_key(hash), &value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cache, has, write};
    use super::*;

    #[test]
    fn the_oldest_of_too_many_are_deleted_unless_another_has_written_them() {
        let (cache, bare) = (cache(), Bare::new(Some(100 * 10 * (RECORD_BYTES + 4)), false));
        for hash in 0..20 {
            write(&cache, hash, b"mine");
            if hash == 3 {
                write(&cache, hash, b"another's");
            }
            bare.keep(&**cache.store(), hash, b"mine".to_vec(), true);
        }
        let left: Vec<u128> = (0..20).filter(|hash| has(&cache, *hash)).collect();
        assert_eq!(left, [3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
        // One that was written again is the youngest, and one that has a response counts no more.
        bare.keep(&**cache.store(), 10, b"mine".to_vec(), true);
        bare.forget(11);
        for hash in 20..22 {
            bare.keep(&**cache.store(), hash, b"mine".to_vec(), true);
        }
        assert!(has(&cache, 10) && has(&cache, 11) && !has(&cache, 12) && has(&cache, 13));
    }

    #[test]
    fn those_on_their_way_stay_until_their_requests_are_over() {
        let (cache, bare) = (cache(), Bare::new(Some(0), false));
        let store = &**cache.store();
        for hash in 0..500 {
            write(&cache, hash, b"mine");
            bare.keep(store, hash, b"mine".to_vec(), false);
        }
        assert!((0..500).all(|hash| has(&cache, hash)));
        bare.settle(store, 7);
        assert!(!has(&cache, 7) && has(&cache, 8));
        for hash in 500..1_525 {
            write(&cache, hash, b"mine");
            bare.keep(store, hash, b"mine".to_vec(), false);
        }
        assert_eq!((0..1_525).filter(|hash| has(&cache, *hash)).count(), LEAST_ON_THEIR_WAY);
        let listed = bare.listed.lock();
        assert_eq!(listed.places.len(), LEAST_ON_THEIR_WAY);
        assert_eq!(listed.on_their_way.order.len(), LEAST_ON_THEIR_WAY);
        assert!(listed.known.order.is_empty() && listed.known.bytes == 0);
    }

    #[test]
    fn in_a_store_of_unknown_size_their_number_is_bounded() {
        let (cache, bare) = (cache(), Bare::new(None, false));
        for hash in 0..MOST_TARGETS as u128 + 5 {
            bare.keep(&**cache.store(), hash, Vec::new(), true);
        }
        let listed = bare.listed.lock();
        assert_eq!(listed.places.len(), MOST_TARGETS);
        assert_eq!(listed.known.bytes, RECORD_BYTES * MOST_TARGETS as u64);
    }
}
