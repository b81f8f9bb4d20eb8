//! Samples: the same keys in every trace, and results that estimate those of the whole trace.

use std::collections::HashSet;
use std::ops::ControlFlow;

use haypile_sim::Trace;
use haypile_sim::advise::{Question, advise};
use haypile_sim::curve::LruCurve;
use haypile_sim::simulate::{
    Accounting, Contender, MIN_SAMPLED_ENTRIES, MIN_SAMPLED_KEYS, Operations, Options,
    SimulateError, Sweep, Warmup, Windows, footprint, least_capacity, simulate,
};
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{
    BuildOptions, Key, Op, Request, Sampling, Sink, TraceBuilder, TraceError,
};
use proptest::prelude::*;

use crate::support::simulation::{generate, pattern, run, run_in};

fn sampling(rate: f64, seed: u64) -> Sampling {
    Sampling::new(rate, seed).unwrap()
}

/// A request that owns its key: a number, or a text if it is odd; with its size, time and cost.
type Owned = (u64, Op, Option<u64>, Option<u64>, u64);

fn build(requests: &[Owned], sampling: Option<Sampling>) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions { sampling, ..BuildOptions::default() });
    for &(number, op, size_bytes, time_us, cost_ns) in requests {
        let text = format!("/{number}");
        let key = if number % 2 == 0 { Key::Number(number) } else { Key::Text(text.as_bytes()) };
        builder
            .push(Request { key, size_bytes, op, time_us, ttl_us: None, cost_ns: Some(cost_ns) })
            .unwrap();
    }
    builder.finish().unwrap()
}

fn requests() -> impl Strategy<Value = Vec<Owned>> {
    let op = prop_oneof![6 => Just(Op::Read), 2 => Just(Op::Write), 1 => Just(Op::Delete)];
    let time = (0_u64..1000).prop_map(Some);
    let one = (0_u64..40, op, (1_u64..100).prop_map(Some), time, 1_u64..50);
    prop::collection::vec(one, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A sample that is taken while requests are read is the one that is taken of a trace, to the byte.
    #[test]
    fn before_and_after_keys_have_numbers(requests in requests(), rate in 0.01..0.99, seed: u64) {
        let choice = sampling(rate, seed);
        let read = build(&requests, Some(choice));
        let taken = build(&requests, None).sample(choice).unwrap();
        prop_assert!(read.image() == taken.image());
        let again = Trace::from_image("again", read.image().to_vec()).unwrap();
        prop_assert_eq!(again.sampled(), read.sampled());
        prop_assert_eq!(again.whole_requests(), requests.len() as u64);
        let sampled = read.sampled().unwrap();
        prop_assert_eq!((sampled.requests, sampled.keys), (read.requests() as u64, u64::from(read.keys())));
        prop_assert!((0..read.keys()).all(|id| choice.contains(read.key(id))));
    }
}

#[test]
fn a_smaller_sample_is_a_part_of_a_larger_one() {
    let keys: Vec<Key<'_>> = (0..10_000).map(Key::Number).collect();
    let of = |rate, seed| -> HashSet<usize> {
        let choice = sampling(rate, seed);
        (0..keys.len()).filter(|&at| choice.contains(keys[at])).collect()
    };
    let (small, large, other) = (of(0.05, 7), of(0.2, 7), of(0.2, 8));
    assert!(small.is_subset(&large));
    // Six standard deviations.
    assert!(small.len().abs_diff(500) < 130, "{}", small.len());
    assert!(large.len().abs_diff(2_000) < 240, "{}", large.len());
    let both = large.intersection(&other).count();
    assert!(both.abs_diff(400) < 120, "{both}: two seeds choose independently");
}

#[test]
fn what_is_no_rate_and_no_whole_trace_is_refused() {
    for rate in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
        assert!(matches!(Sampling::new(rate, 1), Err(TraceError::Rate { .. })), "{rate}");
    }
    let sample = pattern("uniform:keys=1000", 5_000).sample(sampling(0.5, 1)).unwrap();
    assert!(matches!(sample.sample(sampling(0.1, 1)), Err(TraceError::Resampled)));
}

