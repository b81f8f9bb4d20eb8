//! The two forms of a stamp.

/// The bit that a stamp has, and that its doubtful form lacks.
pub(in crate::file) const SURE: u64 = 1 << 63;

/// Returns the stamp of a segment that is filled while the index may still have slots into it that a loss
/// of power left: its records are verified when they are read.
#[inline]
pub(in crate::file) fn doubtful(stamp: u64) -> u64 {
    stamp & !SURE
}
