//! The facts that a sample keeps about the trace that it was taken from.

use std::fmt;

use haypile_number::grouped;
use zerocopy::little_endian::U64;

use super::Sampling;
use crate::trace::{Op, Trace};

/// Number of 64-bit words in a sample's column before the recorded totals.
pub(super) const HEAD_WORDS: usize = 4;

/// Number of 64-bit words of each record of totals in a sample's column.
pub(super) const MARK_WORDS: usize = 6;

/// The largest count that is believed, so that two of them can be added up whatever a file says of its rate.
const MOST: f64 = (1_u64 << 62) as f64;

/// Totals of a whole trace before some request: its reads, writes, deletions and bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) deletes: u64,
    /// Total size of the values of the counted reads, in bytes.
    pub(crate) read_bytes: u64,
    /// Total size of the values of the counted writes, in bytes.
    pub(crate) write_bytes: u64,
}

impl Totals {
    /// Returns the number of counted requests: reads, writes and deletions.
    pub(crate) fn requests(&self) -> u64 {
        self.reads + self.writes + self.deletes
    }

    #[inline]
    pub(super) fn add(&mut self, op: Op, size_bytes: u64) {
        match op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(size_bytes);
            }
            Op::Write => {
                self.writes += 1;
                self.write_bytes = self.write_bytes.saturating_add(size_bytes);
            }
            Op::Delete => self.deletes += 1,
        }
    }

    /// Adds the totals of further requests.
    #[inline]
    pub(super) fn add_all(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.deletes += other.deletes;
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(other.write_bytes);
    }
}

/// A position in a trace's sample, with the totals (reads, writes, bytes) of the whole trace before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Number of requests of the sample before this position.
    pub(crate) sampled: u64,
    /// Totals of the whole trace before this position.
    pub(crate) totals: Totals,
}

impl Mark {
    fn of(words: &[U64]) -> Self {
        let [sampled, reads, writes, deletes, read_bytes, write_bytes] =
            std::array::from_fn(|at| words[at].get());
        Self { sampled, totals: Totals { reads, writes, deletes, read_bytes, write_bytes } }
    }

    pub(super) fn words(&self) -> [U64; MARK_WORDS] {
        let Totals { reads, writes, deletes, read_bytes, write_bytes } = self.totals;
        [self.sampled, reads, writes, deletes, read_bytes, write_bytes].map(U64::from)
    }
}

/// The information about the whole trace that its sample keeps: the rate, the seed and the totals.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    sampling: Sampling,
    interval: u64,
    knows_bytes: bool,
    marks: &'a [U64],
}

impl<'a> Sample<'a> {
    /// Creates the information about the whole trace from a sample's column, which [`check`] has accepted.
    pub(in crate::trace) fn new(words: &'a [U64]) -> Self {
        let (head, marks) = words.split_at(HEAD_WORDS);
        Self {
            sampling: Sampling { rate: f64::from_bits(head[0].get()), seed: head[1].get() },
            interval: head[2].get(),
            knows_bytes: head[3].get() != 0,
            marks,
        }
    }

    /// Returns the rate and seed by which the keys of the sample were chosen.
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Returns the share of the whole trace's keys that are in the sample, above 0 and below 1.
    pub fn rate(&self) -> f64 {
        self.sampling.rate
    }

    /// Returns the number of requests of the whole trace from which the sample was taken.
    pub fn requests(&self) -> u64 {
        self.end().totals.requests()
    }

    /// Scales a count in the sample to an estimate for the whole trace.
    pub(crate) fn scaled_up(&self, count: u64) -> u64 {
        rounded(count as f64 / self.rate())
    }

    /// Scales a cache size for the whole trace down to one for the sample; it is at least 1.
    pub(crate) fn scaled_down(&self, capacity: u64) -> u64 {
        rounded(capacity as f64 * self.rate()).max(1)
    }

    /// Whether the sizes of all requests of the whole trace are known, and not only those of the sample.
    pub(crate) fn knows_bytes(&self) -> bool {
        self.knows_bytes
    }

    /// Returns the last position of the sample, with the totals of the whole trace.
    pub(crate) fn end(&self) -> Mark {
        Mark::of(&self.marks[self.marks.len() - MARK_WORDS..])
    }

    /// Returns the recorded position of the sample that is nearest to request number `request` of the whole trace.
    /// The trace has at least 16,384 of them, or one for each request.
    pub(crate) fn mark_near(&self, request: u64) -> Mark {
        let number = request.saturating_add(self.interval / 2) / self.interval;
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let last = self.marks.len() / MARK_WORDS - 1;
        match at {
            0 => Mark::default(),
            // The last mark is the end, wherever that is.
            at if at > last || request >= self.requests() => self.end(),
            at => Mark::of(&self.marks[(at - 1) * MARK_WORDS..]),
        }
    }

