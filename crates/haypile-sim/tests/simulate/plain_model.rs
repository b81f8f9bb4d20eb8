//! The simulator against models so plain that they can be read: LRU and FIFO as queues, request by
//! request, and the optimum by trying everything.

use std::collections::{HashSet, VecDeque};

use haypile_sim::simulate::{
    Accounting, Counts, Options, RELSTORAGE_VALUE_LIMIT_BYTES, SizeRule, Warmup, Windows,
};
use haypile_sim::trace::Op;
use proptest::prelude::*;

use crate::support::simulation::{reads_of, run, run_in, trace_of};

/// A cache as a queue of keys and weights, the next to leave first.
struct Model {
    moves_on_use: bool,
    accounting: Accounting,
    capacity: u64,
    queue: VecDeque<(u64, u64)>,
    /// Keys that a cache without a bound would hold.
    stored: HashSet<u64>,
    counts: Counts,
}

impl Model {
    fn new(policy: &str, accounting: Accounting, capacity: u64) -> Self {
        Self {
            moves_on_use: policy == "lru",
            accounting,
            capacity,
            queue: VecDeque::new(),
            stored: HashSet::new(),
            counts: Counts::default(),
        }
    }

    fn used(&self) -> u64 {
        self.queue.iter().map(|(_, weight)| weight).sum()
    }

    fn weight(&self, key: u64, bytes: u64) -> Option<u64> {
        let key_bytes = key.to_string().len() as u64;
        match self.accounting {
            Accounting::Objects => Some(1),
            Accounting::Bytes => Some(bytes.max(1)),
            Accounting::Relstorage => {
                (bytes < RELSTORAGE_VALUE_LIMIT_BYTES).then_some(key_bytes + bytes)
            }
            Accounting::Engine => Some(haypile_policy::rules::memory::charge(key_bytes, bytes)),
        }
    }

    fn remove(&mut self, key: u64) {
        self.queue.retain(|(other, _)| *other != key);
    }

    fn touch(&mut self, at: usize) {
        if self.moves_on_use {
            let entry = self.queue.remove(at).unwrap();
            self.queue.push_back(entry);
        }
    }

    fn evict_beyond(&mut self, bound: u64) {
        while self.used() > bound {
            self.queue.pop_front().unwrap();
            self.counts.evictions += 1;
        }
    }

    fn insert(&mut self, key: u64, weight: u64) {
        self.stored.insert(key);
        if weight > self.capacity {
            self.counts.refused += 1;
            return;
        }
        self.evict_beyond(self.capacity - weight);
        self.queue.push_back((key, weight));
    }

    /// A read that hits, of a value that weighs something else now: as if it was written.
    fn request_followed(&mut self, key: u64, op: Op, bytes: u64, value_bytes: u64) {
        let found = self.queue.iter().position(|(other, _)| *other == key);
        let weight = self.weight(key, value_bytes);
        match (op, found, weight) {
            (Op::Read, Some(at), Some(weight)) if self.queue[at].1 != weight => {
                self.counts.hits += 1;
                self.counts.hit_bytes += bytes;
                if weight > self.capacity {
                    self.counts.refused += 1;
                    self.remove(key);
                } else {
                    self.queue[at].1 = weight;
                    self.touch(at);
                    self.evict_beyond(self.capacity);
                }
            }
            (Op::Read, ..) => {
                let before = (self.counts.hit_bytes, self.counts.miss_bytes);
                self.request(key, op, value_bytes);
                // What was sent counts, and what is stored weighs.
                let is_hit = self.counts.hit_bytes > before.0 || found.is_some();
                self.counts.hit_bytes = before.0 + if is_hit { bytes } else { 0 };
                self.counts.miss_bytes = before.1 + if is_hit { 0 } else { bytes };
            }
            _ => self.request(key, op, value_bytes),
        }
    }

