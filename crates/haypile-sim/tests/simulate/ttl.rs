//! Entries that expire: as a plain map of times says, as the `memory` store does, and as the trace tells.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::{ManualClock, SetOptions, Written};
use haypile_sim::Trace;
use haypile_sim::advise::{Question, advise};
use haypile_sim::curve::LruCurve;
use haypile_sim::simulate::{
    Accounting, ENGINE_HASH_SEED, Options, SimulateError, TtlRule, footprint, simulate,
};
use haypile_sim::trace::format::{CsvOptions, Format, ReadOptions};
use haypile_sim::trace::{BuildOptions, Key, Op, Request, Sampling, Sink, TraceBuilder};
use proptest::prelude::*;

use crate::support::read_named;
use crate::support::simulation::{reads_of, run};

/// A key, an operation, the time since the request before, and a TTL.
type Owned = (u64, Op, u64, Option<u64>);

fn build(requests: &[Owned]) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    let mut now_us = 0;
    for &(key, op, after_us, ttl_us) in requests {
        now_us += after_us;
        let key = Key::Number(key);
        let time_us = Some(now_us);
        builder
            .push(Request { key, size_bytes: Some(100), op, time_us, ttl_us, cost_ns: None })
            .unwrap();
    }
    builder.finish().unwrap()
}

fn requests(keys: u64, after_us: u64) -> impl Strategy<Value = Vec<Owned>> {
    let op = prop_oneof![6 => Just(Op::Read), 2 => Just(Op::Write), 1 => Just(Op::Delete)];
    let ttl = prop::option::of(1..6 * after_us);
    prop::collection::vec((0..keys, op, 0..after_us, ttl), 1..300)
}

/// Hits of a cache that has room for everything.
fn unbounded(requests: &[Owned], default_us: Option<u64>) -> u64 {
    let (mut expiry, mut told, mut now_us, mut hits) = (HashMap::new(), HashMap::new(), 0, 0);
    for &(key, op, after_us, ttl_us) in requests {
        now_us += after_us;
        if op != Op::Delete
            && let Some(ttl_us) = ttl_us
        {
            told.insert(key, ttl_us);
        }
        let is_there = expiry.get(&key).is_some_and(|&expires_us| expires_us > now_us);
        match op {
            Op::Delete => {
                expiry.remove(&key);
            }
            Op::Read if is_there => hits += 1,
            Op::Read | Op::Write => {
                let ttl_us = told.get(&key).copied().or(default_us);
                expiry.insert(key, ttl_us.map_or(u64::MAX, |ttl_us| now_us + ttl_us));
            }
        }
    }
    hits
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_large_cache_hits_what_has_not_expired(
        requests in requests(20, 50),
        default_us in prop::option::of(1_u64..300),
    ) {
        let trace = build(&requests);
        let ttl = default_us.map_or(TtlRule::AsTheyAre, TtlRule::Otherwise);
        let options = Options { ttl, ..Options::new(Accounting::Objects) };
        for policy in ["lru", "s3fifo", "lirs", "segment"] {
            let counts = run(&trace, policy, 1_000_000, &options).counts;
            prop_assert_eq!(counts.hits, unbounded(&requests, default_us), "{}", policy);
            prop_assert_eq!(counts.evictions, 0);
            prop_assert_eq!(counts.capacity_misses(), 0);
        }
        let never = Options { ttl: TtlRule::Never, ..options };
        let without: Vec<Owned> = requests.iter().map(|one| (one.0, one.1, one.2, None)).collect();
        let counts = run(&trace, "lru", 1_000_000, &never).counts;
        prop_assert_eq!(counts.hits, unbounded(&without, None));
    }
}

/// The store meets expired entries later than the simulation, which has as much room for others sooner: hits are nearly the same.
#[test]
fn the_memory_store_hits_as_simulated() {
    const TTL_US: u64 = 3_000_000;
    let mut state = 9_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 33) % below
    };
    let requests: Vec<Owned> = (0..60_000)
        .map(|_| {
            let key = random(40).min(random(40)) * 100 + random(100);
            let op = if random(10) == 0 { Op::Write } else { Op::Read };
            (key, op, random(1_000), (random(4) > 0).then(|| 1 + random(TTL_US)))
        })
        .collect();
    let trace = build(&requests);
    for (policy, share) in [("lru", 1), ("s3fifo", 1), ("lru", 4), ("s3fifo", 4), ("sieve", 4)] {
        let size_bytes = (footprint(&trace, Accounting::Engine) / share).max(64 << 10);
        let ttl = TtlRule::Otherwise(TTL_US);
        let options = Options { ttl, shards: Some(1), ..Options::new(Accounting::Engine) };
        let predicted = run(&trace, policy, size_bytes, &options).counts;
        let clock = Arc::new(ManualClock::new());
        let store = MemoryBuilder::new(size_bytes)
            .shards(1)
            .policy(policy.parse().unwrap())
            .hash_seed(ENGINE_HASH_SEED)
            .clock(clock.clone())
            .store()
            .unwrap();
        let (mut told, mut hits) = (HashMap::new(), 0);
        for &(key, op, after_us, ttl_us) in &requests {
            clock.advance(Duration::from_micros(after_us));
            let name = key.to_string();
            let is_hit = op == Op::Read && store.get(name.as_bytes()).unwrap().is_some();
            hits += u64::from(is_hit);
            if let Some(ttl_us) = ttl_us {
                told.insert(key, ttl_us);
            }
            if !is_hit {
                let ttl_us = told.get(&key).copied().unwrap_or(TTL_US);
                let options = SetOptions::set().with_ttl(Duration::from_micros(ttl_us));
                let written = store.set(name.as_bytes(), &[7; 100], &options).unwrap();
                assert!(matches!(written, Written::Stored), "{written:?}");
            }
        }
        let reads = predicted.reads();
        let off = (predicted.hits as f64 - hits as f64) / reads as f64;
        assert!(predicted.hits > reads / 10, "{policy}: {predicted:?}");
        assert!(
            off.abs() < 0.01,
            "{policy}, 1/{share}: {hits} of {reads}, predicted {predicted:?}"
        );
        if share == 1 {
            assert_eq!(predicted.hits, hits, "{policy}: nothing is evicted");
        }
    }
}

