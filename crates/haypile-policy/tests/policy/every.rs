//! Properties of every policy.

use haypile_policy::{PolicyKind, PolicySpec};
use proptest::prelude::*;

use crate::driver::{Event, Op, Setup};
use crate::invariants::{check, check_empties, remembers, run, same_decisions};
use crate::requests::{cases, stress, unless};

/// Every policy, also with parameters that select other code paths. haypile-sim tests the file store's.
pub(crate) const SPECS: [&str; 21] = [
    "fifo",
    "lru",
    "slru",
    "slru:eden=0,protected=0",
    "slru:eden=100,protected=100",
    "slru:overflow=1",
    "slru4",
    "clock",
    "clock:bits=3",
    "sieve",
    "s3fifo",
    "s3fifo:small=50,threshold=2,ghost=300",
    "s3fifo:ghost=0",
    "wtinylfu",
    "wtinylfu:window=20,protected=50",
    "arc",
    "arc:weighted=0",
    "lirs",
    "lirs:hir=25,stack=1",
    "lirs:hir=40,stack=5,demote=1",
    "slru4:fall=1",
];

fn kinds() -> impl Iterator<Item = &'static PolicyKind> {
    let is_policy = |kind: &&PolicyKind| {
        let spec: PolicySpec = kind.name.parse().expect("a policy has its name");
        !spec.is_of_file_store()
    };
    PolicySpec::kinds().iter().copied().filter(is_policy)
}

#[test]
fn every_policy_is_tested() {
    for kind in kinds() {
        assert!(SPECS.contains(&kind.name), "{} is missing from SPECS", kind.name);
    }
}

#[test]
fn a_hundred_thousand_requests_of_each_policy() {
    for (seed, kind) in (1..).zip(kinds()) {
        let ops = stress(seed, 100_000, 2000, 1500, 40);
        let setup = Setup { spec: kind.name, capacity: 1500, weighted: true, keys: 2000 };
        let mut cache = setup.by_slot();
        run(&mut *cache, kind.name, &ops, 9973);
        check_empties(cache, kind.name);
    }
}

#[test]
fn long_runs_of_objects_in_reused_slots() {
    for (seed, spec) in (1..).zip(SPECS) {
        let ops = stress(seed, 15_000, 2000, 400, 1);
        let setup = Setup { spec, capacity: 400, weighted: false, keys: 2000 };
        let mut cache = setup.by_fingerprint();
        run(&mut *cache, spec, &ops, 4999);
        check_empties(cache, spec);
    }
}

#[test]
fn tiny_caches() {
    for (seed, spec) in (1..).zip(SPECS) {
        for capacity in 0..4 {
            let ops = stress(seed, 2000, 300, capacity.max(1), 3);
            for weighted in [false, true] {
                let ops: Vec<Op> = ops.iter().map(|op| unless(weighted, *op)).collect();
                let setup = Setup { spec, capacity, weighted, keys: 300 };
                run(&mut *setup.by_slot(), spec, &ops, 10);
                run(&mut *setup.by_fingerprint(), spec, &ops, 10);
            }
        }
    }
}

/// Capacities whose shares are inexact in floating point, and the largest one.
#[test]
fn enormous_capacities() {
    let specs = SPECS.into_iter().chain(["wtinylfu:window=0", "s3fifo:small=90,ghost=1000"]);
    for spec in specs {
        for capacity in [(1 << 53) + 3, (1 << 60) + 1, u64::MAX - 1, u64::MAX] {
            let setup = Setup { spec, capacity, weighted: true, keys: 300 };
            let mut cache = setup.by_slot();
            run(&mut *cache, spec, &stress(1, 200, 300, capacity, 9), 50);
            cache.apply(Op::Resize(capacity));
        }
    }
}

/// Small enough for `cargo miri test -p haypile --test policy miri_smoke`: it takes minutes there.
#[test]
fn miri_smoke() {
    // The capacity shrinks once in the first 24 requests.
    let count = if cfg!(miri) { 24 } else { 200 };
    for (seed, spec) in (1..).zip(SPECS) {
        let ops = &stress(seed, 200, 40, 24, 5)[..count];
        let setup = Setup { spec, capacity: 24, weighted: true, keys: 40 };
        for mut cache in [setup.by_slot(), setup.by_fingerprint(), setup.with_shared_hits()] {
            run(&mut *cache, spec, ops, 50);
            check_empties(cache, spec);
        }
    }
}

