//! Room for an entry that does not fit its shard, and resizing of the whole store.

use haypile_policy::rules::memory::{MAX_SIZE_BYTES, MIN_SIZE_BYTES};

use super::contents::Contents;
use super::lock::WriteGuard;
use super::pool::Pool;
use super::{MemoryStore, Policy};
use crate::error::{Error, Result};
use crate::mutant;
use crate::sync::atomic::Ordering;

impl<P: Policy> MemoryStore<P> {
    /// Takes up to `bytes` bytes for the shard number `poor` from the memory store's pool of free
    /// bytes and from other shards. Takes them first from those above their fair share, then evenly
    /// from all, then everything; or nothing, if all would be too little. Returns the locked shard;
    /// nobody can have used the room in the meantime.
    ///
    /// Only one thread at a time does this, and only the holder of [`reclaiming`] locks a shard
    /// while it holds another one, so that there is no deadlock.
    ///
    /// [`reclaiming`]: MemoryStore::reclaiming
    pub(super) fn make_room(&self, poor: usize, bytes: u64) -> Result<WriteGuard<'_, Contents<P>>> {
        let _alone =
            (!mutant::is_on("two-threads-reclaim-at-once")).then(|| self.reclaiming.lock());
        let mut contents = self.write(poor)?;
        let mut missing = bytes;
        let claimed = self.pool.claim(0, missing).unwrap_or(0);
        contents.grow(claimed, &self.pool);
        missing -= claimed;
        // While readers hold many removed values, nothing may be enough.
        let is_possible = missing <= self.budget_of_others(poor);
        if !is_possible && !mutant::is_on("others-leave-for-an-entry-that-cannot-fit") {
            return Ok(contents);
        }
        let others = self.shards.len() as u64 - 1;
        for pass in [Pass::Excess, Pass::Evenly(bytes.div_ceil(others.max(1))), Pass::All] {
            for step in 1..self.shards.len() {
                if missing == 0 {
                    return Ok(contents);
                }
                let rich = &self.shards[(poor + step) & (self.shards.len() - 1)];
                let taken = Self::take(&mut rich.0.write(), pass, missing, &self.pool);
                contents.grow(taken, &self.pool);
                missing -= taken;
            }
        }
        Ok(contents)
    }

    /// Returns the bytes that the shards other than `poor` have. The caller holds [`reclaiming`].
    ///
    /// [`reclaiming`]: MemoryStore::reclaiming
    fn budget_of_others(&self, poor: usize) -> u64 {
        let others = self.shards.iter().enumerate().filter(|(shard, _)| *shard != poor);
        others.map(|(_, shard)| shard.0.read().budget()).sum()
    }

    /// Changes the size of the whole memory store, in bytes. Removed values that readers still hold
    /// can keep it above the new size until they are released; nothing is inserted until then.
    pub(super) fn change_size(&self, size_bytes: u64) -> Result<()> {
        let _alone = self.reclaiming.lock();
        // Checks that the store is open, before anything changes.
        drop(self.read(0)?);
        let before = self.capacity_bytes();
        if !(MIN_SIZE_BYTES..=MAX_SIZE_BYTES).contains(&size_bytes) {
            return Err(Error::SizeOutOfRange {
                size_bytes,
                min_bytes: MIN_SIZE_BYTES,
                max_bytes: MAX_SIZE_BYTES,
                store: self.name.url(before).to_string(),
            });
        }
        // From here on, entries that would no longer fit are refused.
        self.capacity_bytes.store(size_bytes, Ordering::Relaxed);
        let fair_share = size_bytes / self.shards.len() as u64;
        for shard in &self.shards {
            shard.0.write().set_fair_share(fair_share, &self.pool);
        }
        if size_bytes >= before {
            self.pool.give(size_bytes - before);
            return Ok(());
        }
        let mut missing = before - size_bytes;
        loop {
            let wanted = missing;
            missing -= self.pool.claim(0, missing).unwrap_or(0);
            let share = missing.div_ceil(self.shards.len() as u64);
            for pass in [Pass::Excess, Pass::Evenly(share), Pass::All] {
                for shard in &self.shards {
                    missing -= Self::take(&mut shard.0.write(), pass, missing, &self.pool);
                }
            }
            if missing == 0 || missing == wanted {
                // The missing bytes are held by readers of removed values.
                if !mutant::is_on("smaller-store-forgets-its-readers") {
                    self.pool.owe(missing);
                }
                return Ok(());
            }
        }
    }

    /// Takes up to `missing` bytes from a shard, as far as `pass` allows.
    fn take(contents: &mut Contents<P>, pass: Pass, missing: u64, pool: &Pool) -> u64 {
        let most = match pass {
            Pass::Excess => contents.excess(),
            Pass::Evenly(share) => share,
            Pass::All => contents.budget(),
        };
        contents.shrink(most.min(missing), pool)
    }
}

/// A shard's contribution to the room.
#[derive(Clone, Copy)]
enum Pass {
    /// The bytes of a shard above its fair share.
    Excess,
    /// At most this number of bytes of each shard.
    Evenly(u64),
    All,
}
