//! The cost of misses, and advice by what a cache saves.

use haypile_sim::Trace;
use haypile_sim::advise::{Advice, Question, advise};
use haypile_sim::simulate::{
    Accounting, Counts, Goal, MissCost, Operations, Options, SimulateError, Warmup, Windows,
};
use haypile_sim::trace::{BuildOptions, Key, Op, Request, Sampling, Sink, TraceBuilder};
use proptest::prelude::*;

use crate::support::simulation::{reads_of, redis_build, run, trace_of};

fn cost(text: &str) -> MissCost {
    text.parse().unwrap()
}

fn assert_equal(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-12, "{one} {other}");
}

#[test]
fn a_cost_has_a_fixed_part_and_one_for_each_byte() {
    for (text, fixed_ns, ns_per_byte) in [
        ("fixed=20ms", 20e6, 0.0),
        ("per-byte=0.5ns", 0.0, 0.5),
        ("fixed=1.5s,per-byte=2us", 1.5e9, 2e3),
        ("per-byte=1µs,fixed=2min", 120e9, 1e3),
    ] {
        assert_eq!(cost(text), MissCost::Formula { fixed_ns, ns_per_byte }, "{text}");
        assert_eq!(cost(&cost(text).to_string()), cost(text), "what is printed is read again");
    }
    let refused = |text: &str| text.parse::<MissCost>().unwrap_err().to_string();
    for (text, problem) in [
        ("", "has '' without a '='"),
        ("20ms", "has '20ms' without a '='"),
        ("fixed=20", "has '20', which is not a time with its unit"),
        ("fixed=-1ms", "has '-1ms', which is not a time with its unit"),
        ("fixed=1e9s", "has '1e9s', which is not a time with its unit"),
        ("fixed=infs", "has 'infs', which is not a time with its unit"),
        ("fixed=99999999999999s", "has '99999999999999s', which is not a time with its unit"),
        ("fixed=1ms,fixed=2ms", "has 'fixed' twice"),
        ("fixed=0s,per-byte=0ns", "is zero"),
        ("per-kib=1ms", "has the unknown part 'per-kib'"),
    ] {
        let error = refused(text);
        assert!(
            error.starts_with(&format!("the cost of a miss '{text}' {problem}; write")),
            "{error}"
        );
        assert!(error.contains("fixed=20ms,per-byte=0.5ns"), "{error}");
    }
}

/// Worked out by hand: three reads of one byte hit, one missed, and the two reads of a hundred bytes missed.
#[test]
fn the_cost_that_is_saved_weighs_hits_and_misses() {
    let counts = Counts { hits: 3, misses: 3, hit_bytes: 3, miss_bytes: 201, ..Counts::default() };
    let fixed = cost("fixed=10ns");
    assert_equal(fixed.saved_ratio(&counts), 0.5);
    let both = cost("fixed=10ns,per-byte=2ns");
    assert_equal(both.saved_ns(&counts), 36.0);
    assert_equal(both.lost_ns(&counts), 432.0);
    assert_equal(both.saved_ratio(&counts), 36.0 / 468.0);
    assert_equal(Goal::Cost(both).saved_ratio(&counts), 36.0 / 468.0);
    assert_equal(Goal::Bytes.saved_ratio(&counts), counts.byte_hit_ratio());
    assert_equal(Goal::Reads.saved_ratio(&counts), counts.hit_ratio());
    assert_equal(both.saved_ratio(&Counts::default()), 0.0);
}

fn ask(trace: &Trace, goal: Goal, warmup: Warmup) -> Advice {
    let question = Question { budget: Some(2 << 20), goal, warmup, ..Question::new() };
    advise(trace, &question, &()).unwrap().unwrap()
}

