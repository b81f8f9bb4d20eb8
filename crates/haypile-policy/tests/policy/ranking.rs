//! Restoring a ranking: the new policy decides approximately like the old one.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::driver::{Cache, Event, Op, Setup};
use crate::every::SPECS;
use crate::invariants::check;
use crate::requests::{cases, stress};

/// Policies whose ranking is exactly the order in which a shrinking cache evicts. The others keep
/// state that ranks differently for a while: the balance of ARC, a main queue of S3-FIFO above its
/// share, segments that only newcomers push entries out of.
const EXACT: [&str; 6] = ["fifo", "lru", "slru4", "clock", "sieve", "lirs"];

/// RelStorage's eden is evicted last when no newcomer pushes, and is ranked behind protected: of
/// the half ranked best a fifth is missing.
const EDEN_LEAVES_LAST: [&str; 2] = ["slru", "slru:overflow=1"];

/// Returns a new cache of the same kind and capacity with the entries restored.
fn restored(setup: &Setup<'_>, old: &dyn Cache) -> Box<dyn Cache> {
    let mut fresh = Setup { capacity: old.capacity(), ..*setup }.by_slot();
    let weights = old.entries();
    for (key, uses) in old.ranking().into_iter().rev() {
        fresh.restore(key, weights[&key], uses);
    }
    fresh
}

/// Returns the keys in the order of eviction without a newcomer.
fn evict_everything(mut cache: Box<dyn Cache>) -> Vec<u32> {
    let mut order = Vec::new();
    while !cache.entries().is_empty() {
        order.extend(cache.evict_one());
    }
    order
}

fn per_cent_of_best_kept(ranking: &[u32], leaving: &[u32]) -> usize {
    let half = ranking.len() / 2;
    let best: BTreeSet<&u32> = ranking[..half].iter().collect();
    100 * leaving[half..].iter().filter(|key| best.contains(key)).count() / half
}

#[test]
fn a_full_cache_of_objects_comes_back() {
    for (seed, spec) in (1..).zip(SPECS) {
        let setup = Setup { spec, capacity: 400, weighted: false, keys: 2000 };
        let mut old = setup.by_slot();
        for op in stress(seed, 15_000, 2000, 400, 1) {
            if !matches!(op, Op::Resize(_)) {
                old.apply(op);
            }
        }
        let ranking: Vec<u32> = old.ranking().into_iter().map(|(key, _)| key).collect();
        assert!(ranking.len() > 350, "{spec}: only {}", ranking.len());
        let fresh = restored(&setup, &*old);
        assert_eq!(fresh.entries(), old.entries(), "{spec}");

        let reversed: Vec<u32> = ranking.iter().rev().copied().collect();
        let leaving_fresh = evict_everything(fresh);
        if EDEN_LEAVES_LAST.contains(&spec) {
            assert_eq!(per_cent_of_best_kept(&ranking, &leaving_fresh), 80, "{spec}");
        } else {
            assert_eq!(leaving_fresh, reversed, "{spec}");
        }

        let leaving_old = evict_everything(old);
        if EXACT.contains(&spec.split(':').next().expect("a name")) {
            assert_eq!(leaving_old, reversed, "{spec}");
        } else {
            let kept = per_cent_of_best_kept(&ranking, &leaving_old);
            assert!(kept >= 70, "{spec}: the old cache kept {kept} % of the half ranked best");
        }
    }
}

/// Worked by hand: entries of the main queue by hits, the one that has earned its place behind
/// them, the main queue's entry without hits, and the rest of the small queue.
/// them, the main queue's entry without hits, and the rest of the small queue.
#[test]
fn s3fifo_ranks_by_hits_and_queue() {
    let mut cache = crate::driver::objects("s3fifo", 10);
    cache.read([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10]);
    assert_eq!(cache.queues(), "small 1 2 3 4 5 6 7 8 9 10 | main | ghost");
    cache.read([11]);
    assert_eq!(cache.queues(), "small 10 11 | main 1 2 3 4 5 6 7 8 | ghost 9");
    cache.read([2, 3, 3, 10]);
    let ranking = cache.ranking();
    let uses_1 = [8, 7, 6, 5, 4, 1].map(|key| (key, 1));
    assert_eq!(ranking[..3], [(3, 2), (2, 1), (10, 1)]);
    assert_eq!(ranking[3..9], uses_1);
    assert_eq!(ranking[9..], [(11, 0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Also with weights, where slightly less may be restored than was there.
    #[test]
    fn a_ranking_has_each_entry_once_and_can_be_brought_back(case in cases()) {
        for spec in SPECS {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            for mut cache in [setup.by_slot(), setup.by_fingerprint()] {
                for op in &case.ops {
                    cache.apply(*op);
                }
                let ranking = cache.ranking();
                let keys: BTreeSet<u32> = ranking.iter().map(|(key, _)| *key).collect();
                prop_assert_eq!(keys.len(), ranking.len(), "{}", spec);
                prop_assert!(keys.iter().eq(cache.entries().keys()), "{}", spec);
                let fresh = restored(&setup, &*cache);
                check(&*fresh, spec);
            }
        }
    }

    /// Uses that no ranking of this policy has, as from a file or another policy's ranking.
    #[test]
    fn any_uses_can_be_brought_back(entries in prop::collection::vec((0..9u64, any::<u8>()), 1..40)) {
        for spec in SPECS {
            let mut cache = Setup { spec, capacity: 60, weighted: true, keys: 40 }.by_slot();
            for (key, (weight, uses)) in (0..).zip(&entries) {
                let events = cache.restore(key, *weight, *uses);
                prop_assert!(!events.contains(&Event::Hit(key)));
                check(&*cache, spec);
            }
        }
    }
}
