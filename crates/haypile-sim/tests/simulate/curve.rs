//! The LRU curve tells what simulating LRU at each size would.

use std::ops::ControlFlow;

use haypile_sim::Trace;
use haypile_sim::curve::LruCurve;
use haypile_sim::simulate::{Accounting, Options, SimulateError, SizeRule};
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{Op, Sampling};
use proptest::prelude::*;

use crate::support::simulation::{generate, pattern, reads_of, redis_build, run, run_in, trace_of};

fn curve(trace: &Trace, accounting: Accounting) -> LruCurve {
    let mut progress = |_| ControlFlow::Continue(());
    LruCurve::measure(trace, &Options::new(accounting), &mut progress)
        .unwrap()
        .expect("nobody ends it")
}

fn sample(trace: &Trace, rate: f64, seed: u64) -> Trace {
    trace.sample(Sampling::new(rate, seed).unwrap()).unwrap()
}

fn simulated(trace: &Trace, accounting: Accounting, capacity: u64) -> f64 {
    let counts = run_in(trace, "lru", capacity, accounting).counts;
    if counts.reads() == 0 { 0.0 } else { counts.misses as f64 / counts.reads() as f64 }
}

fn requests() -> impl Strategy<Value = Vec<(u64, Op, u64)>> {
    let op = prop_oneof![6 => Just(Op::Read), 2 => Just(Op::Write), 1 => Just(Op::Delete)];
    prop::collection::vec((0_u64..25, op, 1_u64..100), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_in_objects(requests in requests()) {
        let trace = trace_of(&requests);
        let curve = curve(&trace, Accounting::Objects);
        for capacity in 1..30 {
            let at = curve.at(capacity);
            let expected = simulated(&trace, Accounting::Objects, capacity);
            prop_assert!((at.miss_ratio - expected).abs() < 1e-9, "{capacity}: {at:?} {expected}");
            prop_assert!(at.error.abs() < f64::MIN_POSITIVE);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Sizes that change decide about hits, and not only about weights.
    #[test]
    fn exact_in_objects_by_every_reading_of_sizes(requests in requests()) {
        let trace = trace_of(&requests);
        for sizes in [SizeRule::First, SizeRule::Changed, SizeRule::Last] {
            let options = Options { sizes, ..Options::new(Accounting::Objects) };
            let mut progress = |_| ControlFlow::Continue(());
            let curve = LruCurve::measure(&trace, &options, &mut progress);
            let curve = curve.unwrap().expect("nobody ends it");
            for capacity in 1..30 {
                let counts = run(&trace, "lru", capacity, &options).counts;
                let reads = counts.reads().max(1) as f64;
                let off = curve.at(capacity).miss_ratio - counts.misses as f64 / reads;
                prop_assert!(off.abs() < 1e-9, "{sizes} {capacity}: {off}");
            }
        }
    }
}

/// Long enough for positions to be renumbered, with the room of removed keys among them.
#[test]
fn exact_in_objects_over_long_traces() {
    let churn = generate(&Spec {
        seed: 5,
        writes: 0.1,
        deletes: 0.2,
        ..Spec::new("zipf:keys=2000,exponent=0.8".parse().unwrap(), 20_000)
    });
    for trace in [churn, redis_build()] {
        let curve = curve(&trace, Accounting::Objects);
        for capacity in [1, 2, 10, 50, 100, 200, 300, 500, 1_000, 1_500, 3_000] {
            let (at, expected) =
                (curve.at(capacity), simulated(&trace, Accounting::Objects, capacity));
            assert!((at.miss_ratio - expected).abs() < 1e-9, "{capacity}: {at:?} {expected}");
        }
    }
}

/// Whether the curve has `expected` at this capacity, or at one that is an entry and 0.1 % away.
fn is_near(curve: &LruCurve, capacity: u64, largest_entry: u64, expected: f64) -> bool {
    let off = largest_entry + capacity / 1000 + 1;
    let most = curve.at(capacity.saturating_sub(off)).miss_ratio;
    let least = curve.at(capacity + off).miss_ratio;
    least - 1e-9 <= expected && expected <= most + 1e-9
}

#[test]
fn exact_in_bytes_to_an_entry() {
    for (mixture, writes, deletes) in
        [("zipf:keys=2000,exponent=0.9", 0.0, 0.0), ("zipf:keys=2000,exponent=0.8", 0.2, 0.1)]
    {
        let trace = generate(&Spec {
            seed: 3,
            sizes: Some("uniform:min=10,max=1000".parse().unwrap()),
            writes,
            deletes,
            ..Spec::new(mixture.parse().unwrap(), 30_000)
        });
        for accounting in [Accounting::Bytes, Accounting::Engine] {
            let curve = curve(&trace, accounting);
            for capacity in (1..=40).map(|step| step * 30_000) {
                let expected = simulated(&trace, accounting, capacity);
                assert!(
                    is_near(&curve, capacity, 1_200, expected),
                    "{mixture} {accounting} {capacity}: {:?}, simulated {expected}",
                    curve.at(capacity)
                );
            }
        }
    }
}

/// It is a miss to read it, and a hit where an older value is there.
#[test]
fn what_may_not_be_stored_changes_nothing() {
    let trace = trace_of(&[
        (1, Op::Read, 20_000),
        (1, Op::Read, 20_000),
        (2, Op::Read, 100),
        (2, Op::Read, 20_000),
        (2, Op::Write, 20_000),
        (2, Op::Read, 100),
    ]);
    let curve = curve(&trace, Accounting::Relstorage);
    let expected = simulated(&trace, Accounting::Relstorage, 1_000);
    assert!((expected - 3.0 / 5.0).abs() < 1e-12);
    assert!((curve.at(1_000).miss_ratio - expected).abs() < 1e-12);
}

#[test]
fn a_sample_states_its_spread() {
    let trace = generate(&Spec {
        seed: 11,
        sizes: Some("lognormal:median=400,sigma=1".parse().unwrap()),
        ..Spec::new("zipf:keys=200000,exponent=0.8".parse().unwrap(), 1_000_000)
    });
    for accounting in [Accounting::Objects, Accounting::Bytes] {
        let exact = curve(&trace, accounting);
        let sampled = curve(&sample(&trace, 0.1, 0), accounting);
        let sizes: Vec<u64> = (1..=50).map(|step| exact.largest_useful() * step / 50).collect();
        let inside = sizes.iter().filter(|size| {
            let (estimate, truth) = (sampled.at(**size), exact.at(**size).miss_ratio);
            assert!((estimate.miss_ratio - truth).abs() < 0.02, "{estimate:?} {truth}");
            assert!(estimate.error > 0.0 && estimate.error < 0.05, "{estimate:?}");
            (estimate.miss_ratio - truth).abs() <= estimate.error
        });
        let inside = inside.count();
        assert!(inside * 10 >= sizes.len() * 8, "{accounting}: {inside} of {}", sizes.len());
        // Another seed takes other keys, and the same one the same keys each time.
        let other = curve(&sample(&trace, 0.1, 1), accounting);
        assert!(sizes.iter().any(|size| other.at(*size) != sampled.at(*size)));
        let again = curve(&sample(&trace, 0.1, 0), accounting);
        assert!(sizes.iter().all(|size| again.at(*size) == sampled.at(*size)));
    }
}

#[test]
fn the_capacity_for_a_miss_ratio_is_the_smallest() {
    let small = redis_build();
    let large = generate(&Spec::new("zipf:keys=20000,exponent=0.8".parse().unwrap(), 100_000));
    let sampled = sample(&large, 0.5, 0);
    for (trace, accounting) in [
        (&small, Accounting::Objects),
        (&small, Accounting::Engine),
        (&sampled, Accounting::Objects),
    ] {
        let curve = curve(trace, accounting);
        let least = curve.at(curve.largest_useful()).miss_ratio;
        for step in 0..=20 {
            let wanted = f64::from(step) / 20.0;
            match curve.capacity_for(wanted) {
                None => assert!(wanted < least, "{wanted} {least}"),
                Some(capacity) => {
                    assert!(curve.at(capacity).miss_ratio <= wanted);
                    assert!(capacity <= curve.largest_useful());
                    assert!(capacity == 0 || curve.at(capacity - 1).miss_ratio > wanted);
                }
            }
        }
        assert_eq!(curve.capacity_for(1.0), Some(0));
        let most = curve.at(u64::MAX);
        assert!((most.miss_ratio - least).abs() < 1e-12);
    }
}

#[test]
fn nothing_is_read_again() {
    for keys in [&[1, 2, 3][..], &[]] {
        let trace = reads_of(keys);
        let curve = curve(&trace, Accounting::Objects);
        assert_eq!(curve.largest_useful(), 0);
        let expected = if keys.is_empty() { 0.0 } else { 1.0 };
        assert!((curve.at(10).miss_ratio - expected).abs() < 1e-12);
        assert_eq!(curve.capacity_for(0.5).is_some(), keys.is_empty());
    }
}

#[test]
fn whoever_interrupts_gets_no_curve() {
    let trace = pattern("uniform:keys=10000", 200_000);
    for trace in [&sample(&trace, 0.9, 0), &trace] {
        let mut told = 0;
        let mut progress = |requests| {
            told += requests;
            if told > 100_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = Options::new(Accounting::Objects);
        let curve = LruCurve::measure(trace, &options, &mut progress).unwrap();
        assert!(curve.is_none());
        assert!(told > 100_000 && told < 200_000, "{told}");
    }
}

#[test]
fn bytes_need_sizes() {
    let trace = reads_of(&[1, 1]);
    let mut progress = |_| ControlFlow::Continue(());
    let options = Options::new(Accounting::Bytes);
    let error = LruCurve::measure(&trace, &options, &mut progress);
    assert!(matches!(error.unwrap_err(), SimulateError::NoSizes));
}

/// The ids of keys are in the order of their first requests; their bytes are the same in all traces.
#[test]
fn two_traces_have_the_same_keys_in_their_samples() {
    let keys = 20_000_u64;
    let forwards: Vec<u64> = (0..2 * keys).map(|n| n % keys).collect();
    let backwards: Vec<u64> = forwards.iter().rev().copied().collect();
    let sampled = |keys: &[u64]| curve(&sample(&reads_of(keys), 0.3, 7), Accounting::Objects);
    let (forwards, backwards) = (sampled(&forwards), sampled(&backwards));
    for size in [5_000, 15_000, 19_900, 20_100] {
        assert_eq!(forwards.at(size), backwards.at(size), "{size}");
    }
}