/// Simulates every number of an advice again that depends on the goal or on the warm-up.
fn assert_simulated(trace: &Trace, goal: Goal, warmup: Warmup, advice: &Advice) {
    let options = |windows| Options {
        windows: Windows::Equal(windows),
        warmup,
        ..Options::new(advice.accounting)
    };
    let counts = |policy: &str, capacity| run(trace, policy, capacity, &options(0)).counts;
    for size in &advice.sizes {
        let (best, lru) = (counts(&size.best, size.capacity), counts("lru", size.capacity));
        assert_equal(size.saved, goal.saved_ratio(&best));
        assert_equal(size.hit_ratio, best.hit_ratio());
        assert_equal(size.lru_saved, goal.saved_ratio(&lru));
        assert_equal(size.lru_hit_ratio, lru.hit_ratio());
        assert!(size.saved >= size.lru_saved);
    }
    let choice = advice.choice.as_ref().unwrap();
    let own = counts(&choice.policy, choice.capacity);
    assert_eq!(advice.reads, own.reads());
    assert_equal(choice.hit_ratio, own.hit_ratio());
    assert_equal(choice.byte_hit_ratio, own.byte_hit_ratio());
    assert_eq!(choice.cost_saved_ratio.is_some(), matches!(goal, Goal::Cost(_)));
    if let Some(saved) = choice.cost_saved_ratio {
        assert_equal(saved, goal.saved_ratio(&own));
    }
    if let Some(lead) = &choice.over_lru {
        let lru = counts("lru", choice.capacity);
        assert_equal(lead.difference, goal.saved_ratio(&own) - goal.saved_ratio(&lru));
    }
    if let Some(needs) = choice.lru_needs.filter(|_| choice.over_lru.is_some()) {
        assert!(goal.saved(&counts("lru", needs)) >= goal.saved(&own));
    }
    for test in &choice.rolling {
        let part =
            |policy: &str| run(trace, policy, choice.capacity, &options(10)).windows[test.part - 1];
        assert_equal(test.saved, goal.saved_ratio(&part(&test.policy)));
        assert_equal(test.best_saved, goal.saved_ratio(&part(&test.best)));
        assert_equal(test.hit_ratio, part(&test.policy).hit_ratio());
        assert_equal(test.best_hit_ratio, part(&test.best).hit_ratio());
        assert!(test.regret() >= 0.0);
    }
}

/// In this trace small values are asked for often, and a few large ones, which fill the cache, less often.
#[test]
fn advice_is_by_what_the_cache_is_to_save() {
    let trace = redis_build();
    let none = Warmup::None;
    let by_reads = ask(&trace, Goal::Reads, none);
    let more_bytes = by_reads.choice.as_ref().unwrap().more_bytes.as_ref().unwrap();
    let by_bytes = ask(&trace, Goal::Bytes, none);
    let per_byte = Goal::Cost(cost("per-byte=3ns"));
    let by_cost = ask(&trace, per_byte, none);
    let fixed = Goal::Cost(cost("fixed=20ms"));
    let by_fixed_cost = ask(&trace, fixed, none);
    for (goal, advice) in [
        (Goal::Reads, &by_reads),
        (Goal::Bytes, &by_bytes),
        (per_byte, &by_cost),
        (fixed, &by_fixed_cost),
    ] {
        assert_simulated(&trace, goal, none, advice);
    }
    let policy = |advice: &Advice| advice.choice.as_ref().unwrap().policy.clone();
    assert_ne!(policy(&by_reads), more_bytes.policy, "the goal has to matter here");
    assert_eq!(policy(&by_bytes), more_bytes.policy);
    assert_eq!(policy(&by_cost), more_bytes.policy);
    assert_eq!(policy(&by_fixed_cost), policy(&by_reads), "each miss costs the same");
    let text = by_cost.to_string();
    assert!(text.contains(" % of the cost of misses, 892 ms.\n"), "{text}");
    assert!(text.contains("the points are of the cost of misses, by which"), "{text}");
    assert!(text.contains("costly values decide: by their cost the 39,310 reads"), "{text}");
}

