//! Write-back: the pending writes, and how they end.

use std::time::Duration;

use super::levels::{Change, Levels};
use super::options::Life;
use super::queue::Pending;
use crate::error::{Error, Result};
use crate::mutant;
use crate::ttl::{Ttl, expiry_ns};
use crate::write::SetOptions;

impl Levels {
    /// Queues a write for the lower level of the cache, if it can be deferred (write-back); returns
    /// whether it was queued.
    pub(super) fn defer(
        &self,
        key: &[u8],
        value: &[u8],
        life: Option<Duration>,
        began_ns: u64,
    ) -> bool {
        let Some(queue) = self.queue() else { return false };
        let limits = self.lower.limits();
        // Conditions that only the lower level can check must not be deferred.
        let fits = key.len() <= limits.max_key_bytes
            && (key.len() as u64).saturating_add(value.len() as u64) <= limits.max_value_bytes;
        let deferred = fits && queue.put(key, value, expiry_ns(began_ns, life));
        if deferred {
            self.counts.deferred();
        }
        deferred
    }

    /// Writes the queued value of a key that is about to be changed to the lower level, so that
    /// this level can check the condition of the change.
    pub(super) fn settle(&self, key: &[u8], _change: &Change<'_>) -> Result<()> {
        self.settle_held(key)
    }

    /// Drops the queued write of a key to the lower level, because a newer operation on the key has
    /// been done there. Returns whether the queued entry was valid or had expired; `None` if
    /// nothing was queued.
    pub(super) fn overtake(&self, key: &[u8], _change: &Change<'_>) -> Option<bool> {
        let pending = self.queue()?.remove(key)?;
        Some(pending.left(self.clock.now_ns()).is_some())
    }

    /// Writes the queued value of a key (which only the upper level has) to the lower level of the
    /// cache.
    pub(super) fn write_pending(&self, key: &[u8]) -> Result<()> {
        let _held = (!mutant::is_on("waiting-write-is-done-without-the-stripe"))
            .then(|| self.stripes.hold(key));
        self.settle_held(key)
    }

    /// Writes the pending value of a key whose stripe the caller holds.
    fn settle_held(&self, key: &[u8]) -> Result<()> {
        let Some(queue) = self.queue() else { return Ok(()) };
        let Some(pending) = queue.get(key) else { return Ok(()) };
        let error = match self.write_now(key, &pending) {
            Ok(()) => {
                queue.remove(key);
                return Ok(());
            }
            Err(error) => error,
        };
        if is_passing(&error) {
            return Err(error);
        }
        // It would be refused each time. The value that it replaced must not come back.
        queue.remove(key);
        self.counts.lost(1, &error);
        for level in [&self.upper, &self.lower] {
            if !mutant::is_on("refused-write-uncovers-the-value-before") {
                let _ = level.delete(key);
            }
        }
        Err(error)
    }

    fn write_now(&self, key: &[u8], pending: &Pending) -> Result<()> {
        let Some(Life(left)) = pending.left(self.clock.now_ns()) else {
            if mutant::is_on("expired-write-uncovers-the-value-before") {
                return Ok(());
            }
            return self.lower.delete(key).map(drop);
        };
        let options = SetOptions::set().with_ttl(Ttl::from(left));
        let _ = self.lower.set(key, &pending.value, &options)?;
        self.counts.settled();
        Ok(())
    }

    /// Writes all queued values to the lower level of the cache, until one fails.
    pub(super) fn drain(&self) -> Result<()> {
        let Some(queue) = self.queue() else { return Ok(()) };
        let mut result = Ok(());
        for key in queue.keys() {
            match self.write_pending(&key) {
                Err(error)
                    if is_passing(&error) || mutant::is_on("refused-write-stops-the-others") =>
                {
                    return Err(error);
                }
                Err(error) if result.is_ok() => result = Err(error),
                _ => {}
            }
        }
        result
    }

    /// Writes all queued values to the lower level before the store is closed; those that cannot be
    /// written are lost.
    pub(super) fn drain_finally(&self) -> Result<()> {
        let drained = self.drain();
        if let (Some(queue), Err(error)) = (self.queue(), &drained) {
            self.counts.lost(queue.clear(), error);
        }
        drained
    }
}

/// Whether a queued write that failed with this error could succeed later.
pub(super) fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Backend { .. } | Error::Busy { .. } | Error::Full { .. } | Error::OutOfMemory { .. }
    )
}
