//! Operations on many keys, which call the lower level once.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::levels::Levels;
use super::options::Life;
use super::read::Waiting;
use super::stripes::HeldStripe;
use super::trailer::Known;
use crate::error::Result;
use crate::mutant;
use crate::store::Found;
use crate::write::{SetOptions, Written};

impl Levels {
    /// Deletes keys from the upper level of the cache, and keeps other threads from copying them
    /// there until the returned locks are dropped; also returns the time of the deletion.
    pub(super) fn change_many(&self, keys: &[&[u8]]) -> (Vec<HeldStripe<'_>>, u64) {
        let held = self.stripes.hold_many(keys.iter().copied());
        let began_ns = self.clock.now_ns();
        for error in self.upper.delete_many(keys).into_iter().filter_map(Result::err) {
            self.counts.upper_failed(&error);
        }
        (held, began_ns)
    }

    /// Returns the values of several keys from the upper level of the cache; those that it does not
    /// have are read by one call of the lower level.
    pub(super) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let mut found = match self.upper.get_many(keys) {
            Ok(found) => found.into_iter().map(|found| self.served(found)).collect(),
            Err(error) => {
                self.counts.upper_failed(&error);
                vec![None; keys.len()]
            }
        };
        let mut missing = Vec::new();
        for (place, found) in found.iter_mut().enumerate().filter(|(_, found)| found.is_none()) {
            let asked = self.ask(keys[place]);
            match self.waiting(keys[place]) {
                Waiting::Nothing => missing.push((place, asked)),
                Waiting::Gone => {}
                Waiting::Value(value, hit) => *found = Some((value.to_vec(), hit)),
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        let asked_for: Vec<&[u8]> = missing.iter().map(|(place, _)| keys[*place]).collect();
        match self.lower.get_many(&asked_for) {
            Err(error) => self.unread(error, missing.len())?,
            Ok(below) => {
                for ((place, asked), below) in missing.iter().zip(below) {
                    if let Some((value, hit)) = &below {
                        self.promote(asked, keys[*place], value, *hit, false);
                    }
                    found[*place] = below.map(|(value, hit)| (value, hit.below()));
                }
            }
        }
        Ok(found)
    }

    fn served(&self, found: Found) -> Found {
        let (mut kept, copy) = found?;
        let (value_bytes, hit) = self.serve(&kept, copy, false)?;
        kept.truncate(value_bytes);
        Some((kept, hit))
    }

    /// Writes several values by one call of the lower level of the cache, and returns the outcome
    /// of each. Deferred writes are queued one after the other.
    pub(super) fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        if self.queue().is_some() {
            let set =
                |(key, value, options): &(&[u8], &[u8], SetOptions)| self.set(key, value, options);
            return entries.iter().map(set).collect();
        }
        let keys: Vec<&[u8]> = entries.iter().map(|(key, ..)| *key).collect();
        let (held, began_ns) = self.change_many(&keys);
        let results = self.lower.set_many(entries);
        let last = has_repeats(&keys).then(|| last_of_each(&keys, &results));
        for (place, ((key, value, options), result)) in entries.iter().zip(&results).enumerate() {
            let is_last = last.as_ref().is_none_or(|last| last.get(key) == Some(&place));
            if let Ok(Written::Stored) = result
                && let Some(Life(life)) = self.options.life(options.ttl)
                && (is_last || mutant::is_on("many-writes-leave-an-older-copy"))
            {
                let held = self.stripes.among(&held, key);
                self.put(held, key, value, Known::Nothing, life, began_ns);
            }
        }
        results
    }

    pub(super) fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        if self.queue().is_some() {
            return keys.iter().map(|key| self.delete(key)).collect();
        }
        let _change = self.change_many(keys);
        self.lower.delete_many(keys)
    }
}

/// Whether a key may be among these twice. Without that, which is the usual case, no table of keys is needed.
fn has_repeats(keys: &[&[u8]]) -> bool {
    let mut hashes: Vec<u64> = keys.iter().map(|key| xxh3_64(key)).collect();
    hashes.sort_unstable();
    hashes.windows(2).any(|pair| pair[0] == pair[1])
}

/// Returns the place of the last write of each key. One whose condition did not hold has changed nothing; one
/// that failed may have.
fn last_of_each<'a>(keys: &[&'a [u8]], results: &[Result<Written>]) -> HashMap<&'a [u8], usize> {
    let writes = keys.iter().zip(results).enumerate();
    let writes =
        writes.filter(|(_, (_, result))| !matches!(result, Ok(written) if !written.is_stored()));
    writes.map(|(place, (key, _))| (*key, place)).collect()
}