#[test]
fn advice_after_a_warm_up_counts_what_follows_it() {
    let trace = redis_build();
    for warmup in [Warmup::Percent(25.0), Warmup::Requests(1)] {
        let advice = ask(&trace, Goal::Reads, warmup);
        assert_simulated(&trace, Goal::Reads, warmup, &advice);
        assert_eq!(advice.warmup, warmup.requests(trace.requests() as u64).unwrap());
        let text = advice.to_string();
        assert!(text.contains(" reads after a warm-up of "), "{text}");
        assert!(text.contains("tenth, with the cache that was warmed up, has"), "{text}");
    }
    let cold = ask(&trace, Goal::Reads, Warmup::None);
    let warm = ask(&trace, Goal::Reads, Warmup::Percent(50.0));
    assert!(warm.best_possible > cold.best_possible, "fewer reads are the first of their key");
    let question = Question { warmup: Warmup::Requests(1 << 40), ..Question::new() };
    let error = advise(&trace, &question, &()).unwrap_err();
    assert!(matches!(error, SimulateError::WarmupTooLong { .. }), "{error}");
}

#[test]
fn what_needs_sizes_is_refused_without_them() {
    let trace = reads_of(&[1, 1]);
    let error = |goal| {
        let question = Question { goal, ..Question::new() };
        advise(&trace, &question, &()).map(|advice| advice.is_some())
    };
    assert!(matches!(error(Goal::Bytes), Err(SimulateError::NoSizesForGoal)));
    let per_byte = error(Goal::Cost(cost("per-byte=1ns")));
    assert!(matches!(per_byte, Err(SimulateError::NoSizesForCost)));
    assert!(matches!(error(Goal::Cost(cost("fixed=1ms"))), Ok(true)));
    let sized = trace_of(&[(1, Op::Read, 0), (1, Op::Read, 0)]);
    let question = Question { goal: Goal::Bytes, ..Question::new() };
    let advice = advise(&sized, &question, &()).unwrap().unwrap();
    assert!(advice.choice.is_none(), "no byte is saved: {advice}");
    assert_eq!(
        advice.to_string(),
        "No cache helps here: within the budget it would save less than 0.1 % of the bytes of 2 reads.\n"
    );
}

/// A trace of reads and writes without sizes, with the costs that it states.
fn with_costs(requests: &[(u64, Op, Option<u64>)]) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for &(key, op, cost_ns) in requests {
        builder.push(Request { op, cost_ns, ..Request::read(Key::Number(key)) }).unwrap();
    }
    builder.finish().unwrap()
}

/// The costs of hits and misses with LRU, by its definition.
fn lru_costs(trace: &Trace, entries: usize, all_reads: bool) -> (u64, u64) {
    let (mut recent, mut hit_ns, mut miss_ns) = (Vec::new(), 0, 0);
    for (at, id) in trace.ids().iter().enumerate() {
        let id = id.get();
        let op = trace.ops().map_or(Op::Read, |ops| Op::from_number(ops[at]));
        let was_there = recent.contains(&id);
        recent.retain(|other| *other != id);
        if op == Op::Delete && !all_reads {
            continue;
        }
        recent.insert(0, id);
        recent.truncate(entries);
        if op == Op::Read || all_reads {
            let cost_ns = trace.costs_ns().unwrap()[at].get();
            *(if was_there { &mut hit_ns } else { &mut miss_ns }) += cost_ns;
        }
    }
    (hit_ns, miss_ns)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stated_costs_are_those_of_the_reads_that_hit_and_miss(
        requests in prop::collection::vec(
            (0_u64..8, 0_u8..4, prop::option::of(0_u64..100)), 1..200),
        entries in 1_usize..6,
        windows in 0_usize..4,
        all_reads: bool,
    ) {
        let op = |number| [Op::Read, Op::Read, Op::Write, Op::Delete][usize::from(number)];
        let mut requests: Vec<_> =
            requests.into_iter().map(|(key, number, cost)| (key, op(number), cost)).collect();
        requests[0].2 = Some(7);
        let trace = with_costs(&requests);
        let operations = if all_reads { Operations::AllReads } else { Operations::AsTheyAre };
        let options = Options { operations, windows: Windows::Equal(windows), ..Options::new(Accounting::Objects) };
        let outcome = run(&trace, "lru", entries as u64, &options);
        let counts = outcome.counts;
        prop_assert_eq!(
            (counts.hit_cost_ns, counts.miss_cost_ns), lru_costs(&trace, entries, all_reads));
        if windows > 0 {
            let sum: u64 = outcome.windows.iter().map(|part| part.hit_cost_ns).sum();
            prop_assert_eq!(sum, counts.hit_cost_ns);
        }
        assert_equal(MissCost::OfTrace.saved_ns(&counts), counts.hit_cost_ns as f64);
        assert_equal(MissCost::OfTrace.lost_ns(&counts), counts.miss_cost_ns as f64);
    }
}