    fn request(&mut self, key: u64, op: Op, bytes: u64) {
        let found = self.queue.iter().position(|(other, _)| *other == key);
        let weight = self.weight(key, bytes);
        match (op, found, weight) {
            (Op::Read, Some(at), _) => {
                self.counts.hits += 1;
                self.counts.hit_bytes += bytes;
                self.touch(at);
            }
            (Op::Read, None, weight) => {
                self.counts.misses += 1;
                self.counts.miss_bytes += bytes;
                self.counts.cold_misses += u64::from(!self.stored.contains(&key));
                match weight {
                    Some(weight) => self.insert(key, weight),
                    None => self.counts.refused += 1,
                }
            }
            (Op::Write, _, None) => {
                self.counts.writes += 1;
                self.counts.refused += 1;
            }
            (Op::Write, None, Some(weight)) => {
                self.counts.writes += 1;
                self.insert(key, weight);
            }
            (Op::Write, Some(_), Some(weight)) if weight > self.capacity => {
                self.counts.writes += 1;
                self.counts.refused += 1;
                self.remove(key);
            }
            (Op::Write, Some(at), Some(weight)) => {
                self.counts.writes += 1;
                self.queue[at].1 = weight;
                self.touch(at);
                self.evict_beyond(self.capacity);
            }
            (Op::Delete, _, _) => {
                self.counts.deletes += 1;
                self.remove(key);
                self.stored.remove(&key);
            }
        }
    }
}

fn requests() -> impl Strategy<Value = Vec<(u64, Op, u64)>> {
    let op = prop_oneof![6 => Just(Op::Read), 2 => Just(Op::Write), 1 => Just(Op::Delete)];
    let bytes = prop_oneof![4 => 0_u64..300, 1 => 16_380_u64..16_390];
    prop::collection::vec((prop_oneof![0_u64..10, 95_u64..105], op, bytes), 1..150)
}

/// An accounting, and a capacity that makes it interesting.
fn bound() -> impl Strategy<Value = (Accounting, u64)> {
    prop_oneof![
        (1_u64..15).prop_map(|capacity| (Accounting::Objects, capacity)),
        (1_u64..20_000).prop_map(|capacity| (Accounting::Bytes, capacity)),
        (1_u64..2_000).prop_map(|capacity| (Accounting::Bytes, capacity)),
        (1_u64..2_000).prop_map(|capacity| (Accounting::Relstorage, capacity)),
        (1_024_u64..30_000).prop_map(|capacity| (Accounting::Engine, capacity)),
        (1_024_u64..3_000).prop_map(|capacity| (Accounting::Engine, capacity)),
    ]
}

fn warmup() -> impl Strategy<Value = Warmup> {
    prop_oneof![
        Just(Warmup::None),
        (0_u64..150).prop_map(Warmup::Requests),
        (0.0..100.0).prop_map(Warmup::Percent),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lru_and_fifo_are_queues(
        requests in requests(),
        (accounting, capacity) in bound(),
        warmup in warmup(),
        policy in prop_oneof![Just("lru"), Just("fifo")],
        windows in 0_usize..4,
    ) {
        let len = requests.len();
        let skipped = match warmup {
            Warmup::None => 0,
            Warmup::Requests(requests) => usize::try_from(requests).unwrap() % len,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "fewer than 150 requests"
            )]
            Warmup::Percent(percent) => (len as f64 * percent / 100.0) as usize,
        };
        let warmup = match warmup {
            Warmup::Requests(_) => Warmup::Requests(skipped as u64),
            other => other,
        };
        let mut model = Model::new(policy, accounting, capacity);
        for (at, &(key, op, bytes)) in requests.iter().enumerate() {
            if at == skipped {
                model.counts = Counts::default();
            }
            model.request(key, op, bytes);
            prop_assert!(model.used() <= capacity);
        }
        let options = Options { warmup, windows: Windows::Equal(windows), ..Options::new(accounting) };
        let outcome = run(&trace_of(&requests), policy, capacity, &options);
        prop_assert_eq!(outcome.counts, model.counts);
        prop_assert_eq!(outcome.used, model.used());
        prop_assert_eq!(outcome.entries, model.queue.len() as u64);
        prop_assert_eq!(outcome.windows.len(), windows);
    }
}

