//! Takes a sample of a trace.

use std::ops::{ControlFlow, Range};

use zerocopy::IntoBytes;

use super::view::Totals;
use super::{Marks, Sampling};
use crate::trace::bytes::Bytes;
use crate::trace::column::Column;
use crate::trace::hpt::{ColumnType, Parts, assemble};
use crate::trace::keys::KeyColumns;
use crate::trace::{Op, Trace, TraceError};

/// Bytes of each column, and of the image, that are held in memory; more goes to temporary files.
const MEMORY_BYTES: usize = 256 << 20;

/// Requests looked through between two checks for an end.
const BLOCK_REQUESTS: usize = 1 << 16;

/// Keys in a word of bits.
const BITS: u32 = u64::BITS;

impl Trace {
    /// Returns a sample of the trace: the requests for some of the keys, with totals of the whole trace. Simulations of
    /// a sample scale sizes and results, so that they estimate those of the whole trace. The sample has no column of
    /// next uses.
    ///
    /// # Errors
    /// [`TraceError::Resampled`] if the trace is a sample already, [`TraceError::Temporary`] if a large sample does not fit into a
    /// temporary file.
    pub fn sample(&self, sampling: Sampling) -> Result<Self, TraceError> {
        let sample = self.sample_unless(sampling, &mut |_| ControlFlow::Continue(()))?;
        Ok(sample.expect("nobody ends it"))
    }

    /// Returns a sample of the trace as [`sample`](Self::sample) does, unless `progress` ends the call. `progress` is
    /// called with the number of requests examined, in blocks; if it ends the call, the result is `None`.
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    pub fn sample_unless(
        &self,
        sampling: Sampling,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Self>, TraceError> {
        if self.sample_of().is_some() {
            return Err(TraceError::Resampled);
        }
        let chosen = Chosen::new(self, sampling);
        let mut marks = Marks::new(sampling);
        let mut sampled = SampledRequests::default();
        let (mut start, mut unreported) = (0, 0);
        while start < self.requests() {
            let most = usize::try_from(marks.left()).unwrap_or(usize::MAX).min(BLOCK_REQUESTS);
            let block = start..self.requests().min(start.saturating_add(most));
            for (offset, id) in self.ids()[block.clone()].iter().enumerate() {
                if let Some(id) = chosen.rank(id.get()) {
                    sampled.push(self, start + offset, id)?;
                }
            }
            marks.note_block(self.totals(block.clone()), sampled.requests);
            unreported += block.len();
            start = block.end;
            if unreported >= BLOCK_REQUESTS {
                if progress(unreported as u64).is_break() {
                    return Ok(None);
                }
                unreported = 0;
            }
        }
        let mut keys = KeyColumns::default();
        for id in (0..self.keys()).filter(|id| chosen.rank(*id).is_some()) {
            keys.push(self.key(id));
        }
        let number = keys.len();
        let (words, kinds, text) = keys.finish();
        let marks = marks.finish(sampled.requests);
        let requests = usize::try_from(sampled.requests).expect("they are some of the trace's");
        let finished = sampled.finish()?;
        let mut columns: Vec<(ColumnType, &[u8])> =
            finished.iter().map(|(kind, bytes)| (*kind, &**bytes)).collect();
        columns.push((ColumnType::KeyWords, words.as_bytes()));
        if !text.is_empty() {
            columns.extend([(ColumnType::KeyKinds, &*kinds), (ColumnType::KeyText, &*text)]);
        }
        columns.push((ColumnType::Sample, marks.as_bytes()));
        let image = assemble(&Parts { requests, keys: number, columns }, MEMORY_BYTES)?;
        Self::from_own(image).map(Some)
    }

    /// Returns the totals of a block of requests; without sizes, those of values of no bytes.
    fn totals(&self, block: Range<usize>) -> Totals {
        let (sizes, ops) = (self.sizes(), self.ops());
        if sizes.is_none() && ops.is_none() {
            return Totals { reads: block.len() as u64, ..Totals::default() };
        }
        let mut totals = Totals::default();
        for at in block {
            let op = ops.map_or(Op::Read, |ops| Op::from_number(ops[at]));
            totals.add(op, sizes.map_or(0, |sizes| u64::from(sizes[at].get())));
        }
        totals
    }
}

/// The columns of the requests in a sample.
#[derive(Default)]
struct SampledRequests {
    requests: u64,
    ids: Column,
    sizes: Column,
    ops: Column,
    times: Column,
    ttls: Column,
    costs: Column,
}

impl SampledRequests {
    /// Appends request `at` of a trace, whose key has the number `id` in the sample.
    fn push(&mut self, of: &Trace, at: usize, id: u32) -> Result<(), TraceError> {
        self.requests += 1;
        self.ids.push(&id.to_le_bytes());
        if let Some(sizes) = of.sizes() {
            self.sizes.push(&sizes[at].get().to_le_bytes());
        }
        if let Some(ops) = of.ops() {
            self.ops.push(&[ops[at]]);
        }
        if let Some(times) = of.times_us() {
            self.times.push(&times[at].get().to_le_bytes());
        }
        if let Some(ttls) = of.ttls_us() {
            self.ttls.push(&ttls[at].get().to_le_bytes());
        }
        if let Some(costs) = of.costs_ns() {
            self.costs.push(&costs[at].get().to_le_bytes());
        }
        let Self { requests: _, ids, sizes, ops, times, ttls, costs } = self;
        for column in [ids, sizes, ops, times, ttls, costs] {
            if column.buffered_bytes() > MEMORY_BYTES {
                column.spill()?;
            }
        }
        Ok(())
    }

