//! Marks of the whole trace, recorded while a sample is taken.

use zerocopy::little_endian::U64;

use super::Sampling;
use super::view::{MARK_WORDS, Mark, Totals, head};
use crate::trace::Op;

/// Marks at which every second one is dropped: memory is bounded whatever the length of the trace.
const MOST_MARKS: usize = 1 << 15;

/// A recorder of the totals (reads, writes and bytes) of a whole trace at regular positions, while a sample of it is
/// taken.
#[derive(Debug)]
pub(in crate::trace) struct Marks {
    sampling: Sampling,
    totals: Totals,
    /// Number of requests of the whole trace from one mark to the next.
    interval: u64,
    left: u64,
    words: Vec<U64>,
    has_unknown_size: bool,
}

impl Marks {
    /// Creates the recorder of a whole trace's totals, before the first request.
    pub(in crate::trace) fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            totals: Totals::default(),
            interval: 1,
            left: 1,
            words: Vec::new(),
            has_unknown_size: false,
        }
    }

    /// Returns the rate and seed by which the keys of the sample are chosen.
    pub(in crate::trace) fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Counts a request of the whole trace; `sampled` is the number of requests in the sample after
    /// it.
    #[inline]
    pub(in crate::trace) fn note(&mut self, op: Op, size_bytes: Option<u64>, sampled: u64) {
        self.has_unknown_size |= size_bytes.is_none() && op != Op::Delete;
        self.totals.add(op, size_bytes.unwrap_or(0));
        self.advance(1, sampled);
    }

    /// Returns the number of requests of the whole trace until the next mark is recorded, at least 1.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Adds the totals of a block of requests of the whole trace, whose sizes are known, and records a mark if one is due after it. The
    /// block has [`left`](Self::left) requests at most; `sampled` is the number of requests in the sample up to its end.
    #[inline]
    pub(super) fn note_block(&mut self, block: Totals, sampled: u64) {
        self.totals.add_all(&block);
        self.advance(block.requests(), sampled);
    }

    /// Records a mark if one is due after this number of further requests.
    #[inline]
    fn advance(&mut self, requests: u64, sampled: u64) {
        self.left -= requests;
        if self.left == 0 {
            self.mark(sampled);
        }
    }

    #[cold]
    fn mark(&mut self, sampled: u64) {
        self.words.extend(Mark { sampled, totals: self.totals }.words());
        if self.words.len() == MOST_MARKS * MARK_WORDS {
            let every_second = self.words.chunks_exact(MARK_WORDS).skip(1).step_by(2).flatten();
            self.words = every_second.copied().collect();
            self.interval *= 2;
        }
        self.left = self.interval;
    }

    /// Returns the column that a sample has about its whole trace: the rate, the seed and the recorded totals;
    /// `sampled` is the number of requests in the sample.
    pub(in crate::trace) fn finish(self, sampled: u64) -> Vec<U64> {
        let mut words = head(self.sampling, self.interval, !self.has_unknown_size);
        words.extend(self.words);
        // Where the trace ends with a mark, that one stands twice: nothing looks behind the first.
        words.extend(Mark { sampled, totals: self.totals }.words());
        words
    }
}
