//! Many simulations at once.

use std::ops::{ControlFlow, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

use haypile_sim::Trace;
use haypile_sim::simulate::{
    Accounting, Cell, Contender, Counts, Monitor, Options, Outcome, SimulateError, Sweep, Warmup,
    Windows, simulate,
};
use haypile_sim::trace::{BuildOptions, Key, Op, Request, Sink, TraceBuilder};
use parking_lot::Mutex;

use crate::support::simulation::{pattern, reads_of, redis_build, run, run_in, trace_of};

fn sweep(jobs: usize) -> Sweep {
    Sweep {
        contenders: Contender::parse_list("lru,s3fifo:small=20,threshold=2,belady,lirs").unwrap(),
        capacities: vec![300, 10, 100],
        options: Options {
            warmup: Warmup::Percent(10.0),
            windows: Windows::Equal(7),
            ..Options::new(Accounting::Objects)
        },
        jobs,
    }
}

/// All of a cell but the time that it took.
#[derive(Debug, PartialEq)]
struct Facts {
    contender: usize,
    capacity: usize,
    counts: Counts,
    windows: Vec<Counts>,
    /// The capacity, what was used of it, entries and bytes of metadata.
    numbers: [u64; 4],
}

impl Facts {
    fn of(cell: &Cell) -> Self {
        let outcome = cell.outcome.as_ref().expect("a finished cell");
        Self {
            contender: cell.contender,
            capacity: cell.capacity,
            counts: outcome.counts,
            windows: outcome.windows.clone(),
            numbers: [outcome.capacity, outcome.used, outcome.entries, outcome.metadata_bytes],
        }
    }
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let trace = redis_build();
    let cells: Vec<_> = sweep(1).run(&trace, &()).unwrap().iter().map(Facts::of).collect();
    // Capacity by capacity, in the order asked for.
    let order: Vec<_> = cells.iter().map(|cell| (cell.capacity, cell.contender)).collect();
    let expected: Vec<_> =
        (0..3).flat_map(|capacity| (0..4).map(move |one| (capacity, one))).collect();
    assert_eq!(order, expected);
    for jobs in [0, 2, 5, 100] {
        let others: Vec<_> = sweep(jobs).run(&trace, &()).unwrap().iter().map(Facts::of).collect();
        assert_eq!(others, cells, "{jobs} jobs");
    }
    // Each is what it is alone.
    for cell in cells {
        let sweep = sweep(1);
        let name = sweep.contenders[cell.contender].to_string();
        let alone = run(&trace, &name, sweep.capacities[cell.capacity], &sweep.options);
        assert_eq!(cell.counts, alone.counts, "{name}");
    }
}

/// Monitor that ends the sweep after a number of requests and notes the finished simulations.
struct Impatient {
    left: AtomicU64,
    finished: Mutex<Vec<(String, u64, u64)>>,
}

impl Monitor for Impatient {
    fn advance(&self, requests: u64) -> ControlFlow<()> {
        let take = |left: u64| left.checked_sub(requests);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            return ControlFlow::Continue(());
        }
        self.left.store(0, Ordering::SeqCst);
        ControlFlow::Break(())
    }

    fn finished(&self, contender: &Contender, capacity: u64, outcome: &Outcome) {
        self.finished.lock().push((contender.to_string(), capacity, outcome.counts.misses));
    }
}

#[test]
fn what_is_finished_stays_when_a_sweep_is_ended() {
    let trace = redis_build();
    let sweep = |jobs| Sweep { options: Options::new(Accounting::Objects), ..sweep(jobs) };
    let whole = sweep(1).run(&trace, &()).unwrap();
    for jobs in [1, 2] {
        // Enough for five and a half.
        let left = AtomicU64::new(trace.requests() as u64 * 11 / 2);
        let impatient = Impatient { left, finished: Mutex::default() };
        let cells = sweep(jobs).run(&trace, &impatient).unwrap();
        let mut kept = Vec::new();
        for cell in &cells {
            let Some(outcome) = &cell.outcome else { continue };
            let same = whole
                .iter()
                .find(|other| (other.contender, other.capacity) == (cell.contender, cell.capacity));
            assert_eq!(outcome.counts, same.unwrap().outcome.as_ref().unwrap().counts);
            let name = sweep(1).contenders[cell.contender].to_string();
            kept.push((name, outcome.capacity, outcome.counts.misses));
        }
        assert_eq!(kept.len(), 5, "{jobs} jobs");
        let mut finished = impatient.finished.into_inner();
        finished.sort();
        kept.sort();
        assert_eq!(kept, finished);
    }
}

