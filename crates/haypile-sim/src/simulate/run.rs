//! One simulation: a contender, a capacity, a trace.

use std::borrow::Cow;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::str::FromStr;
use std::time::Duration;

use haypile_policy::ghost::{ByFingerprint, BySlot};
use haypile_policy::rules::memory::{self as rules, MAX_SHARDS, MAX_SIZE_BYTES, MIN_SIZE_BYTES};
use haypile_policy::weight::{PerSlot, Unit};
use haypile_policy::{Policy, PolicyError, PolicySpec, PolicyVisitor};
use rustix::time::{ClockId, clock_gettime};

use super::belady::Belady;
use super::engine::EngineCache;
use super::expiry::{Expiries, TtlRule};
use super::file::FileDriver;
use super::size_rule::{RuledSizes, SizeRule};
use super::whole::{Edge, Scale, check_sample};
use super::windows::{Windows, days};
use super::{Accounting, Counts, Driver, SimulateError};
use crate::Trace;
use crate::trace::Op;

/// Number of requests that a simulation prefetches at once, before it runs as many that were prefetched.
const PREFETCHED_REQUESTS: usize = 16;

/// Number of distinct keys of a trace from which on a simulation prefetches: the tables of fewer are in the processor's caches.
const PREFETCHED_KEYS: u32 = 1 << 20;

/// Requests simulated between two looks at whether to stop.
const BLOCK_REQUESTS: usize = 1 << 16;

/// A policy to simulate: an eviction policy, or Belady's optimum, which knows the future requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Contender {
    /// One of the engine's policies, or the policy of the file store.
    Policy(PolicySpec),
    /// Belady's MIN, which knows the future.
    Belady {
        /// Whether a newcomer that would be evicted next is not stored.
        may_decline: bool,
    },
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(spec) => spec.fmt(f),
            Self::Belady { may_decline: false } => f.write_str("belady"),
            Self::Belady { may_decline: true } => f.write_str("belady:decline=1"),
        }
    }
}

impl FromStr for Contender {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        match text {
            "belady" | "belady:decline=0" => Ok(Self::Belady { may_decline: false }),
            "belady:decline=1" => Ok(Self::Belady { may_decline: true }),
            _ => text.parse().map(Self::Policy),
        }
    }
}

impl Contender {
    /// Whether this is Belady's optimum, which knows the future requests.
    pub fn is_belady(&self) -> bool {
        matches!(self, Self::Belady { .. })
    }

    /// Parses a list of policies separated by commas, as [`PolicySpec::parse_list`] does, and accepts `belady` as well.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, PolicyError> {
        PolicySpec::split_list(text).iter().map(|text| text.parse()).collect()
    }
}

/// The warm-up of a simulation: the first part of the trace, which fills the cache and whose hits and misses are not
/// counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Warmup {
    /// Nothing: everything is counted.
    #[default]
    None,
    /// A number of requests.
    Requests(u64),
    /// A share of the requests, in per cent.
    Percent(f64),
}

impl Warmup {
    /// Returns the number of warm-up requests in a trace of `of` requests.
    ///
    /// # Errors
    /// [`SimulateError::WarmupTooLong`] if nothing is left to count.
    pub fn requests(self, of: u64) -> Result<u64, SimulateError> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count need not be exact to the request"
        )]
        let warmup = match self {
            Self::None => 0,
            Self::Requests(requests) => requests,
            Self::Percent(percent) => (of as f64 * percent / 100.0) as u64,
        };
        if warmup < of || warmup == 0 {
            Ok(warmup)
        } else {
            Err(SimulateError::WarmupTooLong { warmup, requests: of })
        }
    }
}

/// The treatment of a trace's writes and deletions in a simulation: they set and delete entries, or count as reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operations {
    /// Reads can hit and fill, writes set, deletes delete.
    #[default]
    AsTheyAre,
    /// Every request is a read, whatever the trace says; what most other simulators do.
    AllReads,
}

/// Marks a read of a value that has changed, among the numbers of operations.
const CHANGED: u8 = 3;

/// The operation number, next to read, write and delete, of a write whose value is too large to be stored, so that the
/// cache keeps the previous value.
pub(super) const UNSTORED: u8 = 4;