/// The same requests, in which a read of another size than its key had before follows a deletion.
fn with_deletions(requests: &[(u64, Op, u64)]) -> Vec<(u64, Op, u64)> {
    let mut last = std::collections::HashMap::new();
    let mut all = Vec::new();
    for &(key, op, bytes) in requests {
        let before = if op == Op::Delete { last.remove(&key) } else { last.insert(key, bytes) };
        if op == Op::Read && before.is_some_and(|before| before != bytes) {
            all.push((key, Op::Delete, bytes));
        }
        all.push((key, op, bytes));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A changed value is as if the old one had been deleted: no cache has it, and it is stored again.
    #[test]
    fn a_changed_size_is_another_value(
        requests in requests(),
        (accounting, capacity) in bound(),
        policy in prop_oneof![
            Just("lru"), Just("s3fifo"), Just("segment"), Just("belady"), Just("belady:decline=1")
        ],
    ) {
        let changed = Options { sizes: SizeRule::Changed, ..Options::new(accounting) };
        let outcome = run(&trace_of(&requests), policy, capacity, &changed);
        let plain = with_deletions(&requests);
        let expected = run(&trace_of(&plain), policy, capacity, &Options::new(accounting));
        let deletes = expected.counts.deletes - (plain.len() - requests.len()) as u64;
        prop_assert_eq!(outcome.counts, Counts { deletes, ..expected.counts });
        prop_assert_eq!((outcome.used, outcome.entries), (expected.used, expected.entries));
    }
}

/// The size of the value of each request, by the definition: the last one that was sent, but for a shorter one
/// after which the next request of the key has the old size again.
fn value_bytes(requests: &[(u64, Op, u64)]) -> Vec<u64> {
    let mut full = std::collections::HashMap::new();
    let of = |(at, &(key, _, bytes)): (usize, &(u64, Op, u64))| {
        let next = requests[at + 1..].iter().find(|(other, ..)| *other == key);
        let old = full.get(&key).copied();
        let is_broken_off =
            old.is_some_and(|old| bytes < old && next.is_some_and(|(.., next)| *next == old));
        if !is_broken_off {
            full.insert(key, bytes);
        }
        full[&key]
    };
    requests.iter().enumerate().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A read of another size is a hit, after which the entry weighs the last full size.
    #[test]
    fn followed_sizes_are_those_of_queues(
        requests in requests(),
        (accounting, capacity) in bound(),
        policy in prop_oneof![Just("lru"), Just("fifo")],
    ) {
        let mut model = Model::new(policy, accounting, capacity);
        for (&(key, op, bytes), value_bytes) in requests.iter().zip(value_bytes(&requests)) {
            model.request_followed(key, op, bytes, value_bytes);
            prop_assert!(model.used() <= capacity);
        }
        let options = Options { sizes: SizeRule::Last, ..Options::new(accounting) };
        let outcome = run(&trace_of(&requests), policy, capacity, &options);
        prop_assert_eq!(outcome.counts, model.counts);
        prop_assert_eq!(outcome.used, model.used());
        prop_assert_eq!(outcome.entries, model.queue.len() as u64);
    }

    /// No policy loses its bound or its count of entries by values that grow and shrink as they are read,
    /// and none hits more than a cache without a bound.
    #[test]
    fn followed_sizes_keep_every_policy_sound(
        requests in requests(),
        (accounting, capacity) in bound(),
        policy in prop_oneof![
            Just("slru"), Just("sieve"), Just("clock"), Just("s3fifo"), Just("wtinylfu"),
            Just("arc"), Just("lirs"), Just("segment"), Just("belady"), Just("belady:decline=1")
        ],
    ) {
        let trace = trace_of(&requests);
        let options = Options { sizes: SizeRule::Last, ..Options::new(accounting) };
        let outcome = run(&trace, policy, capacity, &options);
        prop_assert!(outcome.used <= capacity);
        let reads = requests.iter().filter(|(_, op, _)| *op == Op::Read).count() as u64;
        prop_assert_eq!(outcome.counts.reads(), reads);
        prop_assert!(outcome.counts.cold_misses <= outcome.counts.misses);
        let ample = run(&trace, policy, 1 << 37, &options);
        prop_assert_eq!(ample.counts.evictions, 0);
        prop_assert_eq!(ample.counts.capacity_misses(), 0);
        prop_assert!(outcome.counts.hits <= ample.counts.hits);
    }
}

/// A value is worth what its next read is, if the write before that is one that RelStorage does not store.
#[test]
fn belady_sees_past_writes_that_no_cache_stores() {
    let requests = [(98, Op::Read, 0), (98, Op::Write, 16_384), (98, Op::Read, 0)];
    let options = Options { sizes: SizeRule::Last, ..Options::new(Accounting::Relstorage) };
    for policy in ["lru", "belady", "belady:decline=1"] {
        let counts = run(&trace_of(&requests), policy, 1 << 20, &options).counts;
        assert_eq!((counts.hits, counts.misses, counts.refused), (1, 1, 1), "{policy}");
    }
}

/// The fewest misses there can be, by trying every victim: `cached` has a bit for each key.
fn fewest_misses(requests: &[(u64, Op)], cached: u32, capacity: u32, may_decline: bool) -> u64 {
    let Some((&(key, op), rest)) = requests.split_first() else { return 0 };
    let newcomer = 1 << key;
    let go_on = |cached| fewest_misses(rest, cached, capacity, may_decline);
    if op == Op::Delete {
        return go_on(cached & !newcomer);
    }
    if cached & newcomer != 0 {
        return go_on(cached);
    }
    let miss = u64::from(op == Op::Read);
    if cached.count_ones() < capacity {
        return miss + go_on(cached | newcomer);
    }
    let victims = (0..u32::BITS).map(|key| 1 << key).filter(|victim| cached & victim != 0);
    let evicting = victims.map(|victim| go_on(cached & !victim | newcomer));
    let declining = may_decline.then(|| go_on(cached));
    miss + evicting.chain(declining).min().unwrap()
}

const BELADY: [(&str, bool); 2] = [("belady", false), ("belady:decline=1", true)];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_choice_of_victims_beats_belady_with_writes_and_deletes(
        requests in prop::collection::vec(
            (0_u64..5, prop_oneof![5 => Just(Op::Read), 2 => Just(Op::Write), 1 => Just(Op::Delete)]),
            1..12,
        ),
        capacity in 1_u32..4,
    ) {
        let sized: Vec<_> = requests.iter().map(|&(key, op)| (key, op, 1)).collect();
        let trace = trace_of(&sized);
        for (contender, may_decline) in BELADY {
            let outcome = run_in(&trace, contender, capacity.into(), Accounting::Objects);
            let fewest = fewest_misses(&requests, 0, capacity, may_decline);
            prop_assert_eq!(outcome.counts.misses, fewest, "{} at {}", contender, capacity);
            prop_assert!(outcome.used <= u64::from(capacity));
        }
    }
}

