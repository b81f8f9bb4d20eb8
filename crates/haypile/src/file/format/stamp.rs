//! The two forms of a stamp.

/// The bit that is set in a boot stamp (the number for a boot), and cleared in its doubtful form,
/// which marks segments whose records reads have to verify.
pub(in crate::file) const SURE: u64 = 1 << 63;

/// Returns the doubtful form of a boot stamp, which marks a segment whose records reads have to
/// verify: slots left by a loss of power may point into the segment.
#[inline]
pub(in crate::file) fn doubtful(stamp: u64) -> u64 {
    stamp & !SURE
}