/// Options of a simulation of a cache on a trace.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The rule by which entries count against the cache's size.
    pub accounting: Accounting,
    /// The requests at the beginning of the trace that warm up the cache, so that their hits and misses are not
    /// counted.
    pub warmup: Warmup,
    /// The treatment of the trace's writes and deletions: they set and delete entries, or count as reads.
    pub operations: Operations,
    /// The rule that decides whether a read whose size differs from the previous one of its key is a hit or a miss.
    pub sizes: SizeRule,
    /// The rule for the lifetime (TTL) of entries in the cache: as the trace states, a TTL where it states none, or no
    /// expiry.
    pub ttl: TtlRule,
    /// The parts of the trace whose hits, misses and so on are also counted separately.
    pub windows: Windows,
    /// The number of shards of a simulated `memory` store, with [`Accounting::Engine`]; `None` for
    /// the store's default at this size on this machine.
    pub shards: Option<usize>,
}

impl Options {
    /// Creates simulation options that count hits and misses from the first request, and only for the whole trace;
    /// writes and deletions set and delete.
    pub fn new(accounting: Accounting) -> Self {
        Self {
            accounting,
            warmup: Warmup::default(),
            operations: Operations::default(),
            sizes: SizeRule::default(),
            ttl: TtlRule::default(),
            windows: Windows::default(),
            shards: None,
        }
    }
}

/// The results of a simulation of a cache on a trace: hits, misses, memory and processor time.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The counts of hits, misses and so on in the whole simulation after the warm-up; for a sample, estimates for the
    /// whole trace.
    pub counts: Counts,
    /// The counts of hits, misses and so on in each part of the trace (window), in order.
    pub windows: Vec<Counts>,
    /// The size of the simulated cache, in bytes or objects.
    pub capacity: u64,
    /// The sum of the weights (bytes, or 1 each) of all entries in the cache at the end of the simulation.
    pub used: u64,
    /// Number of entries in the cache at the end of the simulation.
    pub entries: u64,
    /// Number of shards of the simulated `memory` store; 1 for all other simulations.
    pub shards: usize,
    /// Memory that the eviction policy's own queues and tables take, in bytes.
    pub metadata_bytes: u64,
    /// Processor time that the simulation took, including the warm-up.
    pub cpu: Duration,
}

/// A simulated cache that processes the requests of a trace.
pub(super) trait Cached {
    /// Prefetches what a request for `id` needs into the processor's cache; nothing else changes.
    #[inline]
    fn prefetch(&self, id: u32) {
        let _ = id;
    }
    /// Request `at` reads `id`, whose value has `size_bytes` and would weigh `weight`.
    fn read(&mut self, at: usize, id: u32, size_bytes: u64, weight: impl FnOnce() -> Option<u64>);
    /// Request `at` sets `id` to a value that weighs `weight`; `None` where it may not be stored.
    fn write(&mut self, at: usize, id: u32, weight: Option<u64>);
    /// Request `at` reads `id` as [`read`](Self::read) does; what is there weighs `weight` from then on.
    fn read_resizing(&mut self, at: usize, id: u32, size_bytes: u64, weight: Option<u64>);
    /// Request `at` reads `id`, whose value has changed: whatever is there is not it.
    fn read_changed(&mut self, at: usize, id: u32, size_bytes: u64, weight: Option<u64>);
    /// Request `at` deletes `id`.
    fn delete(&mut self, at: usize, id: u32);
    /// The entry of `id`, if it is there, has expired.
    fn expire(&mut self, id: u32);
    fn counts(&mut self) -> &mut Counts;
    fn used(&self) -> u64;
    fn entries(&self) -> u64;
    fn metadata_bytes(&self) -> usize;
}