/// Calls `visit` with every trace of `requests` requests that numbers its few keys in order of
/// appearance: any other trace is one of these with its keys renamed.
fn each_trace(requests: usize, keys: u64, trace: &mut Vec<u64>, visit: &mut impl FnMut(&[u64])) {
    if trace.len() == requests {
        visit(trace);
        return;
    }
    let next = trace.iter().max().map_or(0, |largest| largest + 1);
    for key in 0..=next.min(keys - 1) {
        trace.push(key);
        each_trace(requests, keys, trace, visit);
        trace.pop();
    }
}

#[test]
fn no_choice_of_victims_beats_belady() {
    let mut traces = 0;
    each_trace(8, 5, &mut Vec::new(), &mut |keys| {
        traces += 1;
        let trace = reads_of(keys);
        let reads: Vec<_> = keys.iter().map(|key| (*key, Op::Read)).collect();
        for capacity in 1..=4 {
            for (contender, may_decline) in BELADY {
                let outcome = run_in(&trace, contender, capacity.into(), Accounting::Objects);
                let fewest = fewest_misses(&reads, 0, capacity, may_decline);
                assert_eq!(outcome.counts.misses, fewest, "{contender} {capacity} {keys:?}");
                assert!(outcome.used <= u64::from(capacity));
            }
        }
    });
    // The number of ways to divide eight requests among at most five keys.
    assert_eq!(traces, 1 + 127 + 966 + 1701 + 1050);
}
