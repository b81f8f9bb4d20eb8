//! The two levels, and their consistency; the protocol is in the [module](super).

use std::sync::Arc;
use std::time::Duration;

use super::counts::Counts;
use super::options::{Life, TierOptions};
use super::queue::WriteQueue;
use super::stripes::{HeldStripe, Note, Stripes};
use super::trailer::{Known, TRAILER_BYTES, Trailer};
use crate::clock::{Clock, nanos};
use crate::error::{Error, Result};
use crate::mutant;
use crate::store::Store;
use crate::url::CacheUrl;
use crate::write::{SetOptions, WriteMode, Written};

/// An upper level of a cache and the level below it, with the queue of writes that are deferred for
/// the lower one.
#[derive(Debug)]
pub(super) struct Levels {
    pub(super) upper: Arc<dyn Store>,
    pub(super) lower: Arc<dyn Store>,
    pub(super) options: TierOptions,
    pub(super) counts: Counts,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stripes: Stripes,
    queue: Option<WriteQueue>,
}

/// The state of a key (its stripe's count of changes) and the time before a read from the lower
/// level, by which the reader finds out whether the key has changed since.
pub(super) struct Asked {
    pub(super) note: Note,
    pub(super) at_ns: u64,
}

/// The right to change a key in the lower level, after its deletion from the upper level; no other
/// thread copies the key there in the meantime.
pub(super) struct Change<'a> {
    pub(super) held: HeldStripe<'a>,
    pub(super) began_ns: u64,
}

impl Levels {
    pub(super) fn new(
        upper: Arc<dyn Store>,
        lower: Arc<dyn Store>,
        options: TierOptions,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let queue = options.write_max_bytes.map(WriteQueue::new);
        let (stripes, counts) = (Stripes::new(), Counts::default());
        Self { upper, lower, options, counts, clock, stripes, queue }
    }

    /// Returns the queue of writes that are deferred for the lower level, if there is one. In a
    /// forked child it is empty, because the queued writes belong to the parent.
    pub(super) fn queue(&self) -> Option<&WriteQueue> {
        self.queue.as_ref().filter(|queue| queue.is_of_this_process())
    }

    pub(super) fn url(&self) -> CacheUrl {
        self.options.url(&self.upper.url(), &self.lower.url())
    }

    /// Returns the current state of a key, recorded before the key is read from the lower level, to
    /// find out later whether the key has changed.
    pub(super) fn ask(&self, key: &[u8]) -> Asked {
        Asked { note: self.stripes.note(key), at_ns: self.clock.now_ns() }
    }

    /// Puts a copy of an entry into the upper level; `life` is the least time that the entry had
    /// left to live at the time `at_ns`. If that is not possible, the upper level is left without
    /// the key.
    pub(super) fn put(
        &self,
        held: &HeldStripe<'_>,
        key: &[u8],
        value: &[u8],
        version: Known,
        life: Option<Duration>,
        at_ns: u64,
    ) {
        let (_copies, is_current) = held.hold_copies();
        let is_put = is_current && self.write_copy(key, value, version, life, at_ns);
        if !is_put && !mutant::is_on("copy-that-cannot-be-put-leaves-the-one-before") {
            self.remove_copy(key);
        }
    }

    /// Writes a copy; returns whether the upper level has accepted it.
    fn write_copy(
        &self,
        key: &[u8],
        value: &[u8],
        version: Known,
        life: Option<Duration>,
        at_ns: u64,
    ) -> bool {
        let life_ns = life.map(nanos);
        let most_ns = nanos(self.options.copies_live()).min(life_ns.unwrap_or(u64::MAX));
        let mut elapsed_ns = self.clock.now_ns().saturating_sub(at_ns);
        if mutant::is_on("copy-lives-from-the-end-of-the-read") {
            elapsed_ns = 0;
        }
        let ttl_ns = most_ns.saturating_sub(elapsed_ns);
        if ttl_ns == 0 {
            return false;
        }
        let trailer = Trailer { version, beyond_ns: life_ns.map(|life_ns| life_ns - most_ns) };
        let options = SetOptions::set().with_ttl(Duration::from_nanos(ttl_ns));
        let reserved = self.upper.reserve(key, value.len() + TRAILER_BYTES, &options);
        let written = reserved.and_then(|mut reservation| {
            let (place, behind) = reservation.buffer().split_at_mut(value.len());
            place.copy_from_slice(value);
            behind.copy_from_slice(&trailer.encode());
            reservation.commit()
        });
        match written {
            Ok(written) => written.is_stored(),
            Err(error) => {
                self.counts.upper_failed(&error);
                false
            }
        }
    }