/// A mixture that no policy finds easy, with sizes, writes and deletions.
fn mixture() -> Trace {
    generate(&Spec {
        seed: 11,
        sizes: Some("lognormal:median=400,sigma=1,per=key".parse().unwrap()),
        writes: 0.05,
        deletes: 0.01,
        ..Spec::new(
            "zipf:keys=200000,exponent=0.8@0.8+loop:keys=20000@0.1+scan:keys=100000@0.1"
                .parse()
                .unwrap(),
            1_000_000,
        )
    })
}

/// Each policy, the optimum, and the file store's segments, in each accounting.
#[test]
fn a_sample_estimates_the_whole() {
    let whole = mixture();
    let sample = whole.sample(sampling(0.1, 1)).unwrap();
    for accounting in [Accounting::Objects, Accounting::Bytes, Accounting::Engine] {
        let all = footprint(&whole, accounting);
        let off = footprint(&sample, accounting) as f64 / all as f64 - 1.0;
        assert!(off.abs() < 0.03, "{accounting}: the working set is off by {off}");
        for policy in
            ["lru", "s3fifo", "sieve", "arc", "lirs", "wtinylfu", "fifo", "belady", "segment"]
        {
            // In shards, LIRS is another cache at each number of entries: docs/simulator.md tells by how much.
            if policy == "lirs" && accounting == Accounting::Engine {
                continue;
            }
            let contender = [policy.parse().unwrap()];
            for share in [20, 5] {
                let capacity = (all / share).max(least_capacity(&sample, accounting, &contender));
                let (truth, estimate) = (
                    run_in(&whole, policy, capacity, accounting),
                    run_in(&sample, policy, capacity, accounting),
                );
                let context = format!("{policy} {accounting} {capacity}");
                let ratios = [
                    (truth.counts.hit_ratio(), estimate.counts.hit_ratio()),
                    (truth.counts.byte_hit_ratio(), estimate.counts.byte_hit_ratio()),
                ];
                for (truth, estimate) in ratios {
                    assert!((truth - estimate).abs() < 0.02, "{context}: {truth} {estimate}");
                }
                assert_eq!(truth.capacity, estimate.capacity, "{context}");
                assert_eq!(truth.shards, estimate.shards, "{context}");
                assert_eq!(truth.counts.reads(), estimate.counts.reads(), "{context}");
                assert_eq!(truth.counts.writes, estimate.counts.writes, "{context}");
                assert_eq!(truth.counts.deletes, estimate.counts.deletes, "{context}");
                let read = |one: &haypile_sim::simulate::Outcome| {
                    one.counts.hit_bytes + one.counts.miss_bytes
                };
                assert_eq!(read(&truth), read(&estimate), "{context}");
                let used = estimate.used as f64 / truth.used as f64 - 1.0;
                assert!(used.abs() < 0.1, "{context}: {} {}", truth.used, estimate.used);
            }
        }
    }
}

