//! Tiers, `A -> B`: a fast level in front of one that is larger, or that others share.
//!
//! A [`TieredStore`] has an upper and a lower level; of three levels the lower one is itself a
//! tiered store. **The lower level is the truth.** Contents, the outcome of conditions, versions,
//! counters, `len`, `bytes`, iteration and claims are those of the last level. The upper level has
//! copies, and nobody else may use it: behind each value, the tier stores 20 bytes of its own.
//!
//! | operation | effect |
//! |---|---|
//! | read | from the upper level; otherwise from below, and the upper level gets a copy |
//! | `set` | deletes the copy, writes below, and puts a copy into the upper level |
//! | `add`, `replace`, `cas` | the same, if the last level finds that the condition holds |
//! | `delete`, `delete_version`, `compare_and_delete`, `touch`, `incr`, `decr`, a reservation's commit | deletes the copy, is done below |
//! | `clear` | both |
//!
//! # Bounded staleness
//!
//! Other processes write the lower level, and the upper level is not told. So each copy lives no
//! longer than `stale=` (by default [`DEFAULT_STALE`](TierOptions::DEFAULT_STALE)), counted from *before* the lower level was
//! read or written: a read returns the value that the last level had at some instant within that
//! time before the read. With more levels the bounds add up. The time of the write into the upper
//! level, and the resolution of its TTLs, come on top. If only one process writes, the bound may be
//! of any length.
//!
//! A copy never outlives its entry: its TTL is at most the remaining life that the lower level
//! reports. If a lower level cannot report that ([`Hit::expires_in`](crate::Hit::expires_in)),
//! copies may outlive its entries by `stale=`. A `ttl=` in an upper level's URL bounds the copies
//! as `stale=` does; the default TTL of entries is the `ttl=` of the last level.
//!
//! # Writes of this process
//!
//! They are seen at once, whatever the bound: **the upper level never has a value that is older
//! than this process's last write below**, and a read of this process does not see an older value
//! than one that ended before it began, whichever process wrote the two. The protocol uses
//! *stripes*; a stripe is two locks and a number that keys share by their hash:
//!
//! - A **write** locks the key's stripe and makes its number odd, deletes the key from the upper
//!   level, writes below, puts a copy into the upper level if the write was accepted, makes the
//!   number even, and unlocks.
//! - A **read** that misses the upper level notes the number, reads below, and promotes the value
//!   only if it gets the stripe's lock without waiting and the number is unchanged and even. A
//!   promotion changes the number as well. A read that does not promote its value *passes*: it adds
//!   two to the number, and deletes the upper level's copy if that is another value.
//! - A **copy** is put, and a read passes, under the stripe's second lock. A copy is put only if the
//!   number is still the one that the write or the promotion made odd; otherwise, and also if it is
//!   too large, has no life left or fails, the upper level is left without the key.
//!
//! Reads do not wait for a write, except for one that needs the version of a pending write. They wait
//! for each other only while one of them puts or deletes a copy.
//!
//! The protocol covers these cases:
//!
//! - *Two writes of one key.* The stripe orders them, in both levels alike: the upper level ends
//!   with the same value as the lower level. Of two in one batch, only the last is put.
//! - *A read below before a write, promoted after it.* The number has changed: it is not promoted.
//! - *A read below during a write.* The number was odd when it was noted, or differs at promotion:
//!   it is not promoted. So from the deletion until the write is done, the upper level does not
//!   have the key, and all readers read below: nobody sees the new value there and then the old one
//!   above.
//! - *Two reads below, with a write by another process between them.* The first to end changes the
//!   number, whether it is promoted or passes, and the other is not promoted. If the first one has the
//!   older value, the other one deletes that copy. The upper level does not go back.
//! - *A write below that another process overwrites before its copy is put.* If a read has returned the
//!   newer value, that read has passed, and the copy is not put.
//! - *A read that needs a version finds nothing below.* The copy that it did not use is deleted.
//! - *A write below that fails, or whose outcome is unknown.* The upper level no longer has the
//!   key, and the next read goes below.
//! - *An upper level that fails to delete.* Its copy expires within `stale=`.
//! - *`clear`* holds all stripes, and operations on many keys hold those of their keys, in the
//!   stripes' order.
//! - *Another process writes the lower level at any time.* `stale=` bounds the effect.
//!
//! # Versions
//!
//! They are the last level's. A copy that a write put into the upper level has none, because a
//! write does not return it; [`get_versioned_into`](crate::Store::get_versioned_into), which
//! [`Cache::get_versioned`](crate::Cache::get_versioned) and the computations of a `Cache` call,
//! then reads below, and the copy has the version from there on. So
//! [`Hit::version`](crate::Hit::version) of the other reads can be `None`. If a lower level fails
//! to return the version, that is an error of this read alone.
//!
//! # Write-back
//!
//! With `write=back`, a plain `set` goes into a queue and the upper level, and a thread writes it
//! below, at once and in the order of arrival; a key that is set again while it is pending is
//! written once. All reads of this store see it, and so do all its writes: operations that the last
//! level has to check first write the pending value there. Only `set` is deferred; it is written
//! through if its TTL is the last level's default and that is not known here, if the queue is full
//! (`write_max=`, [`DEFAULT_WRITE_MAX_BYTES`](TierOptions::DEFAULT_WRITE_MAX_BYTES)), or if the value could be too large for the lower
//! level. `delete` and `clear` are done below at once.
//!
//! Its TTL below is the remaining life when that write begins. Other processes see a `set` when it
//! has been written. **Pending writes are lost when the process dies**: at most `write_max` bytes.
//! [`flush`](crate::Store::flush), [`close`](crate::Store::close) and dropping the store write
//! them; iteration, `len` and `bytes` do so first. While the lower level fails, the thread retries.
//! A write that is permanently refused (value too large, key too long) is counted in a
//! [warning](crate::Store::warnings), and the key has no value then. A forked child writes through,
//! and the pending writes are its parent's. A program that forks without the gate of
//! [`ForkGate`](crate::ForkGate) flushes before it does, because the child may wait forever for a lock that
//! the thread held.
//!
//! # A level that fails
//!
//! If a lower level fails to read ([`Error::Backend`](crate::Error::Backend)), that is a miss of
//! the key, or of those of many keys that the upper level does not have, and is counted in a
//! warning; a hit in the upper level is unaffected. A write that fails below is an error. An upper
//! level that fails counts as one without the entry.
//!
//! Statistics are those of the last level, with the hits of all levels; `stats_by_level` returns
//! those of each level. [`resize`](crate::Store::resize) resizes the last level.

mod counts;
mod deferred;
#[cfg(not(shuttle))]
mod flusher;
mod levels;
mod many;
mod options;
mod queue;
mod read;
mod store;
mod stripes;
mod trailer;

pub use options::TierOptions;
pub(crate) use options::{LEVEL_OPTIONS, Upper, refuse};
pub use store::TieredStore;