/// Keys that share a fingerprint share its history, without other harm.
#[test]
fn colliding_fingerprints_do_no_harm() {
    for (seed, spec) in (1..).zip(SPECS) {
        for weighted in [false, true] {
            let ops = stress(seed, 3000, 200, 60, if weighted { 8 } else { 1 });
            let setup = Setup { spec, capacity: 60, weighted, keys: 200 };
            let mut cache = setup.with_collisions();
            for op in &ops {
                cache.apply(*op);
            }
        }
    }
}

/// Also while the capacity changes, which the property test below leaves out.
#[test]
fn by_slot_and_by_fingerprint_resize_alike() {
    for (seed, spec) in (1..).zip(SPECS) {
        let ops = stress(seed, 2000, 200, 60, 8);
        let setup = Setup { spec, capacity: 60, weighted: true, keys: 200 };
        same_decisions(&setup, setup.by_slot(), setup.by_same_fingerprint(), &ops);
    }
}

/// The slot of an entry makes no difference: with moves from slot to slot, the outcomes, the order
/// of the queues and the rankings are the same.
fn moves_change_nothing(setup: &Setup<'_>, ops: &[Op]) {
    same_decisions(setup, setup.by_same_fingerprint(), setup.with_moves(), ops);
    let (mut left, mut right) = (setup.by_same_fingerprint(), setup.with_moves());
    for op in ops {
        left.apply(*op);
        right.apply(*op);
    }
    assert_eq!(left.ranking(), right.ranking(), "{setup:?}");
    while !setup.spec.contains("overflow") && !left.entries().is_empty() {
        assert_eq!(left.evict_one(), right.evict_one(), "{setup:?}");
    }
}

#[test]
fn entries_move_from_slot_to_slot() {
    for (seed, spec) in (1..).zip(SPECS) {
        let ops = stress(seed, 4000, 300, 60, 8);
        let setup = Setup { spec, capacity: 60, weighted: true, keys: 300 };
        moves_change_nothing(&setup, &ops);
    }
}

/// A hit through a shared reference is a hit.
#[test]
fn shared_hits_are_hits() {
    for (seed, spec) in (1..).zip(SPECS) {
        let ops = stress(seed, 3000, 200, 60, 8);
        let setup = Setup { spec, capacity: 60, weighted: true, keys: 200 };
        same_decisions(&setup, setup.by_slot(), setup.with_shared_hits(), &ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn invariants_hold_after_every_request(case in cases()) {
        for spec in SPECS {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            for mut cache in [setup.by_slot(), setup.by_fingerprint()] {
                for op in &case.ops {
                    for event in cache.apply(*op) {
                        if let Event::Removed(key) = event {
                            prop_assert!(!remembers(&*cache, spec, key), "{spec}: {key}");
                        }
                    }
                    check(&*cache, spec);
                }
                check_empties(cache, spec);
            }
        }
    }

    /// An entry that is declined, at once or as an update, costs no other entry its place; and what fits is kept.
    #[test]
    fn nothing_leaves_for_what_is_not_stored(case in cases()) {
        for spec in SPECS.into_iter().filter(|spec| !spec.contains("overflow")) {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let mut cache = setup.by_slot();
            for op in &case.ops {
                let (room, is_new) = match op {
                    Op::Read(key, weight) | Op::Write(key, weight) => (
                        cache.used() + weight <= cache.capacity(),
                        !cache.entries().contains_key(key),
                    ),
                    _ => (false, false),
                };
                let events = cache.apply(*op);
                let is_refused = events.iter().any(|event| matches!(event, Event::Refused(_)));
                prop_assert!(!is_refused || events.len() == 1, "{spec}: {op:?}: {events:?}");
                prop_assert!(!(room && is_new && is_refused), "{spec}: {op:?} fits");
            }
        }
    }

    #[test]
    fn entries_move_as_they_like(case in cases()) {
        for spec in SPECS {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            moves_change_nothing(&setup, &case.ops);
        }
    }

    #[test]
    fn by_slot_and_by_fingerprint_decide_alike(case in cases()) {
        for spec in SPECS {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let by_fingerprint = if spec.starts_with("wtinylfu") {
                setup.by_same_fingerprint()
            } else {
                setup.by_fingerprint()
            };
            same_decisions(&setup, setup.by_slot(), by_fingerprint, &case.ops);
        }
    }
}
