//! The right to choose segments and to empty them: one process at a time has it.

use std::ops::Deref;

use crate::file::area::lock::Held;
use crate::file::area::{Area, OpError, Owner};
use crate::file::format::header;
use crate::file::platform::ground::Ground;

/// The recycler's lock, and everything that needs it.
#[derive(Debug)]
pub(in crate::file) struct Recycler<'a, G: Ground> {
    area: &'a Area<G>,
    held: Held<'a, G>,
    /// The owner that recycles. Others wait for it, so that it does not wait long itself.
    pub(in crate::file) owner: Owner,
}

impl<G: Ground> Deref for Recycler<'_, G> {
    type Target = Area<G>;

    fn deref(&self) -> &Area<G> {
        self.area
    }
}

impl<'a, G: Ground> Recycler<'a, G> {
    /// The file, for what outlives this right.
    pub(in crate::file) fn area(&self) -> &'a Area<G> {
        self.area
    }

    /// Lets waiting processes see that this one goes on.
    pub(in crate::file) fn note_progress(&self) {
        self.held.note_progress();
    }
}

impl<G: Ground> Area<G> {
    /// Waits for the recycler's lock.
    pub(in crate::file) fn lock_recycler(&self, owner: Owner) -> Result<Recycler<'_, G>, OpError> {
        Ok(self.recycler(owner, self.lock(owner, header::RECYCLER)?))
    }

    /// Takes the recycler's lock if nobody has it.
    pub(in crate::file) fn recycler_if_free(&self, owner: Owner) -> Option<Recycler<'_, G>> {
        Some(self.recycler(owner, self.lock_if_free(owner, header::RECYCLER)?))
    }

    fn recycler<'a>(&'a self, owner: Owner, held: Held<'a, G>) -> Recycler<'a, G> {
        Recycler { area: self, held, owner: owner.hurried() }
    }
}
