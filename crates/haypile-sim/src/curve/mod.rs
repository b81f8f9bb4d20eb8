//! The miss ratio of LRU at every size, from one pass over a trace.
//!
//! An LRU cache hits exactly if it holds the key and all others that were asked for since, so one
//! pass that measures [stack distances](crate::reuse) gives the miss ratio of every size. Over a
//! *sample* of the keys the distances shrink in proportion, and a pass over one key in a hundred
//! costs a hundredth: Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC Construction with
//! SHARDS", FAST 2015, with its correction for what the sample has too many or too few of.

mod distances;
mod histogram;

use std::ops::ControlFlow;

use distances::{Bytes, Distances, Objects};
use histogram::Histogram;

use crate::Trace;
use crate::simulate::{Accounting, Operations, Options, RuledSizes, SimulateError, check_sample};
use crate::trace::{Mark, Op, Sample, Sampling};

/// Requests processed between two checks for an end.
const BLOCK_REQUESTS: usize = 1 << 16;

/// Parts of a sample, by key. The estimates without each of them yield the spread.
const GROUPS: usize = 16;

/// The factor of the spread: the two-sided 95 % quantile of Student's t with `GROUPS - 1` degrees of freedom. It would make an interval of the
/// spread if the parts of a sample differed as much as samples do.
const T_95: f64 = 2.131;

/// The miss ratio of LRU as a function of the cache size.
///
/// Exact where entries are counted in objects ([`is_exact`](Self::is_exact)). In bytes there is no bound
/// of its error: sizes are rounded to 0.1 %, LRU evicts whole entries, so that a cache holds up to one
/// entry less than the curve takes it to, and an entry larger than the cache, which a cache refuses,
/// pushes others out in the curve. On traces of many small entries it is within a thousandth of a
/// simulation; where single entries are a good part of the cache it is not.
///
/// Of a sampled curve nothing is known below the size of a few sampled entries: about
/// 1 / rate of them. Its spread is what the estimates differ by that are made without one of 16 parts of the sample, times
/// 2.1. It is not an interval of the truth: no part of a sample shows that a key which many ask for is not in it.
#[derive(Clone, Debug)]
pub struct LruCurve {
    /// Reads of the whole trace, or of each part of a sample.
    groups: Vec<Reads>,
    /// Expected number of reads: that of the trace, or the sample's share of the whole trace's.
    expected_reads: f64,
    /// Whether the curve counts objects, so that an entry is in a cache or not.
    is_of_objects: bool,
}

/// Reads of some keys.
#[derive(Clone, Debug)]
struct Reads {
    /// The capacities, in full size, that these reads need to hit.
    needed: Histogram,
    reads: u64,
}

impl Reads {
    fn new(exact: bool) -> Self {
        Self { needed: Histogram::new(exact), reads: 0 }
    }
}

/// An estimate of LRU's miss ratio at one cache size, with its spread over parts of a sample of the keys.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The estimated miss ratio of LRU at the cache size, from 0 to 1.
    pub miss_ratio: f64,
    /// The spread of the miss ratio: 2.1 standard errors by the jackknife, from estimates that each leave out one of 16
    /// parts of the sample; 0 if all keys were measured. That does not make the estimate exact; see
    /// [`LruCurve::is_exact`].
    pub error: f64,
}

