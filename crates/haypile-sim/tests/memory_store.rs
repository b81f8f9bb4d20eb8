//! The memory store, fed with a trace and real values, hits exactly as often as the simulator says.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::HashMap;
use std::ops::ControlFlow;

use haypile::memory::MemoryBuilder;
use haypile::policy::PolicySpec;
use haypile::{SetOptions, Store};
use haypile_sim::Trace;
use haypile_sim::simulate::{Accounting, Contender, Options, simulate};
use haypile_sim::trace::{BuildOptions, Key, Op, Request, Sink, TraceBuilder};

const REQUESTS: u64 = 10_000;

/// Keys from a few hot ones to many cold ones, with values of 1 to 3,000 bytes that change with
/// some of the writes; some deletions, and a loop over 60 keys now and then.
fn trace() -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for at in 0..REQUESTS {
        let spread = 1 + random(600);
        let key = if at % 4_000 < 500 { 1_000 + at % 60 } else { random(spread) };
        let size_bytes = 1 + key * key % 1_500 + if random(9) == 0 { random(1_500) } else { 0 };
        let op = match random(20) {
            0 => Op::Delete,
            1..=3 => Op::Write,
            _ => Op::Read,
        };
        let request = Request {
            op,
            size_bytes: (op != Op::Delete).then_some(size_bytes),
            ..Request::read(Key::Number(key))
        };
        builder.push(request).unwrap();
    }
    builder.finish().unwrap()
}

/// Hits and evictions of a store that runs the trace: a read that misses is filled.
fn replay(trace: &Trace, store: &dyn Store, texts: &[Vec<u8>]) -> (u64, u64) {
    let mut expected: HashMap<u32, Vec<u8>> = HashMap::new();
    for at in 0..trace.requests() {
        let id = trace.ids()[at].get();
        let key = &texts[id as usize];
        let size_bytes = usize::try_from(trace.sizes().unwrap()[at].get()).unwrap();
        let op = Op::from_number(trace.ops().unwrap()[at]);
        if op == Op::Delete {
            store.delete(key).unwrap();
            continue;
        }
        if op == Op::Read
            && let Some(value) = store.get(key).unwrap()
        {
            assert_eq!(Some(&value), expected.get(&id));
            continue;
        }
        let value = vec![at.to_le_bytes()[0]; size_bytes];
        assert!(store.set(key, &value, &SetOptions::set()).unwrap().is_stored());
        expected.insert(id, value);
    }
    let stats = store.stats().unwrap();
    (stats.hits, stats.evictions)
}

#[test]
fn hits_and_evictions_are_those_predicted() {
    let trace = trace();
    let texts: Vec<Vec<u8>> = (0..trace.keys())
        .map(|id| match trace.key(id) {
            Key::Number(number) => number.to_string().into_bytes(),
            Key::Text(text) => text.to_vec(),
        })
        .collect();
    let ids: HashMap<Vec<u8>, u64> = texts.iter().cloned().zip(0..).collect();
    for kind in PolicySpec::kinds() {
        for size_bytes in [60_001, 200 << 10] {
            let spec: PolicySpec = kind.name.parse().unwrap();
            let contender = Contender::Policy(spec.clone());
            let options = Options::new(Accounting::Engine);
            let go_on = &mut |_| ControlFlow::Continue(());
            let outcome = simulate(&trace, &contender, size_bytes, &options, go_on);
            let predicted = outcome.unwrap().unwrap().counts;

            let ids = ids.clone();
            let builder = MemoryBuilder::new(size_bytes).policy(spec);
            let store = builder.fingerprint(move |key| ids[key]).open().unwrap();
            let (hits, evictions) = replay(&trace, store.as_ref(), &texts);
            assert!(hits > 0);
            assert_eq!(
                (hits, evictions),
                (predicted.hits, predicted.evictions),
                "{} in {size_bytes} bytes",
                kind.name
            );
        }
    }
}
