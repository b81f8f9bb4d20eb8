//! The recycler: the right to choose segments and to empty them, which one process at a time has.

use std::ops::Deref;

use crate::file::area::lock::Held;
use crate::file::area::{Area, OpError, Owner};
use crate::file::format::header;
use crate::file::log::append::Appender;
use crate::file::platform::ground::Ground;

/// The held lock of the recycler (the one writer that empties segments), with everything that needs
/// it.
#[derive(Debug)]
pub(in crate::file) struct Recycler<'a, G: Ground> {
    area: &'a Area<G>,
    held: Held<'a, G>,
    /// The user of the cache file that empties segments; because others wait for it, it gives up
    /// waiting for locks early.
    pub(in crate::file) owner: Owner,
}

impl<G: Ground> Deref for Recycler<'_, G> {
    type Target = Area<G>;

    fn deref(&self) -> &Area<G> {
        self.area
    }
}

impl<'a, G: Ground> Recycler<'a, G> {
    /// Waits for the lock of the recycler, the one user of the cache file that may empty segments.
    pub(in crate::file) fn lock(area: &'a Area<G>, owner: Owner) -> Result<Self, OpError> {
        let held = area.lock(owner, header::RECYCLER)?;
        Ok(Self { area, held, owner: owner.hurried() })
    }

    /// Takes the lock of the recycler, the one user of the cache file that may empty segments,
    /// without waiting; returns `None` if a living process holds it.
    pub(in crate::file) fn lock_if_free(area: &'a Area<G>, owner: Owner) -> Option<Self> {
        let held = area.lock_if_free(owner, header::RECYCLER)?;
        Some(Self { area, held, owner: owner.hurried() })
    }

    /// Returns an appender by which the recycler appends copies of the records that it keeps.
    pub(in crate::file) fn appender(&self) -> Appender<'a, G> {
        Appender::new(self.area, self.owner)
    }

    /// Shows processes that wait for the recycler's lock that the recycler makes progress.
    pub(in crate::file) fn note_progress(&self) {
        self.held.note_progress();
    }
}
