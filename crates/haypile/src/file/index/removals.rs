//! Removals of keys, recorded where a process that computes a value checks before it stores the
//! value.

use std::sync::atomic::Ordering;

use crate::file::area::Area;
use crate::file::crash;
use crate::file::platform::ground::Ground;
use crate::mutant;
use crate::removals::{Line, NOTES, Since, note_of};

/// The 64-byte line of the cache file that remembers removals of the keys with one hash, to revoke
/// leases on them.
#[derive(Debug)]
pub(in crate::file) struct Removals<'a, G> {
    ground: &'a G,
    at: u64,
    hash: u64,
}

impl<'a, G: Ground> Removals<'a, G> {
    #[inline]
    pub(in crate::file) fn of(area: &'a Area<G>, hash: u64) -> Self {
        Self { ground: &area.ground, at: area.geometry.removals_of(hash), hash }
    }

    /// Returns the number of removals of keys whose hashes share this line of the cache file. A
    /// reader sees what was done before them after an acquire fence.
    pub(in crate::file) fn count(&self) -> u64 {
        self.ground.load(self.at, Ordering::Relaxed)
    }

    /// Records in the cache file that this key is about to be removed: under the lock of its
    /// bucket, and before its index slot changes. A death in between makes a leased write fail; in
    /// the opposite order, the removal would be lost.
    #[inline]
    pub(in crate::file) fn note(&self) {
        // What its caller has changed elsewhere before is seen by those who see the count.
        self.ground.fence(mutant::order("fence-before-a-removal", Ordering::Release));
        loop {
            let number = self.ground.add(self.at, 1).wrapping_add(1);
            crash::point("removal.counted");
            let line = self.read();
            match line.place(number, self.hash) {
                Ok(place) => {
                    let note = note_of(number, self.hash);
                    if self.ground.exchange(self.note_at(place), line.notes[place], note).is_ok() {
                        break;
                    }
                }
                // Others have noted removals of other keys concurrently; or it is garbage.
                Err(lead) => drop(self.ground.add(self.at, lead)),
            }
        }
        crash::point("removal.noted");
    }

    /// Returns whether this key was removed since the count of removals of keys in this line was
    /// `then`: no, yes, or unknown. To be called under the lock of the key's bucket.
    pub(in crate::file) fn since(&self, then: u64) -> Since {
        let mut line = self.read();
        if line.count == then {
            return Since::Nothing;
        }
        loop {
            // Read twice: at one moment, all of it was so. Numbers of notes only rise.
            let again = self.read();
            if line.notes == again.notes || mutant::is_on("removals-are-read-once") {
                return line.since(then, self.hash);
            }
            line = again;
        }
    }

    /// Prefetches, for writing, the line of the cache file that remembers removals of this key.
    #[inline]
    pub(in crate::file) fn prefetch(&self) {
        self.ground.prefetch_to_write(self.at, 8);
    }

    #[inline]
    fn read(&self) -> Line {
        let order = mutant::order("removal-read", Ordering::Acquire);
        let count = self.ground.load(self.at, Ordering::Relaxed);
        let mut notes = [0; NOTES];
        for (place, note) in notes.iter_mut().enumerate() {
            *note = self.ground.load(self.note_at(place), order);
        }
        Line { count, notes }
    }

    #[inline]
    fn note_at(&self, place: usize) -> u64 {
        self.at + 8 * (place as u64 + 1)
    }
}
