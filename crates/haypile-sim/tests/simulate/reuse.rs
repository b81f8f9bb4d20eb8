//! Stack distances against a list that is kept in order of last access.

use haypile_sim::reuse::{StackDistances, WeightedStackDistances};
use proptest::prelude::*;

/// Keys and weights, the most recently accessed last.
#[derive(Default)]
struct Naive(Vec<(u32, u64)>);

impl Naive {
    fn access(&mut self, id: u32, weight: u64) -> Option<(u64, u64)> {
        let position = self.0.iter().position(|&(other, _)| other == id);
        let distance = position.map(|position| {
            let since = &self.0[position + 1..];
            (since.len() as u64, since.iter().map(|&(_, weight)| weight).sum())
        });
        if let Some(position) = position {
            self.0.remove(position);
        }
        self.0.push((id, weight));
        distance
    }
}

fn compare(accesses: impl IntoIterator<Item = (u32, u64)>, with_keys: Option<u32>) {
    let mut naive = Naive::default();
    let mut counts = with_keys.map_or_else(StackDistances::default, StackDistances::with_keys);
    let mut bytes =
        with_keys.map_or_else(WeightedStackDistances::default, WeightedStackDistances::with_keys);
    for (n, (id, weight)) in accesses.into_iter().enumerate() {
        let expected = naive.access(id, weight);
        assert_eq!(counts.access(id), expected.map(|(count, _)| count), "access {n}");
        assert_eq!(bytes.access(id, weight), expected.map(|(_, bytes)| bytes), "access {n}");
    }
    assert_eq!(counts.keys(), naive.0.len());
    assert_eq!(bytes.total_weight(), naive.0.iter().map(|&(_, weight)| weight).sum::<u64>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_to_a_list(
        // Skewed: most draws fall on few keys. Long enough for several renumberings.
        accesses in prop::collection::vec((0_u32..900, 0_u32..900, 0_u64..1 << 33), 0..4000),
        with_keys in prop::option::of(0_u32..2000),
    ) {
        compare(accesses.into_iter().map(|(a, b, weight)| (a.min(b), weight)), with_keys);
    }

    #[test]
    fn equal_to_a_list_at_every_number_of_keys(keys in 1_u32..1600, accesses in 1_u32..5000) {
        // A loop: every key is live, so that renumbering keeps blocks of every fill.
        compare((0..accesses).map(|n| (n % keys, u64::from(n))), None);
    }
}

/// Keys in an LRU cache, the most recently accessed last.
struct Lru {
    capacity: usize,
    keys: Vec<u32>,
}

impl Lru {
    /// Whether the key was there.
    fn remove(&mut self, id: u32) -> bool {
        let position = self.keys.iter().position(|&other| other == id);
        position.map(|position| self.keys.remove(position)).is_some()
    }

    /// Whether it hit.
    fn access(&mut self, id: u32) -> bool {
        let hit = self.remove(id);
        if self.keys.len() == self.capacity {
            self.keys.remove(0);
        }
        self.keys.push(id);
        hit
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn distances_tell_the_hits_of_every_lru_cache_with_removals(
        accesses in prop::collection::vec((0_u32..40, 0_u32..40, prop::bool::weighted(0.2)), 0..3000),
    ) {
        let mut caches: Vec<Lru> =
            (1..=41).map(|capacity| Lru { capacity, keys: Vec::new() }).collect();
        let mut distances = StackDistances::default();
        for (n, (a, b, remove)) in accesses.into_iter().enumerate() {
            let id = a.min(b);
            let distance = if remove { distances.remove(id) } else { distances.access(id) };
            for cache in &mut caches {
                let hit = if remove { cache.remove(id) } else { cache.access(id) };
                let expected = distance.is_some_and(|distance| distance < cache.capacity as u64);
                prop_assert_eq!(hit, expected, "access {}, capacity {}", n, cache.capacity);
            }
        }
        prop_assert_eq!(distances.keys(), caches[40].keys.len());
    }

    #[test]
    fn removed_bytes_leave_holes(
        accesses in prop::collection::vec((0_u32..300, any::<u8>(), prop::bool::weighted(0.3)), 0..3000),
    ) {
        let mut holes = Holes::default();
        let mut bytes = WeightedStackDistances::default();
        for (id, weight, remove) in accesses {
            let weight = u64::from(weight);
            if remove {
                prop_assert_eq!(bytes.remove(id), holes.remove(id));
            } else {
                prop_assert_eq!(bytes.access(id, weight), holes.access(id, weight));
            }
            prop_assert_eq!(bytes.weight(id), holes.weight(id));
        }
        let total: u64 = holes.0.iter().filter(|(id, _)| id.is_some()).map(|(_, weight)| weight).sum();
        prop_assert_eq!(bytes.total_weight(), total);
    }
}

/// Keys, or holes, and what they weigh, the most recently accessed last.
#[derive(Default)]
struct Holes(Vec<(Option<u32>, u64)>);

impl Holes {
    fn position(&self, id: u32) -> Option<usize> {
        self.0.iter().position(|(other, _)| *other == Some(id))
    }

    fn weight(&self, id: u32) -> Option<u64> {
        self.position(id).map(|position| self.0[position].1)
    }

    fn remove(&mut self, id: u32) -> Option<u64> {
        let position = self.position(id)?;
        self.0[position].0 = None;
        Some(self.0[position + 1..].iter().map(|(_, weight)| weight).sum())
    }

    fn access(&mut self, id: u32, weight: u64) -> Option<u64> {
        let position = self.position(id);
        let behind = position.map_or(0, |position| position + 1);
        let distance = self.0[behind..].iter().map(|(_, weight)| weight).sum();
        let mut left = weight;
        for (other, room) in self.0[behind..].iter_mut().rev() {
            if other.is_none() {
                let filled = left.min(*room);
                *room -= filled;
                left -= filled;
            }
        }
        if let Some(position) = position {
            self.0[position] = (None, weight - left);
        }
        self.0.push((Some(id), weight));
        position.map(|_| distance)
    }
}

#[test]
fn one_key_for_ever_needs_no_memory() {
    let mut distances = StackDistances::default();
    assert_eq!(distances.access(0), None);
    for _ in 0..100_000 {
        assert_eq!(distances.access(0), Some(0));
    }
}
