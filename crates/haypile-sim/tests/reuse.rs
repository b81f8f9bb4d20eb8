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

#[test]
fn one_key_for_ever_needs_no_memory() {
    let mut distances = StackDistances::default();
    assert_eq!(distances.access(0), None);
    for _ in 0..100_000 {
        assert_eq!(distances.access(0), Some(0));
    }
}