impl LruCurve {
    /// Measures the miss ratio of LRU on `trace` at all cache sizes in one pass, by the accounting, operations and
    /// sizes of `options`; ignores the other options.
    ///
    /// The pass reports requests to `progress`, which may end it; then there is no curve. Memory
    /// grows with the number of measured keys, not with that of requests.
    ///
    /// # Errors
    /// [`SimulateError::NoSizes`] if bytes are asked for and the trace has none,
    /// [`SimulateError::SmallSample`] if a sample has too few keys.
    pub fn measure(
        trace: &Trace,
        options: &Options,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Self>, SimulateError> {
        let accounting = options.accounting;
        if accounting != Accounting::Objects && trace.sizes().is_none() {
            return Err(SimulateError::NoSizes);
        }
        if options.ttl.applies_to(trace) {
            return Err(SimulateError::CurveOfWhatExpires);
        }
        check_sample(trace)?;
        let pass = Pass {
            trace,
            accounting,
            operations: options.operations,
            sizes: RuledSizes::new(trace, accounting, options.sizes),
            progress,
        };
        Ok(match accounting {
            Accounting::Objects => pass.measure(Objects::new(trace.keys())),
            _ => pass.measure(Bytes::new(trace.keys())),
        })
    }

    /// Whether the curve was measured on all keys of the trace, and not only on a sample.
    pub fn is_whole(&self) -> bool {
        self.groups.len() == 1
    }

    /// Whether the miss ratios of the curve equal those of an LRU simulation exactly: it counts objects, and was
    /// measured on all keys.
    pub fn is_exact(&self) -> bool {
        self.is_of_objects && self.is_whole()
    }

    /// Returns the estimated miss ratio of LRU at a cache size in bytes or objects.
    pub fn at(&self, capacity: u64) -> Estimate {
        let counts: Vec<(u64, u64)> =
            self.groups.iter().map(|group| (group.needed.up_to(capacity), group.reads)).collect();
        let (hits, reads) =
            counts.iter().fold((0, 0), |(hits, reads), one| (hits + one.0, reads + one.1));
        let miss_ratio = miss_ratio(hits, reads, self.expected_reads);
        Estimate { miss_ratio, error: self.error(&counts, hits, reads) }
    }

    /// Returns the spread by the jackknife: from what the estimate would be with each of the groups left out. Efron and Stein, "The
    /// Jackknife Estimate of Variance", 1981.
    fn error(&self, counts: &[(u64, u64)], hits: u64, reads: u64) -> f64 {
        if counts.len() < 2 {
            return 0.0;
        }
        let groups = counts.len() as f64;
        let expected = self.expected_reads * (groups - 1.0) / groups;
        let without: Vec<f64> =
            counts.iter().map(|one| miss_ratio(hits - one.0, reads - one.1, expected)).collect();
        let mean = without.iter().sum::<f64>() / groups;
        let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
        T_95 * (squares * (groups - 1.0) / groups).sqrt()
    }

    /// Returns the cache size beyond which LRU gains nothing: the largest that any read needs for a
    /// hit.
    pub fn largest_useful(&self) -> u64 {
        self.groups.iter().map(|group| group.needed.largest()).max().unwrap_or(0)
    }

    /// Returns the smallest cache size at which LRU's miss ratio is at most `miss_ratio`; `None` if
    /// no size is enough.
    pub fn capacity_for(&self, miss_ratio: f64) -> Option<u64> {
        let (mut low, mut high) = (0, self.largest_useful());
        if self.at(high).miss_ratio > miss_ratio {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at(middle).miss_ratio <= miss_ratio {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(high)
    }
}

struct Pass<'a> {
    trace: &'a Trace,
    accounting: Accounting,
    operations: Operations,
    sizes: RuledSizes<'a>,
    progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl Pass<'_> {
    fn measure<D: Distances>(self, distances: D) -> Option<LruCurve> {
        match self.trace.sample_of() {
            None => self.exact(distances),
            Some(sample) => self.sampled(&sample, distances),
        }
    }

    fn exact<D: Distances>(mut self, mut distances: D) -> Option<LruCurve> {
        let mut all = Reads::new(D::COUNTABLE);
        self.each(|request| note(&mut distances, &mut all, request, 1.0))?;
        let expected_reads = all.reads as f64;
        let is_of_objects = self.accounting == Accounting::Objects;
        Some(LruCurve { groups: vec![all], expected_reads, is_of_objects })
    }

    fn sampled<D: Distances>(mut self, sample: &Sample<'_>, mut distances: D) -> Option<LruCurve> {
        let group_of_key = groups(self.trace, sample.sampling());
        let mut groups: Vec<Reads> = (0..GROUPS).map(|_| Reads::new(false)).collect();
        self.each(|request| {
            let group = &mut groups[usize::from(group_of_key[request.id as usize])];
            note(&mut distances, group, request, 1.0 / sample.rate());
        })?;
        let Mark { totals, .. } = sample.end();
        let reads = match self.operations {
            Operations::AsTheyAre => totals.reads,
            Operations::AllReads => totals.requests(),
        };
        let expected_reads = reads as f64 * sample.rate();
        let is_of_objects = self.accounting == Accounting::Objects;
        Some(LruCurve { groups, expected_reads, is_of_objects })
    }

    fn each(&mut self, mut note: impl FnMut(&CurveRequest<'_>)) -> Option<()> {
        let trace = self.trace;
        let sizes = trace.sizes();
        let ops = trace.ops().filter(|_| self.operations == Operations::AsTheyAre);
        for (block, ids) in trace.ids().chunks(BLOCK_REQUESTS).enumerate() {
            let start = block * BLOCK_REQUESTS;
            for (offset, id) in ids.iter().enumerate() {
                let (at, id) = (start + offset, id.get());
                let op = ops.map_or(Op::Read, |ops| Op::from_number(ops[at]));
                let size_bytes = sizes.map_or(0, |sizes| u64::from(sizes[at].get()));
                let (value_bytes, is_changed) = self.sizes.of_request(at, id, size_bytes, op);
                let accounting = self.accounting;
                note(&CurveRequest { trace, accounting, id, op, value_bytes, is_changed });
            }
            if (self.progress)(ids.len() as u64).is_break() {
                return None;
            }
        }
        Some(())
    }
}

/// A request as far as the curve needs it.
struct CurveRequest<'a> {
    trace: &'a Trace,
    accounting: Accounting,
    id: u32,
    op: Op,
    value_bytes: u64,
    /// Whether the request reads a value that no cache has.
    is_changed: bool,
}

/// Notes a request in the distances and, for a read, the capacity that it needs to hit.
fn note<D: Distances>(
    distances: &mut D,
    reads: &mut Reads,
    request: &CurveRequest<'_>,
    scale: f64,
) {
    let CurveRequest { trace, accounting, id, op, value_bytes, is_changed } = *request;
    reads.reads += u64::from(op == Op::Read);
    if op == Op::Delete || is_changed {
        distances.remove(id);
    }
    let weight = || accounting.weight(trace, id, value_bytes);
    let weight = match op {
        Op::Delete => None,
        // A write beyond RelStorage's limit leaves the old value in place.
        Op::Write => weight(),
        Op::Read => weight().or_else(|| distances.weight(id)),
    };
    let Some(weight) = weight else { return };
    if let Some(distance) = distances.access(id, weight)
        && op == Op::Read
    {
        reads.needed.add(scaled(distance, scale) + weight);
    }
}

/// Returns the share of the expected reads that miss.
fn miss_ratio(hits: u64, reads: u64, expected_reads: f64) -> f64 {
    if expected_reads <= 0.0 {
        return 0.0;
    }
    let (hits, reads) = (hits as f64, reads as f64);
    // A sample with too many or too few reads has them of its hottest keys, which hit in a cache
    // of any size.
    let hits = hits + expected_reads - reads;
    (1.0 - hits / expected_reads).clamp(0.0, 1.0)
}

/// Returns the group of each key of a sample, by its place in it.
fn groups(trace: &Trace, sampling: Sampling) -> Vec<u8> {
    let group = |id| {
        let share = sampling.place(trace.key(id)) / sampling.rate();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the number of groups, and in a file that lies about its keys at most that"
        )]
        let group = ((share * GROUPS as f64) as usize).min(GROUPS - 1) as u8;
        group
    };
    (0..trace.keys()).map(group).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "a distance in a sample is an estimate; a scale of exactly 1 means no sampling"
)]
fn scaled(distance: u64, scale: f64) -> u64 {
    if scale == 1.0 { distance } else { (distance as f64 * scale) as u64 }
}
