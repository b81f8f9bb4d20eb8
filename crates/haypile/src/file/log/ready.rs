//! Segments that are ready to be opened, so that writers do not wait for each other to make room.
//!
//! The header names some that are free beyond the reserve. They are hints: whoever exchanges the state
//! of a free segment has it. One writer alone has none of them, and makes room when it needs it.

use std::sync::atomic::Ordering;

use crate::file::area::{Area, OpError, Owner};
use crate::file::format::header;
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::Ground;
use crate::file::rules::RESERVED_SEGMENTS;
use crate::mutant;

/// Of this number of segments, one is ready at most.
const SEGMENTS_PER_READY: u32 = 64;

impl<G: Ground> Area<G> {
    fn ready_words() -> impl Iterator<Item = u64> {
        (0..header::READY_WORDS).map(|number| header::READY_AT + 8 * number)
    }

    /// The free segments that the header names.
    fn ready(&self) -> impl Iterator<Item = (u64, u32)> {
        Self::ready_words().filter_map(|at| {
            let word = self.ground.load(at, Ordering::Relaxed);
            let segment = self.segment_named(u32::try_from(word).ok()?)?;
            self.is_free(segment).then_some((at, segment))
        })
    }

    /// Whether a segment is offered to whoever needs one next.
    pub(in crate::file) fn is_ready(&self, segment: u32) -> bool {
        self.ready().any(|(_, ready)| ready == segment)
    }

    /// The number of segments that should be ready: two for each owner that writes but one.
    pub(in crate::file) fn ready_wanted(&self) -> usize {
        let most = u64::from(self.geometry.numbers.segments / SEGMENTS_PER_READY);
        let most = usize::try_from(most.min(header::READY_WORDS)).expect("a few");
        (2 * self.count_users().saturating_sub(1)).min(most)
    }

    /// Opens one of the segments that are ready; says whether it did.
    pub(in crate::file) fn open_ready(
        &self,
        me: Owner,
        queue: u32,
        now_ms: u64,
    ) -> Result<bool, OpError> {
        for (at, segment) in self.ready() {
            let is_taken = self.ground.exchange(at, u64::from(segment) + 1, 0).is_ok();
            if is_taken && self.install(me, queue, segment, now_ms)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes room before it is needed, if nobody else does so. What fails is tried again by the next.
    pub(in crate::file) fn prepare(&self, me: Owner, now_ms: u64) {
        let wanted = self.ready_wanted();
        if self.ready().count() >= wanted {
            return;
        }
        let Some(recycler) = self.recycler_if_free(me) else {
            return;
        };
        let wanted = RESERVED_SEGMENTS as usize + wanted;
        if let Ok(free) = recycler.make_free(wanted, now_ms) {
            recycler.offer(&free);
        }
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Names free segments beyond the reserve as ready. Under the recycler's lock.
    pub(in crate::file) fn offer(&self, free: &[u32]) {
        let ready: Vec<(u64, u32)> = self.ready().collect();
        let spare = free.iter().filter(|segment| self.is_free(**segment));
        let spare: Vec<u32> =
            spare.copied().filter(|it| ready.iter().all(|(_, ready)| ready != it)).collect();
        let reserved = if mutant::is_on("the-reserve-is-ready") { 0 } else { RESERVED_SEGMENTS };
        let most = self.ready_wanted().saturating_sub(ready.len());
        let offered = spare.into_iter().skip(reserved as usize).take(most);
        let empty =
            Area::<G>::ready_words().filter(|at| ready.iter().all(|(taken, _)| taken != at));
        for (at, segment) in empty.zip(offered) {
            self.ground.store(at, u64::from(segment) + 1, Ordering::Relaxed);
        }
    }
}