/// Keys that are cheap, each read three times within a while and never again, in turn with a loop over keys that cost a thousand times as
/// much: what saves most reads saves little time.
#[test]
fn advice_by_stated_costs_chooses_what_saves_time() {
    let cheap = |at: u64| (1_000 + at / 180 * 60 + at % 60, Op::Read, Some(1_000));
    let dear = |at: u64| (at % 80, Op::Read, Some(1_000_000));
    let requests: Vec<_> = (0..60_000)
        .map(|at| if at % 4 == 3 { dear(at / 4) } else { cheap(at / 4 * 3 + at % 4) })
        .collect();
    let trace = with_costs(&requests);
    let of = |goal| {
        let question = Question { budget: Some(100), goal, ..Question::new() };
        advise(&trace, &question, &()).unwrap().unwrap()
    };
    let (by_reads, by_cost) = (of(Goal::Reads), of(Goal::Cost(MissCost::OfTrace)));
    let options = Options::new(Accounting::Objects);
    let saved_ns = |advice: &Advice| {
        let choice = advice.choice.as_ref().unwrap();
        let outcome = run(&trace, &choice.policy, choice.capacity, &options);
        MissCost::OfTrace.saved_ns(&outcome.counts)
    };
    assert!(saved_ns(&by_cost) > saved_ns(&by_reads));
    let choice = by_cost.choice.as_ref().unwrap();
    assert_equal(choice.cost_saved_ns.unwrap(), saved_ns(&by_cost));
    let total_ns = 45_000.0 * 1e3 + 15_000.0 * 1e6;
    assert_equal(choice.cost_saved_ratio.unwrap(), saved_ns(&by_cost) / total_ns);
    assert!(by_reads.choice.as_ref().unwrap().cost_saved_ns.is_none());
    assert!(by_cost.equal_reads < 16_000, "the dear ones decide: {}", by_cost.equal_reads);
}

#[test]
fn a_sample_estimates_the_costs_of_the_whole() {
    let requests: Vec<_> =
        (0..200_000_u64).map(|at| (at * at % 20_011, Op::Read, Some(10 + at % 7))).collect();
    let trace = with_costs(&requests);
    let sample = trace.sample(Sampling::new(0.5, 3).unwrap()).unwrap();
    let options = Options::new(Accounting::Objects);
    let cost =
        |trace: &Trace| MissCost::OfTrace.saved_ratio(&run(trace, "lru", 5_000, &options).counts);
    let (whole, sampled) = (cost(&trace), cost(&sample));
    assert!((whole - sampled).abs() < 0.05, "{whole} {sampled}");
}

#[test]
fn stated_costs_are_refused_where_there_are_none() {
    let question = Question { goal: Goal::Cost(cost("trace")), ..Question::new() };
    let error = advise(&reads_of(&[1, 1]), &question, &()).unwrap_err();
    assert!(matches!(error, SimulateError::NoCosts), "{error}");
    assert!(error.to_string().contains("a recording, a column cost in CSV"), "{error}");
    assert_eq!(MissCost::OfTrace.to_string(), "trace");
}