#[test]
fn whoever_ends_it_at_once_gets_nothing_and_waits_for_nothing() {
    struct Never(AtomicU64);
    impl Monitor for Never {
        fn advance(&self, requests: u64) -> ControlFlow<()> {
            self.0.fetch_add(requests, Ordering::SeqCst);
            ControlFlow::Break(())
        }
    }
    let trace = pattern("uniform:keys=100", 1_000_000);
    let never = Never(AtomicU64::new(0));
    let cells = Sweep { jobs: 2, ..sweep(2) }.run(&trace, &never).unwrap();
    assert!(cells.iter().all(|cell| cell.outcome.is_none()));
    // A block of each job's first, and nothing of the other ten.
    assert!(never.0.into_inner() <= 2 * (1 << 16));
}

#[test]
fn windows_add_up() {
    let trace = redis_build();
    for (windows, warmup) in [
        (1, Warmup::None),
        (7, Warmup::Requests(1_000)),
        (10, Warmup::Percent(33.3)),
        (100_000, Warmup::None),
    ] {
        let options =
            Options { windows: Windows::Equal(windows), warmup, ..Options::new(Accounting::Bytes) };
        for contender in ["lru", "slru", "belady"] {
            let outcome = run(&trace, contender, 3_000_000, &options);
            assert_eq!(outcome.windows.len(), windows);
            let rest = outcome.windows.iter().copied().fold(outcome.counts, Sub::sub);
            assert_eq!(rest, Counts::default(), "{contender}");
        }
    }
}

/// Requests at these times, in microseconds, for keys that come again.
fn at_times(times: &[u64]) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for (at, time_us) in times.iter().enumerate() {
        let key = Key::Number(at as u64 % 5);
        builder.push(Request { time_us: Some(*time_us), ..Request::read(key) }).unwrap();
    }
    builder.finish().unwrap()
}

#[test]
fn days_begin_with_the_first_request() {
    const HOUR_US: u64 = 3_600_000_000;
    let reads = |trace: &Trace, windows, warmup| {
        let options = Options { windows, warmup, ..Options::new(Accounting::Objects) };
        let outcome = run(trace, "lru", 3, &options);
        let reads: Vec<u64> = outcome.windows.iter().map(Counts::reads).collect();
        assert_eq!(reads.iter().sum::<u64>(), outcome.counts.reads());
        reads
    };
    // From seven o'clock on: two whole days, and some hours that count with the second.
    let hours = [7, 8, 20, 30, 31, 32, 54, 55, 56, 60];
    let trace = at_times(&hours.map(|hour| hour * HOUR_US));
    let days = Windows::whole_days(&trace, 0).unwrap();
    assert_eq!(days, Windows::Days(2));
    assert_eq!(reads(&trace, days, Warmup::None), [4, 6]);
    assert!(matches!(Windows::whole_days(&trace, 4), Ok(Windows::Days(1))));
    assert_eq!(reads(&trace, Windows::Days(2), Warmup::Requests(4)), [3, 3]);
    // A day without requests, and times that go back.
    assert_eq!(reads(&trace, Windows::Days(4), Warmup::None), [4, 3, 3, 0]);
    let backwards = at_times(&[50, 49, 30, 20, 10, 40, 5, 90].map(|hour| hour * HOUR_US));
    let all = reads(&backwards, Windows::Days(9), Warmup::None);
    assert_eq!((all.len(), all.iter().sum::<u64>()), (9, 8));
    let error = simulate(
        &trace_of(&[(1, Op::Read, 1)]),
        &"lru".parse().unwrap(),
        1,
        &Options { windows: Windows::Days(2), ..Options::new(Accounting::Objects) },
        &mut |_| ControlFlow::Continue(()),
    );
    assert!(matches!(error, Err(SimulateError::NoDays)));
    let timeless = Windows::whole_days(&trace_of(&[(1, Op::Read, 1)]), 0);
    assert!(matches!(timeless, Err(SimulateError::NoDays)));
    // A first request without a time, or times of another unit, make days without end, which nobody has the memory for.
    let days = |last_us| Windows::whole_days(&at_times(&[0, last_us]), 0);
    assert!(matches!(days(1_000 * 24 * HOUR_US), Ok(Windows::Days(1_000))));
    for last_us in [1_001 * 24 * HOUR_US, u64::MAX] {
        assert!(matches!(days(last_us), Err(SimulateError::TooManyDays { most: 1_000, .. })));
    }
}

