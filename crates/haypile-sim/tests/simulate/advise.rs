//! Advice on traces with a known answer.

use std::ops::ControlFlow;

use haypile::Registry;
use haypile_policy::PolicySpec;
use haypile_sim::Trace;
use haypile_sim::advise::{Advice, Choice, Question, advise};
use haypile_sim::simulate::{Accounting, Goal, Monitor, Options, SimulateError, Windows};
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{BuildOptions, Key, Op, Request, Sink, TraceBuilder};

use crate::support::simulation::{generate, pattern, reads_of, redis_build, run, run_in, trace_of};

fn ask(trace: &Trace, budget: Option<u64>) -> Advice {
    let advice = advise(trace, &Question { budget, ..Question::new() }, &()).unwrap();
    let advice = advice.expect("nobody ends it");
    assert_sound(trace, budget, &advice);
    advice
}

/// Checks the properties of every advice.
fn assert_sound(trace: &Trace, budget: Option<u64>, advice: &Advice) {
    let text = advice.to_string();
    assert_eq!(advice.requests, trace.requests() as u64);
    assert!(advice.sizes.is_sorted_by_key(|size| size.capacity));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    let Some(choice) = &advice.choice else {
        assert!(text.starts_with("No cache helps here"), "{text}");
        return;
    };
    assert!(budget.is_none_or(|budget| choice.capacity <= budget), "{choice:?}");
    // The prediction is what a simulation of exactly this says.
    let outcome = run_in(trace, &choice.policy, choice.capacity, advice.accounting);
    assert!((outcome.counts.hit_ratio() - choice.hit_ratio).abs() < 1e-12);
    for policy in &advice.policies {
        assert_eq!(policy.hit_ratios.len(), advice.sizes.len());
        let at = advice.sizes.iter().position(|size| size.capacity == choice.capacity).unwrap();
        let outcome = run_in(trace, &policy.policy, choice.capacity, advice.accounting);
        assert!((outcome.counts.hit_ratio() - policy.hit_ratios[at]).abs() < 1e-12);
    }
    let optimum = choice.optimum_hit_ratio.expect("nothing expires here");
    assert!(choice.hit_ratio <= optimum, "{choice:?}");
    assert!(optimum <= advice.best_possible + 1e-12, "{choice:?}");
    assert_parts(trace, advice, choice);
    if let Some(more) = &choice.more_bytes {
        let other = run_in(trace, &more.policy, choice.capacity, advice.accounting);
        assert!((other.counts.byte_hit_ratio() - more.byte_hit_ratio).abs() < 1e-12);
        assert!((other.counts.hit_ratio() - more.hit_ratio).abs() < 1e-12);
        assert!(more.byte_hit_ratio >= choice.byte_hit_ratio + 0.01, "{choice:?}");
    }
    // The last line is a cache that opens, of this policy.
    assert_eq!(text.lines().last(), Some(&*choice.url));
    let store = Registry::default().open(&choice.url).unwrap();
    let policy = store.describe();
    let policy = policy.split("policy=").nth(1).unwrap();
    assert_eq!(policy.replace(':', ","), choice.policy.replace(':', ","));
    if advice.accounting == Accounting::Engine {
        assert_eq!(store.limits().capacity_bytes, Some(choice.capacity));
    }
}

/// Simulates the numbers of the parts of the trace again.
fn assert_parts(trace: &Trace, advice: &Advice, choice: &Choice) {
    let parts = |policy: &str| {
        let options = Options { windows: Windows::Equal(10), ..Options::new(advice.accounting) };
        run(trace, policy, choice.capacity, &options).windows
    };
    let is_equal = |one: f64, other: f64| (one - other).abs() < 1e-12;
    let own: Vec<f64> = parts(&choice.policy)
        .iter()
        .filter(|part| part.reads() > 0)
        .map(haypile_sim::simulate::Counts::hit_ratio)
        .collect();
    assert!(is_equal(own[0], choice.first_part_hit_ratio));
    assert!(is_equal(*own.last().unwrap(), choice.last_part_hit_ratio));
    for test in &choice.rolling {
        let at = |policy: &str| parts(policy)[test.part - 1].hit_ratio();
        assert!(is_equal(at(&test.policy), test.hit_ratio), "{test:?}");
        assert!(is_equal(at(&test.best), test.best_hit_ratio), "{test:?}");
        assert!(test.regret() >= 0.0, "{test:?}");
    }
}

