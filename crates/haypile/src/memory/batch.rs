//! Batches of keys: the memory that their operations read is prefetched for several keys at once, so that they wait for
//! it together.
//!
//! The steps of a lookup depend on each other: the index names the slot, the slot has the address of the
//! record. Each step is taken for all keys before the next, under a lock that is held for that key and step
//! only. What changes in between makes a prefetch useless and nothing else: the operation itself comes after
//! them, and is that of a single key.

use haypile_policy::{Policy, Slot};

use super::contents::{Contents, HashedKey};
use super::lock::ReadGuard;
use super::{MAX_KEY_BYTES, MemoryStore};
use crate::error::Result;
use crate::store::{Found, check_key};
use crate::write::{SetOptions, Written};

/// Keys whose memory is fetched together: more than a core has cache misses under way, and few enough
/// that none is displaced before it is used.
const TOGETHER: usize = 16;

/// In a store of fewer bytes the operations wait so little for memory that prefetching costs more.
const WORTHWHILE_BYTES: u64 = 8 << 20;

impl<P: Policy> MemoryStore<P> {
    pub(super) fn read_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(TOGETHER) {
            let mut hashed = [HashedKey { bytes: &[], fingerprint: 0 }; TOGETHER];
            for (hashed, key) in hashed.iter_mut().zip(keys) {
                *hashed = self.key(key)?;
            }
            let hashed = &hashed[..keys.len()];
            self.prefetch(hashed, |shard| {
                // As a single read does, which makes these locks cheap where reads are frequent.
                if P::SHARED_HITS { shard.read_often() } else { shard.read() }
            });
            for key in hashed {
                let mut buffer = Vec::new();
                found.push(self.copy_hashed(*key, &mut buffer)?.map(|hit| (buffer, hit)));
            }
        }
        Ok(found)
    }

    pub(super) fn write_many(
        &self,
        entries: &[(&[u8], &[u8], SetOptions)],
    ) -> Vec<Result<Written>> {
        let mut written = Vec::with_capacity(entries.len());
        for entries in entries.chunks(TOGETHER) {
            let hashed = self.prefetch_to_change(entries.iter().map(|(key, ..)| *key));
            let set = |(key, (_, value, options)): (&HashedKey<'_>, &(_, &[u8], SetOptions))| {
                self.set_hashed(*key, value, options)
            };
            written.extend(hashed.iter().zip(entries).map(set));
        }
        written
    }

    pub(super) fn remove_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        let mut deleted = Vec::with_capacity(keys.len());
        for keys in keys.chunks(TOGETHER) {
            let hashed = self.prefetch_to_change(keys.iter().copied());
            let delete = |key: &HashedKey<'_>| {
                check_key(self, key.bytes, MAX_KEY_BYTES)?;
                self.delete_hashed(*key)
            };
            deleted.extend(hashed.iter().take(keys.len()).map(delete));
        }
        deleted
    }

    /// Hashes [`TOGETHER`] keys at most, and prefetches what changes to their entries read. A key that
    /// is too long is hashed as well.
    fn prefetch_to_change<'a>(
        &self,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> [HashedKey<'a>; TOGETHER] {
        let mut hashed = [HashedKey { bytes: &[], fingerprint: 0 }; TOGETHER];
        let len = keys.len();
        for (hashed, key) in hashed.iter_mut().zip(keys) {
            *hashed = HashedKey { bytes: key, fingerprint: self.hasher.fingerprint(key) };
        }
        // A change ends the bias of the lock: reads must not begin one here.
        self.prefetch(&hashed[..len], |shard| shard.read());
        hashed
    }

    /// Prefetches what lookups of these keys read.
    fn prefetch<'a>(
        &'a self,
        keys: &[HashedKey<'_>],
        lock: impl Fn(&'a super::BiasedLock<Contents<P>>) -> ReadGuard<'a, Contents<P>>,
    ) {
        let shard = |key: &HashedKey<'_>| lock(&self.shards[self.shard_of(key.fingerprint)].0);
        let Some((first, others)) = keys.split_first() else { return };
        // Keys are spread evenly over the shards, so that one of them tells how large all are.
        if others.is_empty() || shard(first).bytes() * (self.shards.len() as u64) < WORTHWHILE_BYTES
        {
            return;
        }
        for key in keys {
            shard(key).prefetch_index(*key);
        }
        let mut slots: [Option<Slot>; TOGETHER] = [None; TOGETHER];
        for (slot, key) in slots.iter_mut().zip(keys) {
            *slot = shard(key).prefetch_slot(*key);
        }
        for (slot, key) in slots.iter().zip(keys) {
            if let Some(slot) = slot {
                shard(key).prefetch_record(*slot);
            }
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::super::MemoryBuilder;
    use super::*;
    use crate::error::Error;

    const VALUE_BYTES: usize = 2000;

    fn key(number: usize) -> Vec<u8> {
        format!("key {number}").into_bytes()
    }

    /// Larger than [`WORTHWHILE_BYTES`], so that prefetches happen, of some keys that are there and others
    /// that are not, one twice in a call, and texts that are not valid keys.
    #[test]
    fn many_keys_by_one_call_are_those_of_many_calls() {
        let store = MemoryBuilder::new(64 << 20).store().expect("a store");
        let entries: Vec<(Vec<u8>, Vec<u8>)> = (0..8_000)
            .map(|number| (key(number), vec![number.to_le_bytes()[0]; VALUE_BYTES]))
            .collect();
        for call in entries.chunks(37) {
            let call: Vec<_> =
                call.iter().map(|(key, value)| (&key[..], &value[..], SetOptions::set())).collect();
            let written = store.set_many(&call);
            assert_eq!(written.len(), call.len());
            assert!(written.iter().all(|written| matches!(written, Ok(Written::Stored))));
        }
        assert!(store.bytes().expect("open") > 2 * WORTHWHILE_BYTES);
        for size in [0_usize, 1, 15, 16, 17, 64, 100] {
            let numbers = (0..size).map(|step| (step * 7_919) % 9_000);
            let keys: Vec<Vec<u8>> = numbers.chain((size > 0).then_some(0)).map(key).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let before = store.stats().expect("open");
            let found = store.get_many(&keys).expect("read");
            let after = store.stats().expect("open");
            assert_eq!(found.len(), keys.len());
            let mut hits = 0;
            for (key, found) in keys.iter().zip(found) {
                let mut value = Vec::new();
                let hit = store.get_into(key, &mut value).expect("read");
                hits += u64::from(hit.is_some());
                assert_eq!(found, hit.map(|hit| (value, hit)));
            }
            assert_eq!(after.hits - before.hits, hits);
            assert_eq!(after.misses - before.misses, keys.len() as u64 - hits);
        }
        let some: Vec<Vec<u8>> = (7_990..8_010).map(key).collect();
        let some: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
        let deleted: Vec<bool> =
            store.delete_many(&some).into_iter().map(|deleted| deleted.expect("deleted")).collect();
        assert_eq!(deleted, [[true; 10], [false; 10]].as_flattened());
        assert!(store.get_many(&some).expect("read").iter().all(Option::is_none));
    }

    #[test]
    fn a_key_that_is_no_key_fails_alone_where_many_are_changed() {
        let store = MemoryBuilder::new(1 << 20).store().expect("a store");
        let long = vec![0; MAX_KEY_BYTES + 1];
        let entries = [&b"a"[..], &long, b"b"].map(|key| (key, &b"value"[..], SetOptions::set()));
        let written = store.set_many(&entries);
        assert!(matches!(&written[..], [Ok(_), Err(Error::KeyTooLong { .. }), Ok(_)]));
        assert!(store.get_many(&[b"a", &long]).is_err());
        let deleted = store.delete_many(&[b"a", &long, b"b", b"c"]);
        let [Ok(true), Err(Error::KeyTooLong { .. }), Ok(true), Ok(false)] = &deleted[..] else {
            panic!("{deleted:?}");
        };
        store.close().expect("closed");
        assert!(store.set_many(&entries).iter().all(Result::is_err));
        assert!(store.get_many(&[b"a", b"b"]).is_err());
        assert!(store.delete_many(&[b"a", b"b"]).iter().all(Result::is_err));
    }
}