/// Simulates an eviction policy, or Belady's optimum, on a trace with a cache of size `capacity`.
///
/// A sample is simulated with a capacity that is as much smaller as it is, and the outcome is an estimate of that of the whole trace; the
/// file store's segments and the engine's shards keep their number.
///
/// `progress` is told of requests as they are done, in blocks, and may end the simulation; then
/// the outcome is `None`.
pub fn simulate(
    trace: &Trace,
    contender: &Contender,
    capacity: u64,
    options: &Options,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Outcome>, SimulateError> {
    let run = Run::new(trace, capacity, options, progress)?;
    match contender {
        Contender::Policy(spec) if spec.is_of_file_store() => Ok(run.run_file(spec)),
        Contender::Policy(spec)
            if options.accounting == Accounting::Engine && !spec.exceeds_bound() =>
        {
            let shards = shards_of(capacity, options.shards)?;
            let run = EngineRun { run, shards };
            Ok(spec
                .build::<ByFingerprint, _>(true, run)
                .expect("the file store's is handled above"))
        }
        Contender::Policy(spec) => {
            let weighted = options.accounting != Accounting::Objects;
            Ok(spec.build::<BySlot, _>(weighted, run).expect("the file store's is handled above"))
        }
        Contender::Belady { .. } if run.expiries.is_some() => {
            Err(SimulateError::BeladyOfWhatExpires)
        }
        Contender::Belady { may_decline } => {
            let next_use = trace.compute_next_use()?;
            let (ids, keys) = (trace.ids(), trace.keys());
            let ops = run.marked_ops();
            let cache =
                Belady::new(ids, &next_use, ops.as_deref(), keys, run.capacity, *may_decline);
            Ok(run.run(cache))
        }
    }
}

/// Simulates a custom eviction policy, which need not be one of the engine's, with one shard. For a sample, create it
/// for the [`Trace::scaled_capacity`].
pub fn simulate_policy<P: Policy>(
    trace: &Trace,
    policy: P,
    capacity: u64,
    options: &Options,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Outcome>, SimulateError> {
    Ok(Run::new(trace, capacity, options, progress)?.drive(policy))
}

/// Returns the requests before the end of a part, of some parts whose lengths differ by one request at most.
fn part_of(requests: u64, part: u64, parts: u64) -> u64 {
    let requests = u128::from(requests) * u128::from(part) / u128::from(parts);
    u64::try_from(requests).expect("less than all")
}

/// Returns the number of shards of a store, which has to be one that a store takes.
fn shards_of(capacity: u64, asked: Option<usize>) -> Result<usize, SimulateError> {
    if !(MIN_SIZE_BYTES..=MAX_SIZE_BYTES).contains(&capacity) {
        let (min, max) = (MIN_SIZE_BYTES, MAX_SIZE_BYTES);
        return Err(SimulateError::StoreSize { capacity, min, max });
    }
    let Some(shards) = asked else { return Ok(rules::default_shards(capacity)) };
    let most =
        usize::try_from(capacity / MIN_SIZE_BYTES).unwrap_or(MAX_SHARDS).clamp(1, MAX_SHARDS);
    if shards.is_power_of_two() && shards <= most {
        Ok(shards)
    } else {
        Err(SimulateError::BadShards { shards, capacity, most })
    }
}

/// Runs the policy in each shard of a store.
struct EngineRun<'a> {
    run: Run<'a>,
    shards: usize,
}

impl PolicyVisitor for EngineRun<'_> {
    type Output = Option<Outcome>;

    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> Option<Outcome> {
        let cache = EngineCache::new(self.run.trace, self.run.capacity, self.shards, make);
        let outcome = self.run.run(cache)?;
        Some(Outcome { shards: self.shards, ..outcome })
    }
}

struct Run<'a> {
    trace: &'a Trace,
    scale: Scale<'a>,
    /// The capacity as asked for, for the whole trace.
    whole_capacity: u64,
    /// The capacity that is simulated.
    capacity: u64,
    accounting: Accounting,
    warmup_requests: u64,
    operations: Operations,
    sizes: RuledSizes<'a>,
    expiries: Option<Expiries<'a>>,
    windows: Windows,
    progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl PolicyVisitor for Run<'_> {
    type Output = Option<Outcome>;

    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> Option<Outcome> {
        let policy = make(self.capacity);
        self.drive(policy)
    }
}