    /// The columns. A trace of these requests alone would have no column that says nothing, and neither has the sample.
    fn finish(self) -> Result<Vec<(ColumnType, Bytes)>, TraceError> {
        let Self { requests: _, ids, sizes, ops, times, ttls, costs } = self;
        let columns = [
            (ColumnType::Ids, ids.finish()?),
            (ColumnType::Sizes, sizes.finish()?),
            (ColumnType::Ops, ops.finish()?),
            (ColumnType::Times, times.finish()?),
            (ColumnType::Ttls, ttls.finish()?),
            (ColumnType::Costs, costs.finish()?),
        ];
        let says_something = |(kind, bytes): &(ColumnType, Bytes)| match kind {
            ColumnType::Ids => true,
            // Reads, and lives and costs that are not known.
            ColumnType::Ops | ColumnType::Ttls | ColumnType::Costs => {
                bytes.iter().any(|byte| *byte != 0)
            }
            _ => !bytes.is_empty(),
        };
        Ok(columns.into_iter().filter(says_something).collect())
    }
}

/// The keys of a trace that are in a sample: a bit for each, and the number of bits before each word, so that the place of a
/// hundred million keys takes twenty megabytes. The counts are apart: of most keys, which are not in the sample, only the bit is read.
struct Chosen {
    words: Vec<u64>,
    before: Vec<u32>,
}

impl Chosen {
    fn new(trace: &Trace, sampling: Sampling) -> Self {
        let word = |first: u32| {
            let ids = (0..BITS).take_while(|bit| first + bit < trace.keys());
            let chosen = ids.filter(|bit| sampling.contains(trace.key(first + bit)));
            chosen.fold(0_u64, |bits, bit| bits | 1 << bit)
        };
        let words: Vec<u64> = (0..trace.keys()).step_by(BITS as usize).map(word).collect();
        let mut sum = 0;
        let before = words.iter().map(|bits| {
            let before = sum;
            sum += bits.count_ones();
            before
        });
        let before = before.collect();
        Self { words, before }
    }

    /// Returns the id of a key in the sample, if it is in it: ids are in the order of first requests there as well.
    #[inline]
    fn rank(&self, id: u32) -> Option<u32> {
        let at = (id / BITS) as usize;
        let (bits, bit) = (self.words[at], 1_u64 << (id % BITS));
        (bits & bit != 0).then(|| self.before[at] + (bits & (bit - 1)).count_ones())
    }
}