#[test]
fn whoever_interrupts_gets_no_sample() {
    let whole = pattern("uniform:keys=10000", 200_000);
    let mut told = 0;
    let mut progress = |requests| {
        told += requests;
        if told > 100_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(whole.sample_unless(sampling(0.5, 1), &mut progress).unwrap().is_none());
    assert!(told > 100_000 && told < 200_000, "{told}");
}

/// Days are those of the whole trace, to the marks of the sample.
#[test]
fn days_are_those_of_the_whole_trace() {
    let requests: Vec<Owned> = (0..200_000_u64)
        .map(|n| (n * 7919 % 20_000, Op::Read, Some(100), Some(n * 3_000_000), 5))
        .collect();
    let whole = build(&requests, None);
    let sample = whole.sample(sampling(0.4, 3)).unwrap();
    let windows = Windows::whole_days(&whole, 0).unwrap();
    assert_eq!(windows, Windows::Days(6));
    let options = Options { windows, ..Options::new(Accounting::Objects) };
    let (truth, estimate) =
        (run(&whole, "lru", 15_000, &options), run(&sample, "lru", 15_000, &options));
    for (truth, estimate) in truth.windows.iter().zip(&estimate.windows) {
        assert!(truth.reads().abs_diff(estimate.reads()) <= 64, "{truth:?} {estimate:?}");
    }
    assert_eq!(estimate.windows.len(), 6);
    assert_eq!(truth.counts.reads(), estimate.counts.reads());
}

/// The warm-up and the windows are places in the whole trace.
#[test]
fn parts_are_those_of_the_whole_trace() {
    let whole = mixture();
    let sample = whole.sample(sampling(0.2, 3)).unwrap();
    // The marks of a million requests are 32 to 64 requests apart.
    let near = 64;
    for operations in [Operations::AsTheyAre, Operations::AllReads] {
        let options = Options {
            warmup: Warmup::Percent(25.0),
            windows: Windows::Equal(8),
            operations,
            ..Options::new(Accounting::Objects)
        };
        let truth = run(&whole, "lru", 20_000, &options);
        let estimate = run(&sample, "lru", 20_000, &options);
        assert!(truth.counts.reads().abs_diff(estimate.counts.reads()) <= near);
        assert_eq!(estimate.windows.len(), 8);
        let all: u64 = estimate.windows.iter().map(haypile_sim::simulate::Counts::reads).sum();
        assert_eq!(all, estimate.counts.reads());
        for (truth, estimate) in truth.windows.iter().zip(&estimate.windows) {
            assert!(truth.reads().abs_diff(estimate.reads()) <= near, "{truth:?} {estimate:?}");
            assert!((truth.hit_ratio() - estimate.hit_ratio()).abs() < 0.03);
        }
    }
    let too_long =
        Options { warmup: Warmup::Requests(1_000_000), ..Options::new(Accounting::Objects) };
    let error = simulate(&sample, &"lru".parse().unwrap(), 20_000, &too_long, &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(matches!(error, Err(SimulateError::WarmupTooLong { requests: 1_000_000, .. })));
}

#[test]
fn what_a_sample_is_too_small_for_says_which_is_large_enough() {
    let whole = pattern("uniform:keys=50000", 300_000);
    let choice = sampling(0.05, 1);
    let small = whole.sample(choice).unwrap();
    assert!(small.keys() < MIN_SAMPLED_KEYS);
    let options = Options::new(Accounting::Objects);
    let mut go_on = |_| ControlFlow::Continue(());
    let lru = "lru".parse().unwrap();
    let error = simulate(&small, &lru, 20_000, &options, &mut go_on).unwrap_err();
    assert!(matches!(error, SimulateError::SmallSample { .. }));
    let larger = |error: SimulateError| {
        let text = error.to_string();
        let rate = text.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}"));
        whole.sample(sampling(rate, 1)).unwrap()
    };
    assert!(LruCurve::measure(&small, &options, &mut go_on).is_err());
    let enough = larger(error);
    assert!(simulate(&enough, &lru, 20_000, &options, &mut go_on).unwrap().is_some());

    let sweep = |capacity| Sweep {
        contenders: vec![Contender::clone(&lru)],
        capacities: vec![capacity],
        options,
        jobs: 1,
    };
    let least = least_capacity(&enough, Accounting::Objects, &[]);
    assert!(least * u64::from(enough.keys()) / enough.whole_keys() >= MIN_SAMPLED_ENTRIES - 1);
    assert!(sweep(least).run(&enough, &()).is_ok());
    let error = sweep(least - 1).run(&enough, &()).unwrap_err();
    assert!(matches!(error, SimulateError::SmallSampledCache { .. }));
    assert!(sweep(least - 1).run(&larger(error), &()).is_ok());
    assert_eq!(least_capacity(&whole, Accounting::Objects, &[]), 1);
    let whole_only = sweep(1).run(&enough, &()).unwrap_err().to_string();
    assert!(whole_only.ends_with("use the whole trace"), "{whole_only}");
}

/// Sizes that a log does not tell cannot be added up, so that bytes are not corrected by them.
#[test]
fn unknown_sizes_are_not_taken_for_zero() {
    let requests: Vec<Owned> = (0..200_000_u64)
        .map(|n| {
            let key = 2 * (n * 7919 % 20_000);
            (key, Op::Read, (n % 2 == 0 || n < 20_000).then_some(100), None, 5)
        })
        .collect();
    let read = build(&requests, Some(sampling(0.4, 1)));
    let truth = run_in(&build(&requests, None), "lru", 10_000, Accounting::Objects).counts;
    let estimate = run_in(&read, "lru", 10_000, Accounting::Objects).counts;
    let read_bytes = estimate.hit_bytes + estimate.miss_bytes;
    let off = read_bytes as f64 / (truth.hit_bytes + truth.miss_bytes) as f64 - 1.0;
    assert!(off.abs() < 0.05, "{off}");
}

#[test]
fn assumptions_reach_the_sample_and_its_totals() {
    let whole = pattern("zipf:keys=50000,exponent=0.7", 300_000);
    let sample = whole.sample(sampling(0.3, 1)).unwrap();
    let sample = sample.assume_sizes(&"fixed:bytes=100".parse().unwrap(), 1).unwrap();
    let sample = sample.assume_writes(0.25, 1).unwrap();
    assert_eq!(sample.whole_requests(), 300_000);
    let counts = run_in(&sample, "lru", 1_000_000, Accounting::Bytes).counts;
    assert_eq!((counts.reads(), counts.writes), (225_000, 75_000));
    let per_read = (counts.hit_bytes + counts.miss_bytes) as f64 / counts.reads() as f64;
    assert!((per_read - 100.0).abs() < 10.0, "{per_read}");
}

/// A long trace: the keys of two million requests more than are simulated whole.
#[test]
fn advice_on_a_long_trace_is_what_its_sample_says() {
    let whole = pattern("zipf:keys=300000,exponent=0.8", 2_200_000);
    let question = Question { budget: Some(30_000), ..Question::new() };
    let advice = advise(&whole, &question, &()).unwrap().unwrap();
    let sampled = advice.sample.unwrap();
    assert_eq!((advice.requests, advice.reads), (2_200_000, 2_200_000));
    assert!(sampled.requests < 1_200_000, "{sampled}");
    let choice = advice.choice.as_ref().unwrap();
    let sample = whole.sample(sampling(sampled.rate, sampled.seed)).unwrap();
    let again = run_in(&sample, &choice.policy, choice.capacity, Accounting::Objects).counts;
    assert!((again.hit_ratio() - choice.hit_ratio).abs() < 1e-12);
    let truth = run_in(&whole, &choice.policy, choice.capacity, Accounting::Objects).counts;
    assert!((truth.hit_ratio() - choice.hit_ratio).abs() < 0.01, "{truth:?} {choice:?}");
    let keys = advice.keys as f64 / f64::from(whole.keys()) - 1.0;
    assert!(keys.abs() < 0.02, "{keys}");
    assert!(advice.to_string().contains("Sampled: all figures are estimates"), "{advice}");
    // Of a sample there is the same advice, and none of sizes that it is too small for.
    let same = advise(&sample, &question, &()).unwrap().unwrap();
    assert_eq!(same, advice);
    assert!(
        advice
            .sizes
            .iter()
            .all(|size| size.capacity >= least_capacity(&sample, Accounting::Objects, &[]))
    );
}