    /// Returns the first recorded position of the sample with at least `sampled` of its requests before it.
    pub(crate) fn mark_at(&self, sampled: u64) -> Mark {
        let marks = self.marks.len() / MARK_WORDS;
        let mark = |at: usize| Mark::of(&self.marks[at * MARK_WORDS..]);
        let (mut low, mut high) = (0, marks - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if mark(middle).sampled < sampled {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if sampled == 0 { Mark::default() } else { mark(low) }
    }

    /// Returns the words of the sample's column, changed for a trace of whose reads a share became writes, or whose
    /// whole trace's sizes are no longer known.
    pub(in crate::trace) fn words_with(&self, written_share: f64, knows_bytes: bool) -> Vec<U64> {
        let Self { sampling, interval, .. } = *self;
        let mut words = head(sampling, interval, knows_bytes && self.knows_bytes);
        for mark in self.marks.chunks_exact(MARK_WORDS) {
            let mut mark = Mark::of(mark);
            let totals = &mut mark.totals;
            let (written, bytes) =
                (part(totals.reads, written_share), part(totals.read_bytes, written_share));
            totals.reads -= written;
            totals.writes += written;
            totals.read_bytes -= bytes;
            totals.write_bytes = totals.write_bytes.saturating_add(bytes);
            words.extend(mark.words());
        }
        words
    }
}

/// A description of the sample that was taken from a trace: rate, seed and counts.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SampledTrace {
    /// The share of the trace's keys that are in the sample, above 0 and below 1.
    pub rate: f64,
    /// The seed of the random choice of the sample's keys.
    pub seed: u64,
    /// The number of requests in the sample.
    pub requests: u64,
    /// The number of distinct keys in the sample.
    pub keys: u64,
}

impl fmt::Display for SampledTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, seed, requests, keys } = self;
        let (requests, keys) = (grouped(*requests), grouped(*keys));
        write!(f, "{requests} requests for {keys} of the keys (rate {rate}, seed {seed})")
    }
}

impl Trace {
    /// Returns the description of the sample that this trace is; `None` if it is a whole trace.
    pub fn sampled(&self) -> Option<SampledTrace> {
        let Sampling { rate, seed } = self.sample_of()?.sampling;
        let (requests, keys) = (self.requests() as u64, u64::from(self.keys()));
        Some(SampledTrace { rate, seed, requests, keys })
    }
}

/// Returns the first words of a sample's column, before the recorded totals.
pub(super) fn head(sampling: Sampling, interval: u64, knows_bytes: bool) -> Vec<U64> {
    let Sampling { rate, seed } = sampling;
    [rate.to_bits(), seed, interval, u64::from(knows_bytes)].map(U64::from).to_vec()
}

fn part(of: u64, share: f64) -> u64 {
    rounded(of as f64 * share).min(of)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is scaled is an estimate"
)]
fn rounded(estimate: f64) -> u64 {
    estimate.round().min(MOST) as u64
}

/// Returns whether a sample's column is valid for a sample with `requests` requests: whole records in order, the last
/// at the end.
pub(in crate::trace) fn check(words: &[U64], requests: usize) -> bool {
    let Some((head, marks)) = words.split_at_checked(HEAD_WORDS) else { return false };
    let rate = f64::from_bits(head[0].get());
    if !(rate > 0.0 && rate < 1.0) || head[2].get() == 0 || head[3].get() > 1 {
        return false;
    }
    if marks.is_empty() || !marks.len().is_multiple_of(MARK_WORDS) {
        return false;
    }
    let ascends = |one: &Mark, next: &Mark| {
        let (totals, later) = (&one.totals, &next.totals);
        one.sampled <= next.sampled
            && totals.reads <= later.reads
            && totals.writes <= later.writes
            && totals.deletes <= later.deletes
            && totals.read_bytes <= later.read_bytes
            && totals.write_bytes <= later.write_bytes
    };
    let mut before = Mark::default();
    for mark in marks.chunks_exact(MARK_WORDS).map(Mark::of) {
        let Totals { reads, writes, deletes, .. } = mark.totals;
        let requests = reads.checked_add(writes).and_then(|sum| sum.checked_add(deletes));
        if !ascends(&before, &mark) || requests.is_none_or(|requests| requests < mark.sampled) {
            return false;
        }
        before = mark;
    }
    before.sampled == requests as u64
}
