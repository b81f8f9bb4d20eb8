//! Properties of every policy that hold for files too, which keep their size.

use proptest::prelude::*;

use crate::cache::file;
use crate::driver::{Event, Op, Setup};
use crate::invariants::{check, check_empties, remembers, run};
use crate::requests::{cases, stress, unless};

/// Parameters that take other paths.
const SPECS: [&str; 3] = [
    "segment",
    "segment:segments=8,small=30,threshold=2,keep=100,ghost=300",
    "segment:segments=16,keep=0,ghost=0",
];

/// Requests as of every policy, but for new capacities.
fn requests(seed: u64, count: usize, keys: u32, capacity: u64, heaviest: u64) -> Vec<Op> {
    let mut ops = stress(seed, count, keys, capacity, heaviest);
    ops.retain(|op| !matches!(op, Op::Resize(_)));
    ops
}

#[test]
fn a_hundred_thousand_requests() {
    let ops = requests(11, 100_000, 2000, 1500, 40);
    let mut cache = file(&Setup { spec: SPECS[0], capacity: 1500, weighted: true, keys: 2000 });
    run(&mut *cache, SPECS[0], &ops, 9973);
    check_empties(cache, SPECS[0]);
}

#[test]
fn long_runs_of_objects() {
    for (seed, spec) in (21..).zip(SPECS) {
        let ops = requests(seed, 15_000, 2000, 400, 1);
        let mut cache = file(&Setup { spec, capacity: 400, weighted: false, keys: 2000 });
        run(&mut *cache, spec, &ops, 4999);
        check_empties(cache, spec);
    }
}

#[test]
fn tiny_files() {
    for (seed, spec) in (21..).zip(SPECS) {
        for capacity in 0..4 {
            let ops = requests(seed, 2000, 300, capacity.max(1), 3);
            for weighted in [false, true] {
                let ops: Vec<Op> = ops.iter().map(|op| unless(weighted, *op)).collect();
                let setup = Setup { spec, capacity, weighted, keys: 300 };
                run(&mut *file(&setup), spec, &ops, 10);
            }
        }
    }
}

/// Capacities that a share of is not exact in floating point, and the largest one there is.
#[test]
fn enormous_capacities() {
    for spec in SPECS {
        for capacity in [(1 << 53) + 3, (1 << 60) + 1, u64::MAX - 1, u64::MAX] {
            let mut cache = file(&Setup { spec, capacity, weighted: true, keys: 300 });
            run(&mut *cache, spec, &requests(1, 200, 300, capacity, 9), 50);
        }
    }
}

#[test]
fn short_runs_in_a_small_file() {
    for (seed, spec) in (21..).zip(SPECS) {
        let ops = requests(seed, 200, 40, 24, 5);
        let mut cache = file(&Setup { spec, capacity: 24, weighted: true, keys: 40 });
        run(&mut *cache, spec, &ops, 50);
        check_empties(cache, spec);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn invariants_hold_after_every_request(case in cases()) {
        for spec in SPECS {
            let mut cache = file(&Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            });
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