fn chosen(trace: &Trace, budget: Option<u64>) -> Choice {
    ask(trace, budget).choice.expect("a cache helps")
}

fn zipf() -> Trace {
    generate(&Spec {
        sizes: Some("lognormal:median=500,sigma=1".parse().unwrap()),
        writes: 0.1,
        deletes: 0.02,
        ..Spec::new("zipf:keys=2000,exponent=0.9".parse().unwrap(), 20_000)
    })
}

#[test]
fn a_skewed_trace() {
    let advice = ask(&zipf(), None);
    assert_eq!(advice.accounting, Accounting::Engine);
    let choice = advice.choice.unwrap();
    assert!(choice.hit_ratio > 0.5 && choice.hit_ratio > advice.best_possible - 0.1, "{choice:?}");
    assert_eq!(advice.knee, Some(choice.capacity));
}

#[test]
fn budgets_bind() {
    let trace = zipf();
    let most = ask(&trace, None);
    let mut before = 0.0;
    for budget in [1 << 10, 5_000, 20_000, 100_001, 1 << 18] {
        let choice = chosen(&trace, Some(budget));
        assert!(choice.hit_ratio >= before, "{budget}: {choice:?}");
        before = choice.hit_ratio;
    }
    for enormous in [1 << 40, u64::MAX] {
        assert_eq!(ask(&trace, Some(enormous)), most);
    }
    // A budget that ends before the knee is spent, and said to end there.
    let advice = ask(&trace, Some(20_000));
    assert_eq!((advice.knee, advice.choice.as_ref().unwrap().capacity), (None, 20_000));
    assert!(advice.to_string().contains("the budget ends before the knee"), "{advice}");
}

#[test]
fn a_budget_that_buys_nothing_is_an_error() {
    let trace = zipf();
    let refused = |budget, accounting| {
        let question = Question { budget: Some(budget), accounting, ..Question::new() };
        advise(&trace, &question, &()).unwrap_err()
    };
    assert!(matches!(refused(0, None), SimulateError::ZeroCapacity));
    assert!(matches!(refused(0, Some(Accounting::Objects)), SimulateError::ZeroCapacity));
    assert_eq!(
        refused(1023, None).to_string(),
        "a budget of 1023 bytes is below the 1024 bytes of the smallest cache; raise it"
    );
}

/// Below its length a loop gives LRU not one hit.
#[test]
fn a_loop_is_not_for_lru() {
    let trace = pattern("loop:keys=1000", 30_000);
    for budget in [300, 500, 900] {
        let choice = chosen(&trace, Some(budget));
        assert_ne!(choice.policy, "lru");
        assert!(choice.hit_ratio > 0.2, "{budget}: {choice:?}");
        assert!(choice.over_lru.unwrap().difference > 0.2, "{choice:?}");
        assert_eq!(choice.lru_needs, Some(1000));
    }
    let choice = chosen(&trace, None);
    assert!(choice.capacity >= 1000 && choice.hit_ratio > 0.96, "{choice:?}");
}

#[test]
fn nothing_is_read_again() {
    let scan = pattern("scan:keys=5000", 5_000);
    let writes = trace_of(&[(1, Op::Write, 10), (1, Op::Write, 10), (1, Op::Delete, 0)]);
    for trace in [scan, writes, reads_of(&[]), reads_of(&[1])] {
        for budget in [None, Some(1 << 10), Some(1 << 50)] {
            let advice = ask(&trace, budget);
            assert!(advice.choice.is_none(), "{advice}");
            assert!(advice.best_possible.abs() < f64::MIN_POSITIVE);
        }
    }
}