    /// Deletes the copy of a key's entry from the upper level of the cache.
    pub(super) fn remove_copy(&self, key: &[u8]) {
        if let Err(error) = self.upper.delete(key) {
            self.counts.upper_failed(&error);
        }
    }

    /// Deletes a key from the upper level of the cache, and keeps other threads from copying it
    /// there until the returned change is dropped.
    pub(super) fn change(&self, key: &[u8]) -> Change<'_> {
        let held = self.stripes.hold(key);
        let change = Change { held, began_ns: self.clock.now_ns() };
        if !mutant::is_on("change-leaves-the-copy") {
            self.remove_copy(key);
        }
        change
    }

    /// Writes a value to the lower level of the cache, at once or deferred (write-back), and
    /// returns the outcome.
    pub(super) fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        let change = self.change(key);
        let life = self.options.life(options.ttl);
        if options.mode == WriteMode::Set {
            if let Some(Life(life)) = life
                && self.defer(key, value, life, change.began_ns)
            {
                self.put(&change.held, key, value, Known::Nothing, life, change.began_ns);
                return Ok(Written::Stored);
            }
        } else if !mutant::is_on("condition-is-judged-before-waiting-writes") {
            self.settle(key, &change)?;
        }
        let written = self.lower.set(key, value, options)?;
        if written.is_stored() {
            if !mutant::is_on("written-value-is-overwritten-by-a-waiting-one") {
                self.overtake(key, &change);
            }
            if let Some(Life(life)) = life {
                self.put(&change.held, key, value, Known::Nothing, life, change.began_ns);
            }
        }
        Ok(written)
    }

    /// Writes an entry that is in groups to the lower level at once, deletes its copy from the
    /// upper level, and returns the outcome. The upper level gets no copy, so that an invalidation
    /// by any process is seen at once.
    pub(super) fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        if groups.is_empty() {
            return self.set(key, value, options);
        }
        let change = self.change(key);
        self.settle(key, &change)?;
        self.lower.set_in_groups(key, value, options, groups)
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<bool> {
        let change = self.change(key);
        let deleted = self.lower.delete(key)?;
        // The pending write had replaced the entry below.
        Ok(self.overtake(key, &change).unwrap_or(deleted))
    }

    pub(super) fn clear(&self) -> Result<()> {
        let _held = (!mutant::is_on("clear-holds-no-stripe")).then(|| self.stripes.hold_all());
        if let Err(error) = self.upper.clear() {
            self.counts.upper_failed(&error);
        }
        self.lower.clear()?;
        if let Some(queue) = self.queue()
            && !mutant::is_on("clear-leaves-waiting-writes")
        {
            queue.clear();
        }
        Ok(())
    }

    pub(super) fn contains(&self, key: &[u8]) -> Result<bool> {
        match self.upper.contains(key) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => self.counts.upper_failed(&error),
        }
        if let Some(pending) = self.queue().and_then(|queue| queue.get(key)) {
            return Ok(pending.left(self.clock.now_ns()).is_some());
        }
        match self.lower.contains(key) {
            Err(error) => self.unread(error, 0).map(|()| false),
            contains => contains,
        }
    }

    /// Treats a lower level whose backend failed as empty, and counts `misses` misses; returns any
    /// other error to the caller.
    pub(super) fn unread(&self, error: Error, misses: usize) -> Result<()> {
        if matches!(error, Error::Backend { .. }) {
            self.counts.unread(misses, &error);
            return Ok(());
        }
        Err(error)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::memory::MemoryBuilder;

    #[test]
    fn a_child_writes_through_and_leaves_waiting_writes_to_its_parent() {
        let memory = || MemoryBuilder::new(64 << 10).store().expect("a size in range");
        let options = TierOptions::new().lower_ttl(None).write_back(Some(1 << 20));
        let clock = Arc::new(ManualClock::new());
        let mut levels = Levels::new(memory(), memory(), options, clock);
        let is_below =
            |levels: &Levels, key: &[u8]| levels.lower.contains(key).expect("it is open");
        let set = |levels: &Levels, key: &[u8]| {
            let written = levels.set(key, b"value", &SetOptions::set());
            assert!(written.expect("it fits").is_stored());
        };
        set(&levels, b"of the parent");
        levels.queue.as_mut().expect("writes are deferred").leave_to_parent();
        set(&levels, b"of the child");
        assert!(is_below(&levels, b"of the child"));
        levels.drain().expect("nothing fails");
        assert!(!is_below(&levels, b"of the parent"));
    }
}