impl<'a> Run<'a> {
    fn new(
        trace: &'a Trace,
        capacity: u64,
        options: &Options,
        progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, SimulateError> {
        if capacity == 0 {
            return Err(SimulateError::ZeroCapacity);
        }
        if options.accounting != Accounting::Objects && trace.sizes().is_none() {
            return Err(SimulateError::NoSizes);
        }
        if matches!(options.ttl, TtlRule::Otherwise(_)) && trace.times_us().is_none() {
            return Err(SimulateError::NoTimes);
        }
        if matches!(options.windows, Windows::Days(_)) && trace.times_us().is_none() {
            return Err(SimulateError::NoDays);
        }
        check_sample(trace)?;
        Ok(Self {
            trace,
            scale: Scale::new(trace, options.operations),
            whole_capacity: capacity,
            capacity: trace.scaled_capacity(capacity),
            accounting: options.accounting,
            warmup_requests: options.warmup.requests(trace.whole_requests())?,
            operations: options.operations,
            sizes: RuledSizes::new(trace, options.accounting, options.sizes),
            expiries: Expiries::new(trace, options),
            windows: options.windows,
            progress,
        })
    }

    /// The operations, with marks on reads of a value that has changed and on writes that no cache stores; `None` where
    /// all are plain reads.
    fn marked_ops(&self) -> Option<Cow<'a, [u8]>> {
        let ops = self.trace.ops().filter(|_| self.operations == Operations::AsTheyAre);
        let rule = self.sizes.rule();
        let has_marks = rule == SizeRule::Changed
            || (ops.is_some() && self.accounting == Accounting::Relstorage);
        let Some(sizes) = self.trace.sizes().filter(|_| has_marks) else {
            return ops.map(Cow::Borrowed);
        };
        let mut ruled = RuledSizes::new(self.trace, self.accounting, rule);
        let marked = self.trace.ids().iter().zip(sizes).enumerate().map(|(at, (id, size))| {
            let number = ops.map_or(Op::Read as u8, |ops| ops[at]);
            let (id, op) = (id.get(), Op::from_number(number));
            let (value_bytes, is_changed) = ruled.of_request(at, id, u64::from(size.get()), op);
            let is_unstored = || self.accounting.weight(self.trace, id, value_bytes).is_none();
            match op {
                Op::Read if is_changed => CHANGED,
                Op::Write if is_unstored() => UNSTORED,
                _ => number,
            }
        });
        Some(Cow::Owned(marked.collect()))
    }

    fn drive<P: Policy>(self, policy: P) -> Option<Outcome> {
        let keys = self.trace.keys();
        if self.accounting == Accounting::Objects {
            let cache = Driver::<P, u8>::new(policy, self.capacity, keys);
            self.run(cache)
        } else {
            let cache = Driver::<P, u64>::new(policy, self.capacity, keys);
            self.run(cache)
        }
    }

    fn run_file(self, spec: &PolicySpec) -> Option<Outcome> {
        let (capacity, keys) = (self.capacity, self.trace.keys());
        if self.accounting == Accounting::Objects {
            self.run(FileDriver::<Unit>::new(spec, capacity, keys))
        } else {
            self.run(FileDriver::<PerSlot>::new(spec, capacity, keys))
        }
    }

    fn run<C: Cached>(mut self, mut cache: C) -> Option<Outcome> {
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let warm = self.scale.edge(self.warmup_requests);
        self.run_part(&mut cache, 0..warm.at)?;
        *cache.counts() = Counts::default();
        let has_windows = self.windows.count() > 0;
        let mut windows = Vec::with_capacity(self.windows.count());
        let (mut before, mut from) = (Counts::default(), warm);
        for to in self.edges(&warm) {
            self.run_part(&mut cache, from.at..to.at)?;
            let now = *cache.counts();
            if has_windows {
                windows.push(self.scale.counts(now - before, &from, &to));
            }
            (before, from) = (now, to);
        }
        let end = clock_gettime(ClockId::ThreadCPUTime);
        Some(Outcome {
            counts: self.scale.counts(before, &warm, &from),
            windows,
            capacity: self.whole_capacity,
            shards: 1,
            used: self.trace.scaled_up(cache.used()),
            entries: self.trace.scaled_up(cache.entries()),
            metadata_bytes: self.trace.scaled_up(cache.metadata_bytes() as u64),
            cpu: Duration::try_from(end - start).unwrap_or_default(),
        })
    }

    /// Returns the place in the trace where each window ends, in order; without windows, the end of the trace alone.
    fn edges(&self, warm: &Edge) -> Vec<Edge> {
        let (warmup, requests) = (self.warmup_requests, self.trace.whole_requests());
        match (self.windows, self.trace.times_us()) {
            (Windows::Days(count), Some(times)) => {
                let begins = days(times, warm.at, count).into_iter();
                // Of a sample, a day may begin before the mark at which the warm-up ends.
                let edge = |at| Some(self.scale.edge_at(at)).filter(|edge| edge.at >= warm.at);
                let edges = begins.map(|at| edge(at).unwrap_or(*warm));
                edges.chain([self.scale.edge(requests)]).collect()
            }
            (windows, _) => {
                let parts = windows.count().max(1) as u64;
                let end = |part| warmup + part_of(requests - warmup, part, parts);
                (1..=parts).map(|part| self.scale.edge(end(part))).collect()
            }
        }
    }

