//! The two forms of a stamp.

/// The bit that distinguishes a boot stamp from its doubtful form, which marks segments whose
/// records are verified.
pub(in crate::file) const SURE: u64 = 1 << 63;

/// Returns the doubtful form of a boot stamp: it marks a segment that is filled while slots left by
/// a loss of power may point into it, so that its records are verified when they are read.
#[inline]
pub(in crate::file) fn doubtful(stamp: u64) -> u64 {
    stamp & !SURE
}
