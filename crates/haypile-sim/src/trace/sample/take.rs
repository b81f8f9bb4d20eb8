//! Takes a sample of a trace.

use std::ops::ControlFlow;

use zerocopy::IntoBytes;

use super::{Marks, Sampling};
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
    /// Takes a sample: a trace of the requests for some of the keys, which knows what it was taken from. Simulations of it scale their
    /// capacities and results, so that they estimate those of the whole trace. It has no column of next uses.
    ///
    /// # Errors
    /// [`TraceError::Resampled`] if the trace is a sample already, [`TraceError::Temporary`] if a large sample does not fit into a
    /// temporary file.
    pub fn sample(&self, sampling: Sampling) -> Result<Self, TraceError> {
        let sample = self.sample_unless(sampling, &mut |_| ControlFlow::Continue(()))?;
        Ok(sample.expect("nobody ends it"))
    }

    /// Takes a sample as [`sample`](Self::sample) does. `progress` is told of requests as they are looked through, in blocks, and may end
    /// it; then there is none.
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
        let (sizes, ops, times, ttls) = (self.sizes(), self.ops(), self.times_us(), self.ttls_us());
        let mut marks = Marks::new(sampling);
        let mut requests = 0_u64;
        let mut columns = [
            ColumnType::Ids,
            ColumnType::Sizes,
            ColumnType::Ops,
            ColumnType::Times,
            ColumnType::Ttls,
        ]
        .map(|kind| (kind, Column::default()));
        let [(_, new_ids), (_, new_sizes), (_, new_ops), (_, new_times), (_, new_ttls)] =
            &mut columns;
        for (at, id) in self.ids().iter().enumerate() {
            let size_bytes = sizes.map_or(0, |sizes| sizes[at].get());
            let op = ops.map_or(Op::Read, |ops| Op::from_number(ops[at]));
            if let Some(id) = chosen.rank(id.get()) {
                requests += 1;
                new_ids.push(id.to_le_bytes());
                if sizes.is_some() {
                    new_sizes.push(size_bytes.to_le_bytes());
                }
                if ops.is_some() {
                    new_ops.push([op as u8]);
                }
                if let Some(times) = times {
                    new_times.push(times[at].get().to_le_bytes());
                }
                if let Some(ttls) = ttls {
                    new_ttls.push(ttls[at].get().to_le_bytes());
                }
                for column in
                    [&mut *new_ids, &mut *new_sizes, &mut *new_ops, &mut *new_times, &mut *new_ttls]
                {
                    if column.buffered_bytes() > MEMORY_BYTES {
                        column.spill()?;
                    }
                }
            }
            marks.note(op, Some(u64::from(size_bytes)), requests);
            if (at + 1).is_multiple_of(BLOCK_REQUESTS) && progress(BLOCK_REQUESTS as u64).is_break()
            {
                return Ok(None);
            }
        }
        let mut keys = KeyColumns::default();
        for id in (0..self.keys()).filter(|id| chosen.rank(*id).is_some()) {
            keys.push(self.key(id));
        }
        let number = keys.len();
        let (words, kinds, text) = keys.finish();
        let marks = marks.finish(requests);

        let mut finished = Vec::new();
        for (kind, column) in columns {
            // A trace of these requests alone would have no column that says nothing.
            let bytes = column.finish()?;
            let says_nothing = match kind {
                ColumnType::Ids => false,
                ColumnType::Ops => bytes.iter().all(|op| *op == Op::Read as u8),
                ColumnType::Ttls => bytes.iter().all(|byte| *byte == 0),
                _ => bytes.is_empty(),
            };
            if self.parts().columns.iter().any(|(own, _)| *own == kind) && !says_nothing {
                finished.push((kind, bytes));
            }
        }
        let mut columns: Vec<(ColumnType, &[u8])> =
            finished.iter().map(|(kind, bytes)| (*kind, &**bytes)).collect();
        columns.push((ColumnType::KeyWords, words.as_bytes()));
        if !text.is_empty() {
            columns.extend([(ColumnType::KeyKinds, &*kinds), (ColumnType::KeyText, &*text)]);
        }
        columns.push((ColumnType::Sample, marks.as_bytes()));
        let requests = usize::try_from(requests).expect("they are some of the trace's");
        let image = assemble(&Parts { requests, keys: number, columns }, MEMORY_BYTES)?;
        Self::from_own(image).map(Some)
    }
}

/// The keys of a trace that are in a sample: a bit for each, and the number of bits before each word, so that the place of a
/// hundred million keys takes twenty megabytes.
struct Chosen {
    words: Vec<(u64, u32)>,
}

impl Chosen {
    fn new(trace: &Trace, sampling: Sampling) -> Self {
        let mut before = 0;
        let word = |first: u32| {
            let ids = (0..BITS).take_while(|bit| first + bit < trace.keys());
            let chosen = ids.filter(|bit| sampling.contains(trace.key(first + bit)));
            let bits = chosen.fold(0_u64, |bits, bit| bits | 1 << bit);
            let entry = (bits, before);
            before += bits.count_ones();
            entry
        };
        Self { words: (0..trace.keys()).step_by(BITS as usize).map(word).collect() }
    }

    /// Returns the id of a key in the sample, if it is in it: ids are in the order of first requests there as well.
    #[inline]
    fn rank(&self, id: u32) -> Option<u32> {
        let (bits, before) = self.words[(id / BITS) as usize];
        let bit = 1_u64 << (id % BITS);
        (bits & bit != 0).then(|| before + (bits & (bit - 1)).count_ones())
    }
}