    fn run_part<C: Cached>(&mut self, cache: &mut C, part: Range<usize>) -> Option<()> {
        let mut start = part.start;
        while start < part.end {
            let block = start..part.end.min(start + BLOCK_REQUESTS);
            start = block.end;
            let requests = block.len() as u64;
            if self.trace.keys() < PREFETCHED_KEYS {
                self.run_block(cache, block);
            } else {
                self.run_prefetched(cache, block);
            }
            if (self.progress)(requests).is_break() {
                return None;
            }
        }
        Some(())
    }

    /// Simulates a block of requests as [`run_block`](Self::run_block) does, and prefetches what the next of them need.
    fn run_prefetched<C: Cached>(&mut self, cache: &mut C, block: Range<usize>) {
        for start in block.clone().step_by(PREFETCHED_REQUESTS) {
            let next = block.end.min(start + PREFETCHED_REQUESTS);
            let after_next = block.end.min(next + PREFETCHED_REQUESTS);
            for id in &self.trace.ids()[next..after_next] {
                cache.prefetch(id.get());
            }
            self.run_block(cache, start..next);
        }
    }

    fn run_block<C: Cached>(&mut self, cache: &mut C, block: Range<usize>) {
        let sizes = self.trace.sizes().map(|sizes| &sizes[block.clone()]);
        let costs = self.trace.costs_ns().map(|costs| &costs[block.clone()]);
        let ops = match self.operations {
            Operations::AsTheyAre => self.trace.ops().map(|ops| &ops[block.clone()]),
            Operations::AllReads => None,
        };
        for (offset, id) in self.trace.ids()[block.clone()].iter().enumerate() {
            let (at, id) = (block.start + offset, id.get());
            if let Some(expiries) = &mut self.expiries {
                expiries.advance(at);
                while let Some(expired) = expiries.pop() {
                    cache.expire(expired);
                }
            }
            let misses =
                if self.expiries.is_some() || costs.is_some() { cache.counts().misses } else { 0 };
            let size_bytes = sizes.map_or(0, |sizes| u64::from(sizes[offset].get()));
            let op = ops.map_or(Op::Read, |ops| Op::from_number(ops[offset]));
            let (value_bytes, is_changed) = self.sizes.of_request(at, id, size_bytes, op);
            let weight = || self.accounting.weight(self.trace, id, value_bytes);
            match op {
                Op::Read if is_changed => cache.read_changed(at, id, size_bytes, weight()),
                Op::Read if self.sizes.rule() == SizeRule::Last => {
                    cache.read_resizing(at, id, size_bytes, weight());
                }
                Op::Read => cache.read(at, id, size_bytes, weight),
                Op::Write => cache.write(at, id, weight()),
                Op::Delete => cache.delete(at, id),
            }
            if let Some(costs) = costs.filter(|_| op == Op::Read) {
                cache.counts().add_cost(misses, costs[offset].get());
            }
            if let Some(expiries) = &mut self.expiries {
                expiries.note(at, id, op);
                match op {
                    Op::Read if cache.counts().misses == misses => {}
                    Op::Read | Op::Write => expiries.stored(id),
                    Op::Delete => expiries.removed(id),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use haypile_policy::lru::Lru;

    use super::*;
    use crate::trace::{BuildOptions, Key, Request, Sink, TraceBuilder};

    fn trace(keys: impl Iterator<Item = u64>) -> Trace {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for key in keys {
            builder.push(Request::read(Key::Number(key))).expect("a trace can have more");
        }
        builder.finish().expect("a small trace")
    }

    /// Only large traces are prefetched, which no other test here has.
    #[test]
    fn a_block_that_is_prefetched_has_the_same_outcome() {
        for requests in [0, 1, 15, 16, 17, 1_000, 1_003] {
            let trace = trace((0..requests).map(|at| at * at % 97));
            let options = Options::new(Accounting::Objects);
            let mut go_on = |_| ControlFlow::Continue(());
            let mut run = Run::new(&trace, 20, &options, &mut go_on).expect("valid options");
            let [mut plain, mut prefetched] =
                [(); 2].map(|()| Driver::<Lru, u8>::new(Lru::new(), 20, trace.keys()));
            let all = 0..trace.requests();
            run.run_block(&mut plain, all.clone());
            run.run_prefetched(&mut prefetched, all);
            assert_eq!(plain.counts(), prefetched.counts(), "{requests} requests");
            assert_eq!(plain.policy().queues(), prefetched.policy().queues());
            assert_eq!(plain.counts().hits + plain.counts().misses, requests);
        }
    }
}
