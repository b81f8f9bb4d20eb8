//! Assumptions that add sizes or writes to a trace without them.

use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use super::column::Column;
use super::generate::{Random, SizeSource, Sizes};
use super::hpt::{ColumnType, assemble};
use super::{Op, Trace, TraceError};

/// Bytes of a new column, and of a new image, that are held in memory.
const MEMORY_BYTES: usize = 256 << 20;

/// The streams of random numbers, apart from those of generated traces.
const SIZES: u64 = 1 << 32;
const WRITES: u64 = (1 << 32) + 1;

impl Trace {
    /// Returns a copy of the trace in which all values have assumed sizes. The same seed gives the same sizes on every
    /// machine.
    ///
    /// # Errors
    /// [`TraceError::Temporary`] if a large trace does not fit into a temporary file.
    pub fn assume_sizes(&self, sizes: &Sizes, seed: u64) -> Result<Self, TraceError> {
        let mut source = SizeSource::new(*sizes, seed, SIZES);
        let mut column = Column::default();
        for id in self.ids() {
            column.push(&source.next(self.key(id.get())).to_le_bytes());
            if column.buffered_bytes() > MEMORY_BYTES {
                column.spill()?;
            }
        }
        // Nobody has drawn the sizes of what is not in a sample.
        let sample = self.sample_of().map(|sample| sample.words_with(0.0, false));
        self.with_columns(ColumnType::Sizes, &column.finish()?, sample.as_deref())
    }

    /// Returns a copy of the trace in which a share of the reads (from 0 to 1) are writes: exactly that share, rounded
    /// to whole requests. Every choice of reads is as probable as any other, and the same seed makes the same choice on
    /// every machine. Writes and deletions stay what they are.
    ///
    /// # Errors
    /// [`TraceError::Share`] if the share is no number from 0 to 1, [`TraceError::Temporary`] if a
    /// large trace does not fit into a temporary file.
    pub fn assume_writes(&self, share: f64, seed: u64) -> Result<Self, TraceError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(TraceError::Share { share });
        }
        let is_read = |n: usize| self.ops().is_none_or(|ops| ops[n] == Op::Read as u8);
        let mut reads = (0..self.requests()).filter(|&n| is_read(n)).count() as u64;
        let mut writes = part_of(share, reads);
        // With as many left to choose as have to be chosen out of those that are left, each is
        // chosen with the right probability: Knuth, volume 2, algorithm 3.4.2 S.
        let mut random = Random::new(seed, WRITES);
        let mut column = Column::default();
        for n in 0..self.requests() {
            let op = if is_read(n) {
                let chosen = random.below(reads) < writes;
                reads -= 1;
                writes -= u64::from(chosen);
                if chosen { Op::Write as u8 } else { Op::Read as u8 }
            } else {
                self.ops().map_or(Op::Read as u8, |ops| ops[n])
            };
            column.push(&[op]);
            if column.buffered_bytes() > MEMORY_BYTES {
                column.spill()?;
            }
        }
        let sample = self.sample_of().map(|sample| sample.words_with(share, true));
        self.with_columns(ColumnType::Ops, &column.finish()?, sample.as_deref())
    }

    /// The same trace with this column, and that of a sample, instead of its own, if it has one.
    fn with_columns(
        &self,
        kind: ColumnType,
        column: &[u8],
        sample: Option<&[U64]>,
    ) -> Result<Self, TraceError> {
        let mut parts = self.parts();
        let sample = sample.map(|words| (ColumnType::Sample, words.as_bytes()));
        for (kind, column) in [(kind, column)].into_iter().chain(sample) {
            match parts.columns.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, own)) => *own = column,
                None => parts.columns.push((kind, column)),
            }
        }
        // One order of columns, so that equal traces are equal files.
        parts.columns.sort_by_key(|&(kind, _)| kind);
        Self::from_own(assemble(&parts, MEMORY_BYTES)?)
    }
}

/// A share of a whole, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a trace has fewer than 2^32 requests"
)]
fn part_of(share: f64, whole: u64) -> u64 {
    (share * whole as f64).round() as u64
}