#[test]
fn a_trace_of_two_requests() {
    for trace in [reads_of(&[1, 1]), trace_of(&[(1, Op::Read, 5), (1, Op::Read, 5)])] {
        let advice = ask(&trace, None);
        let choice = advice.choice.as_ref().unwrap();
        assert!((choice.hit_ratio - 0.5).abs() < 1e-12);
        assert!(advice.to_string().contains("there are only 2 reads"), "{advice}");
    }
}

#[test]
fn a_trace_without_sizes_says_what_it_assumes() {
    let advice = ask(&pattern("zipf:keys=2000,exponent=0.9", 20_000), None);
    assert_eq!(advice.accounting, Accounting::Objects);
    assert!(advice.choice.as_ref().unwrap().url_assumes_sizes);
    assert!(advice.to_string().contains("assumes values of 1 KiB"), "{advice}");
    let question = Question { accounting: Some(Accounting::Bytes), ..Question::new() };
    let error = advise(&reads_of(&[1, 1]), &question, &()).unwrap_err();
    assert!(matches!(error, SimulateError::NoSizes));
}

#[test]
fn every_accounting_gives_a_cache_that_opens() {
    for trace in [zipf(), redis_build(), trace_of(&[(1, Op::Read, 0), (1, Op::Read, 0)])] {
        for accounting in Accounting::ALL {
            let question = Question { accounting: Some(accounting), jobs: 2, ..Question::new() };
            let advice = advise(&trace, &question, &()).unwrap().unwrap();
            assert_eq!(advice.accounting, accounting);
            assert_sound(&trace, None, &advice);
            assert!(advice.choice.is_some());
        }
    }
}