#[test]
fn what_cannot_expire_is_an_error_or_a_note() {
    let mut go_on = |_| ControlFlow::Continue(());
    let ttl = TtlRule::Otherwise(1_000);
    let options = Options { ttl, ..Options::new(Accounting::Objects) };
    let lru = "lru".parse().unwrap();
    let error = simulate(&reads_of(&[1, 1]), &lru, 10, &options, &mut go_on).unwrap_err();
    assert!(matches!(error, SimulateError::NoTimes));
    let trace = build(&[(1, Op::Read, 1, Some(5)), (1, Op::Read, 6, None)]);
    let as_they_are = Options::new(Accounting::Objects);
    let belady = "belady".parse().unwrap();
    let error = simulate(&trace, &belady, 10, &as_they_are, &mut go_on).unwrap_err();
    assert!(matches!(error, SimulateError::BeladyOfWhatExpires));
    let error = LruCurve::measure(&trace, &as_they_are, &mut go_on).unwrap_err();
    assert!(matches!(error, SimulateError::CurveOfWhatExpires));
    let never = Options { ttl: TtlRule::Never, ..as_they_are };
    assert_eq!(run(&trace, "belady", 10, &never).counts.hits, 1);
    assert!(
        (LruCurve::measure(&trace, &never, &mut go_on).unwrap().unwrap().at(10).miss_ratio - 0.5)
            .abs()
            < 1e-9
    );
}

/// The review's case: a life of a second, and a read nine seconds later.
#[test]
fn csv_has_ttls() {
    let text = "time,key,op,ttl\n0,a,set,1\n9,a,get,0\n9.5,a,get,\n";
    let options = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
    let mut builder = TraceBuilder::new(BuildOptions::default());
    haypile_sim::trace::format::TraceReader::from_reader("t", text.as_bytes(), &options)
        .unwrap()
        .read(&mut builder)
        .unwrap();
    let trace = builder.finish().unwrap();
    let ttls: Vec<u64> = trace.ttls_us().unwrap().iter().map(|ttl| ttl.get()).collect();
    assert_eq!(ttls, [1_000_000, 0, 0]);
    let counts = run(&trace, "lru", 10, &Options::new(Accounting::Objects)).counts;
    // The read at 9 s misses and stores it for another second, so that the one half a second later hits.
    assert_eq!((counts.hits, counts.misses, counts.cold_misses), (1, 1, 1));
    let sampled = (0..200)
        .map(|seed| trace.sample(Sampling::new(0.5, seed).unwrap()).unwrap())
        .find(|sample| sample.keys() == 1)
        .unwrap();
    assert_eq!(sampled.ttls_us().map(<[_]>::len), Some(3));

    let mut csv = CsvOptions::default();
    csv.set_columns("key=1,time=2,ttl=3").unwrap();
    let by_number = ReadOptions { csv, ..options.clone() };
    let bad = read_named("t", b"a,1,soon\n", &by_number).unwrap_err().to_string();
    assert!(bad.contains("a TTL"), "{bad}");
    let (report, _) = read_named("t", b"key,ttl\n1,60\n", &options).unwrap();
    assert_eq!(report.notes, ["the TTLs are ignored: without times, nothing expires"]);
    let (report, _) = read_named("t", b"time,key,expires\n1,1,60\n", &options).unwrap();
    assert!(report.notes[0].contains("is ignored"), "{:?}", report.notes);
}

#[test]
fn advice_counts_what_expires() {
    let requests: Vec<Owned> =
        (0..40_000_u64).map(|n| (n * n % 997, Op::Read, 1_000, None)).collect();
    let trace = build(&requests);
    let question = |ttl| Question { ttl, accounting: Some(Accounting::Objects), ..Question::new() };
    let of = |ttl| advise(&trace, &question(ttl), &()).unwrap().unwrap();
    let (all, short) = (of(TtlRule::AsTheyAre), of(TtlRule::Otherwise(500_000)));
    let choice = short.choice.as_ref().unwrap();
    assert!(short.best_possible < all.best_possible, "{short}");
    assert_eq!(choice.optimum_hit_ratio, None);
    assert!(all.choice.unwrap().optimum_hit_ratio.is_some());
    assert!(short.to_string().contains("Without a bound, "), "{short}");
    let options = Options { ttl: TtlRule::Otherwise(500_000), ..Options::new(Accounting::Objects) };
    let again = run(&trace, &choice.policy, choice.capacity, &options).counts;
    assert!((again.hit_ratio() - choice.hit_ratio).abs() < 1e-12);
    let unbounded = run(&trace, "lru", 1_000_000, &options).counts;
    assert!((unbounded.hit_ratio() - short.best_possible).abs() < 1e-12);
}
