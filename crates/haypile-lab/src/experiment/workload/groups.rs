//! The keys of RelStorage's local client tests, and the orders in which they are asked for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// Number of key groups in RelStorage's workloads.
pub const GROUPS: u32 = 400;

/// Number of keys in each group of RelStorage's workloads. Some keys are in several groups.
pub const KEYS_PER_GROUP: u32 = 400;

/// Size of each value in RelStorage's workloads, in bytes.
pub const VALUE_BYTES: u32 = 1_024;

/// The bound on the cache in RelStorage's workloads, in bytes of keys and values.
pub const LIMIT_BYTES: u64 = 100_000_000;

/// The keys of RelStorage's workloads in groups, numbered in order of first appearance.
///
/// Group `i` holds the strings str(i) + str(j) for j from 0 to 399; group 0 holds str(j).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    keys: Vec<String>,
    members: Vec<Vec<u32>>,
    hash_order: Vec<u32>,
}

impl Groups {
    /// Creates the key groups of RelStorage's workloads: 400 groups of 400 keys, of which 145,480
    /// are distinct.
    pub fn new() -> Self {
        let mut keys = Vec::new();
        let mut numbers = HashMap::new();
        let mut number_of = |key: String| match numbers.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                let number = u32::try_from(keys.len()).expect("there are at most 160,000 keys");
                keys.push(vacant.key().clone());
                *vacant.insert(number)
            }
        };
        let key = |group: u32, member: u32| match group {
            0 => member.to_string(),
            _ => format!("{group}{member}"),
        };
        let members = (0..GROUPS)
            .map(|group| (0..KEYS_PER_GROUP).map(|member| number_of(key(group, member))).collect())
            .collect();
        let mut hash_order: Vec<u32> = (0..).take(keys.len()).collect();
        hash_order.sort_by_cached_key(|&number| python_hash(&keys[number as usize]));
        Self { keys, members, hash_order }
    }

    /// Returns the distinct keys of RelStorage's workloads, in order of first appearance.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns the numbers of the keys in each group of RelStorage's workloads: 400 groups of 400.
    pub fn members(&self) -> &[Vec<u32>] {
        &self.members
    }

    /// Returns the sum of the key groups' lengths, which counts a key once for each group that it
    /// is in.
    pub fn slots(&self) -> usize {
        self.members.iter().map(Vec::len).sum()
    }

    /// Returns the numbers of all keys of RelStorage's workloads, in the order of the keys' hashes
    /// in Python.
    ///
    /// It is the order of the source: the keys sorted by their hash in Python 3.4 with
    /// PYTHONHASHSEED=0, which is SipHash-2-4 of the characters with a key of zeros, as a signed
    /// number of 64 bits.
    pub fn hash_order(&self) -> &[u32] {
        &self.hash_order
    }
}

impl Default for Groups {
    fn default() -> Self {
        Self::new()
    }
}

/// `hash(text)` of Python 3.4 with PYTHONHASHSEED=0, for text in ASCII.
fn python_hash(text: &str) -> i64 {
    let mut hasher = SipHasher24::new();
    hasher.write(text.as_bytes());
    match hasher.finish().cast_signed() {
        // Python keeps this one for errors.
        -1 => -2,
        hash => hash,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_have_the_counts_of_the_definition() {
        let groups = Groups::new();
        assert_eq!((groups.slots(), groups.keys().len()), (160_000, 145_480));
        let value_bytes = groups.keys().len() * VALUE_BYTES as usize;
        assert_eq!(value_bytes, 148_971_520, "142 MiB");
        assert_eq!(value_bytes >> 20, 142);
    }

    #[test]
    fn groups_are_made_as_the_source_makes_them() {
        let groups = Groups::new();
        let key = |group: usize, member: usize| {
            groups.keys()[groups.members()[group][member] as usize].as_str()
        };
        assert_eq!(
            (key(0, 0), key(0, 399), key(1, 0), key(399, 399)),
            ("0", "399", "10", "399399")
        );
        assert_eq!(groups.members()[1][0], groups.members()[0][10], "both are '10'");
        assert_eq!(groups.members()[0], (0..400).collect::<Vec<u32>>());
    }

    /// Known answers of a model in Python, which gives `CPython` 3.11's own hash('0') and
    /// hash('399399') when it is told to do the rounds of SipHash-1-3.
    #[test]
    fn hashes_are_those_of_python_3_4() {
        assert_eq!(python_hash("0"), -5_282_990_986_457_227_702);
        assert_eq!(python_hash("399399"), -8_140_114_139_366_631_231);
        let groups = Groups::new();
        let order = groups.hash_order();
        let names = |numbers: &[u32]| -> Vec<&str> {
            numbers.iter().map(|&number| groups.keys()[number as usize].as_str()).collect()
        };
        assert_eq!(names(&order[..5]), ["354154", "18175", "9536", "15550", "386333"]);
        assert_eq!(
            names(&order[order.len() - 5..]),
            ["123246", "304371", "215274", "306313", "17435"]
        );
    }

    #[test]
    fn hash_order_has_every_key_once() {
        let groups = Groups::new();
        let mut order = groups.hash_order().to_vec();
        order.sort_unstable();
        assert!(order.into_iter().eq(0..145_480));
    }
}