fn error(trace: &Trace, change: impl Fn(&mut Sweep)) -> SimulateError {
    let mut error = None;
    for jobs in [1, 2] {
        let mut sweep = Sweep { options: Options::new(Accounting::Objects), ..sweep(jobs) };
        change(&mut sweep);
        error = Some(sweep.run(trace, &()).unwrap_err());
    }
    error.unwrap()
}

#[test]
fn what_cannot_be_simulated_is_an_error_that_says_so() {
    let trace = reads_of(&[1, 2, 3, 1]);
    let zero = error(&trace, |sweep| sweep.capacities = vec![5, 0]);
    assert!(matches!(zero, SimulateError::ZeroCapacity));
    assert_eq!(zero.to_string(), "a cache of size 0 holds nothing; give a size of 1 or more");

    let warmups = [
        Warmup::Requests(4),
        Warmup::Requests(u64::MAX),
        Warmup::Percent(100.0),
        Warmup::Percent(1e300),
    ];
    for warmup in warmups {
        let long = error(&trace, |sweep| sweep.options.warmup = warmup);
        let SimulateError::WarmupTooLong { warmup, requests: 4 } = long else { panic!("{long}") };
        assert!(warmup >= 4);
        let expected = format!(
            "the warm-up of {warmup} requests leaves none of the trace's 4 requests to count; \
             make it shorter"
        );
        assert_eq!(long.to_string(), expected);
    }

    for accounting in [Accounting::Bytes, Accounting::Relstorage, Accounting::Engine] {
        let none = error(&trace, |sweep| sweep.options.accounting = accounting);
        assert!(matches!(none, SimulateError::NoSizes), "{accounting}");
        assert!(none.to_string().contains("state sizes to assume"), "{none}");
    }

    let unknown = "stones".parse::<Accounting>().unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown accounting 'stones' (known: objects, bytes, relstorage, engine)"
    );
}

#[test]
fn a_trace_without_requests_gives_zeros() {
    let trace = reads_of(&[]);
    for contender in ["lru", "s3fifo", "belady", "belady:decline=1"] {
        let options = Options { windows: Windows::Equal(3), ..Options::new(Accounting::Objects) };
        let outcome = run(&trace, contender, 1, &options);
        assert_eq!(outcome.counts, Counts::default());
        assert!(outcome.counts.hit_ratio().abs() < f64::MIN_POSITIVE);
    }
}

#[test]
fn nothing_to_sweep_is_nothing() {
    let trace = reads_of(&[1]);
    for sweep in
        [Sweep { contenders: Vec::new(), ..sweep(2) }, Sweep { capacities: Vec::new(), ..sweep(2) }]
    {
        assert!(sweep.run(&trace, &()).unwrap().is_empty());
    }
}

/// Contenders are written as they are read.
#[test]
fn contenders_have_names() {
    let names = ["lru", "belady", "belady:decline=1", "s3fifo:small=20,threshold=2"];
    let contenders = Contender::parse_list(&names.join(",")).unwrap();
    let written: Vec<_> = contenders.iter().map(Contender::to_string).collect();
    assert_eq!(written, names);
    assert!("belady:decline=2".parse::<Contender>().is_err());
}

/// The value that a write replaces is not the key's any more, even if the new one is not stored.
#[test]
fn a_write_that_is_too_large_leaves_nothing_behind() {
    let trace = trace_of(&[
        (1, Op::Write, 100),
        (1, Op::Write, 5_000),
        (1, Op::Read, 100),
        (1, Op::Read, 100),
    ]);
    for accounting in [Accounting::Bytes, Accounting::Engine] {
        for policy in ["lru", "s3fifo", "arc", "segment", "belady", "belady:decline=1"] {
            let counts = run_in(&trace, policy, 4_000, accounting).counts;
            assert_eq!((counts.hits, counts.misses), (1, 1), "{policy} {accounting}");
            // A larger cache would have had it.
            assert_eq!(counts.cold_misses, 0, "{policy} {accounting}");
            assert!(counts.refused > 0, "{policy} {accounting}");
        }
    }
}