#[test]
fn whoever_ends_it_gets_no_advice() {
    struct Never;
    impl Monitor for Never {
        fn advance(&self, _requests: u64) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    assert!(advise(&zipf(), &Question::new(), &Never).unwrap().is_none());
}

/// Sixty keys in turn, a hundred times.
#[test]
fn the_text() {
    let requests: Vec<_> = (0..6_000).map(|n| (10 + n % 60, Op::Read, 872)).collect();
    let trace = trace_of(&requests);
    for (budget, expected) in [(None, AMPLE), (Some(40_000), TIGHT)] {
        assert_eq!(ask(&trace, budget).to_string(), expected);
    }
    assert_eq!(ask(&trace_of(&requests[..60]), None).to_string(), NONE);
}

const AMPLE: &str = "\
Take s3fifo with 64KiB: it answers 99.0 % of 6,000 reads and 99.0 % of their bytes.

Why this size: everything that is read again fits, half as much would cost 46.3 points. Beyond 58.6 KiB even LRU gains nothing.
Why this policy: LRU does as well.
How sure: not at all of the policy: nothing was evicted, so that this trace says nothing about it; there are only 6,000 reads.
What else: the first tenth, with an empty cache at first, has 90.0 %, and the last, with a warm one, 100.0 %. Knowing the future, at least 99.0 % would be possible, and 99.0 % without a bound.

memory://?size=64KiB&policy=s3fifo
";
const TIGHT: &str = "\
Take wtinylfu with 40KB: it answers 65.6 % of 6,000 reads and 65.6 % of their bytes.

Why this size: this is the budget. Beyond 58.6 KiB even LRU gains nothing.
Why this policy: LRU hits 65.6 points less (+56.3 to +66.7 points in tenths of the trace, ahead in 10 of 10); it needs 58.6 KiB for the same.
How sure: moderately: there are only 6,000 reads.
What else: the first tenth, with an empty cache at first, has 56.3 %, and the last, with a warm one, 66.7 %. Knowing the future, at least 66.0 % would be possible, and 99.0 % without a bound.

memory://?size=40KB&policy=wtinylfu
";
const NONE: &str = "\
No cache helps here: of 60 reads, none asks for a value that was stored before.
";

#[test]
fn what_no_store_runs_is_not_advised() {
    for refused in ["slru:overflow=1", "segment"] {
        let policies = PolicySpec::parse_list(&format!("lru,{refused}")).unwrap();
        let question = Question { policies, ..Question::new() };
        let error = advise(&redis_build(), &question, &()).unwrap_err();
        assert!(matches!(error, SimulateError::NotAdvisable { policy } if policy == refused));
    }
}

#[test]
fn the_url_is_the_one_that_the_store_has() {
    let policies = PolicySpec::parse_list("s3fifo:small=20,threshold=2").unwrap();
    let question = Question { policies, ..Question::new() };
    let advice = advise(&redis_build(), &question, &()).unwrap().unwrap();
    let url = advice.choice.unwrap().url;
    assert_eq!(Registry::default().open(&url).unwrap().describe(), url);
}

/// Small caches with several shards can hit less than one of the same size: with the store's accounting
/// they are simulated, with another it is said.
#[test]
fn what_shards_cost_is_said_where_it_is_not_simulated() {
    let text = |keys: u32, size: u64, accounting: Accounting| {
        let requests: Vec<_> = (0..3)
            .flat_map(|_| (0..u64::from(keys)).map(move |key| (key, Op::Read, size)))
            .collect();
        let question = Question { accounting: Some(accounting), ..Question::new() };
        advise(&trace_of(&requests), &question, &()).unwrap().unwrap().to_string()
    };
    assert!(text(500, 30_000, Accounting::Bytes).contains("add shards=1"));
    assert!(!text(500, 30_000, Accounting::Engine).contains("add shards=1"), "simulated");
    assert!(!text(500, 1_000, Accounting::Bytes).contains("shards"), "one shard");
    assert!(!text(500, 200_000, Accounting::Bytes).contains("shards"), "large ones");
}

/// One half of a trace need not be like the other: a loop, then a skewed part.
#[test]
fn a_trace_whose_best_policy_changes_is_said_to() {
    let looped = (0..40_000_u64).map(|n| n % 300);
    // Each new key is read twice, some requests apart, and never again.
    let recent = (0..40_000_u64).map(|n| 1_000 + (n / 2).saturating_sub(20 * (n % 2)));
    let trace = trace_of(&looped.chain(recent).map(|key| (key, Op::Read, 100)).collect::<Vec<_>>());
    let question = Question {
        budget: Some(100),
        accounting: Some(Accounting::Objects),
        policies: PolicySpec::parse_list("lru,wtinylfu").unwrap(),
        ..Question::new()
    };
    let advice = advise(&trace, &question, &()).unwrap().unwrap();
    assert_sound(&trace, Some(100), &advice);
    let choice = advice.choice.as_ref().unwrap();
    let worst = choice.rolling.iter().max_by(|a, b| a.regret().total_cmp(&b.regret())).unwrap();
    assert_eq!((&*worst.policy, &*worst.best), ("wtinylfu", "lru"), "{advice}");
    let text = advice.to_string();
    assert!(text.contains("(wtinylfu behind lru)"), "{text}");
}

#[test]
fn a_trace_that_goes_on_as_it_began_is_sure() {
    for (keys, budget) in [
        ("zipf:keys=2000,exponent=0.9", 100),
        ("zipf:keys=50000,exponent=0.7", 400),
        ("loop:keys=2000", 600),
    ] {
        let advice = ask(&pattern(keys, 200_000), Some(budget));
        let text = advice.to_string();
        assert!(
            text.contains(
                "How sure: very, as far as tomorrow is like this trace: chosen on its beginning"
            ),
            "{text}"
        );
        assert_eq!(advice.choice.unwrap().rolling.len(), 9);
    }
}

#[test]
fn without_evictions_nothing_is_said_of_the_policy_and_of_a_growing_set_nor_of_the_size() {
    let steady: Vec<u64> = (0..20_000).map(|n| n % 50).collect();
    let text = ask(&reads_of(&steady), None).to_string();
    assert!(text.contains("How sure: not at all of the policy: nothing was evicted, so that this trace says nothing about it.\n"), "{text}");
    // Every second request is for a new key, and the other one for the key before it.
    let growing: Vec<u64> = (0..20_000).map(|n| n / 2).collect();
    let advice = ask(&reads_of(&growing), None);
    if advice.choice.as_ref().is_some_and(|choice| choice.turnovers <= 0.0) {
        assert!(
            advice.to_string().contains("new keys still came with 1,000 of 2,000 requests"),
            "{advice}"
        );
    }
    assert!(advice.growth.goes_on());
    assert_eq!((advice.growth.requests, advice.growth.new_keys), (2_000, 1_000));
    assert!(advice.growth.new_keys_per_hour.is_none());
}

/// Small values are asked for often, and a few large ones, which fill the cache, less often.
#[test]
fn a_policy_that_serves_more_bytes_is_named() {
    let advice = ask(&redis_build(), Some(2 << 20));
    let choice = advice.choice.as_ref().unwrap();
    let more = choice.more_bytes.as_ref().expect("another one serves more");
    assert_ne!(more.policy, choice.policy);
    let expected = format!("if bytes count more than reads, {} serves ", more.policy);
    assert!(advice.to_string().contains(&expected), "{advice}");
}

/// A cache that is filled for most of the trace, and read at the end.
#[test]
fn reads_in_few_parts_of_a_trace_are_a_doubt() {
    let writes = (0..60_000_u64).map(|n| (n, Op::Write, 100));
    let reads = (0..20_000_u64).map(|n| (n * 7 % 300, Op::Read, 100));
    let trace = trace_of(&writes.chain(reads).collect::<Vec<_>>());
    let text = ask(&trace, Some(60_000)).to_string();
    assert!(text.contains("only 3 of 10 parts of the trace have reads"), "{text}");
}

/// By bytes, a hundred large values among many small ones are as few reads as there are of them.
#[test]
fn few_large_values_are_a_doubt_by_bytes_alone() {
    let requests: Vec<_> = (0..40_000_u64)
        .map(|n| {
            if n % 400 == 0 {
                (1_000 + n % 7, Op::Read, 1 << 20)
            } else {
                (n * 7 % 900, Op::Read, 100)
            }
        })
        .collect();
    let trace = trace_of(&requests);
    let doubt = "large values decide: by their bytes the 40,000 reads tell as much as 1";
    let question = Question { budget: Some(3 << 20), ..Question::new() };
    let by = |goal| advise(&trace, &Question { goal, ..question.clone() }, &()).unwrap().unwrap();
    let bytes = by(Goal::Bytes);
    assert!((100..110).contains(&bytes.equal_reads), "{}", bytes.equal_reads);
    assert!(bytes.to_string().contains(doubt), "{bytes}");
    let reads = by(Goal::Reads);
    assert_eq!(reads.equal_reads, 40_000);
    assert!(!reads.to_string().contains("large values"), "{reads}");
}

/// A week of requests is divided into its days, a shorter log into tenths.
#[test]
fn a_week_is_divided_into_days() {
    let advice = |seconds: u64| {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for at in 0..40_000_u64 {
            // Squares of what looks random: small keys are frequent.
            let number = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let key = Key::Number((number % 2_000).pow(2) / 2_000);
            let time_us = Some(at * seconds * 25);
            builder.push(Request { time_us, ..Request::read(key) }).unwrap();
        }
        let question = Question { budget: Some(200), ..Question::new() };
        advise(&builder.finish().unwrap(), &question, &()).unwrap().unwrap()
    };
    let week = advice(7 * 86_400 + 60);
    assert_eq!(week.windows, Windows::Days(7));
    assert_eq!(week.choice.as_ref().unwrap().rolling.len(), 6);
    let text = week.to_string();
    assert!(text.contains("behind the best of the next day on average"), "{text}");
    assert!(text.contains("the first day, with an empty cache at first, has"), "{text}");
    let short = advice(5 * 86_400);
    assert_eq!(short.windows, Windows::Equal(10));
    assert_eq!(short.choice.as_ref().unwrap().rolling.len(), 9);
    assert!(short.to_string().contains("behind the best of the next tenth on average"));
    // So is one whose times are wrong.
    assert_eq!(advice(u64::MAX / 25 / 40_000).windows, Windows::Equal(10));
}
