//! The sizes of a simulated file, and the bounds of its recycler.

use haypile_policy::PolicySpec;
use haypile_policy::rules::file::{RESERVED_SEGMENTS, Rules};
use haypile_policy::weight::share;

/// Segments without which nothing is stored: those in reserve, and an open one of each queue.
const MIN_SEGMENTS: u32 = RESERVED_SEGMENTS + 2;

/// Returns the number of segments into which a simulated file store is divided: the parameter `segments` of the policy
/// `segment`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ranges of parameters are checked where they are read"
)]
pub(in crate::simulate) fn segments(spec: &PolicySpec) -> u64 {
    spec.value("segments") as u64
}

/// The layout of a simulated file store: the number and size of its segments, the rules for recycling them, and the
/// capacity of its ghost queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) capacity: u64,
    /// Number of segments in the simulated file; 0 if they would be too few to store anything.
    pub(super) segments: u32,
    pub(super) segment_bytes: u64,
    pub(super) rules: Rules,
    pub(super) ghost_capacity: u64,
}

impl Layout {
    /// Divides the capacity of a simulated file store into segments, by the parameters of the policy `segment`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the ranges of parameters are checked where they are read"
    )]
    pub(super) fn new(spec: &PolicySpec, capacity: u64) -> Self {
        let segment_bytes = (capacity / segments(spec)).max(1);
        let segments = u32::try_from(capacity / segment_bytes)
            .expect("they are fewer than twice the number asked for");
        let small_segments = share(u64::from(segments), spec.value("small"));
        let rules = Rules {
            small_segments: u32::try_from(small_segments).expect("a share is at most the whole"),
            threshold: spec.value("threshold") as u8,
            kept_bytes: share(segment_bytes, spec.value("keep")),
        };
        Self {
            capacity,
            segments: if segments < MIN_SEGMENTS { 0 } else { segments },
            segment_bytes,
            rules,
            ghost_capacity: share(capacity, spec.value("ghost")),
        }
    }
}
