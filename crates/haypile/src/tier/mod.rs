//! `A -> B`: a fast level in front of one that is larger, or that others share.
//!
//! A [`TieredStore`] has a front and a lower level; of three levels the lower one is itself of two.
//! **The lower level is the truth.** What is there, what a condition comes to, versions, counters,
//! `len`, `bytes`, iteration and claims are those of the last level. The front has copies of it,
//! and nobody else may use it: behind each value it keeps 20 bytes of the tier's own.
//!
//! | operation | what it does |
//! |---|---|
//! | read | from the front; else from below, and the front gets a copy |
//! | `set` | leaves the front, is written below, and is put into the front |
//! | `add`, `replace`, `cas` | the same, where the last level finds that the condition holds |
//! | `delete`, `delete_version`, `touch`, `incr`, `decr`, a reservation's commit | leaves the front, is done below |
//! | `clear` | both |
//!
//! # How stale the front may be
//!
//! Other processes write the lower level, and nobody tells the front. So each copy lives no longer
//! than `stale=` ([`DEFAULT_STALE`] where it is not given), counted from *before* the lower level
//! was asked or written: what a read gives was the value of the last level at some instant within
//! that time before the read. With more levels the bounds add up. What comes on top is the time
//! that the write into the front itself takes, and the resolution of its TTLs. Where only one
//! process writes, the bound may be as long as one likes.
//!
//! A copy never outlives its entry: its TTL is also what the lower level says is left of the
//! entry's. A lower level that cannot tell ([`Hit::expires_in`](crate::Hit::expires_in)) may have
//! its entries outlived by `stale=`. A `ttl=` of an upper level's URL bounds the copies as `stale=`
//! does; what entries get that are written without a TTL is the `ttl=` of the last level.
//!
//! # Writes of this process
//!
//! They are seen at once, with any bound: **the front never has a value that is older than what
//! this process wrote below**, and one read of this process does not see an older value than one
//! that ended before it began, as far as its own writes go. The protocol, where a *stripe* is a
//! lock and a number that keys share by their hash:
//!
//! - A **write** locks the key's stripe and makes its number odd, deletes the key from the front,
//!   writes below, puts what was written into the front if it was accepted, makes the number even,
//!   and unlocks.
//! - A **read** that misses the front notes the number, reads below, and promotes only if it gets
//!   the stripe's lock without waiting and the number is what it was, and even. A promotion counts
//!   as a change of the number as well. Reads do not wait for a stripe, but for one that wants the
//!   version of what waits to be written.
//!
//! What that has to withstand:
//!
//! - *Two writes of one key.* The stripe orders them, in both levels alike: the front ends with
//!   what the lower level ends with.
//! - *A read below before a write, promoted after it.* The number has changed: not promoted.
//! - *A read below during a write.* The number was odd when it was noted, or is another when it is
//!   promoted: not promoted. So from its deletion until the write is done the front has nothing of
//!   the key, and all readers look below: nobody sees the new value there and then the old one in
//!   front.
//! - *Two reads below, with a write by another process between them.* Whichever is promoted
//!   first changes the number, and the other is not promoted: the front does not go back.
//! - *A write below that fails, or of which nobody knows whether it happened.* The front has
//!   nothing of the key any more, and the next read looks.
//! - *A front that fails to delete.* The copy that it has ends within `stale=`.
//! - *`clear`* holds all stripes, and the forms for many keys those of their keys, in the stripes'
//!   order.
//! - *Another process writes the lower level at any time.* That is what `stale=` bounds.
//!
//! # Versions
//!
//! They are the last level's. A copy that a write put into the front has none, for a write does not
//! tell it; [`get_versioned_into`](crate::Store::get_versioned_into), which
//! [`Cache::get_versioned`](crate::Cache::get_versioned) and the computations of a `Cache` call,
//! then looks below, and the copy has one from there on. So [`Hit::version`](crate::Hit::version)
//! of the other reads can be `None`. A lower level that fails to tell the version is an error of
//! that read alone.
//!
//! # Writing back later
//!
//! With `write=back` a plain `set` is accepted into a queue and the front, and a thread writes it
//! below, at once and in the order in which keys came; a key that is set again while it waits is
//! written once. All reads of this store see it, and so do all its writes: what the last level has
//! to judge is written there first. Only `set` is deferred; where its TTL is the last level's own
//! and that is not known here, where the queue is full (`write_max=`, [`DEFAULT_WRITE_MAX_BYTES`])
//! or the value could be too large for the lower level, it is written through. `delete` and `clear`
//! are done below at once.
//!
//! Its TTL below is what is left of it when that write begins. Other processes see a `set` when it
//! has been written. **What waits is lost when the process dies**: at most `write_max` bytes.
//! [`flush`](crate::Store::flush), [`close`](crate::Store::close) and dropping the store write it;
//! iteration, `len` and `bytes` do so first. While the lower level fails, the thread tries again
//! and again. What it refuses for good (too large, too long a key) is counted in a
//! [warning](crate::Store::warnings), and the key has no value then. A child that a process forks
//! writes through, and what waited is its parent's: flush before forking, for the child may wait
//! for ever for what the thread had locked.
//!
//! # A level that fails
//!
//! A lower level that fails to read ([`Error::Backend`](crate::Error::Backend)) is a miss, of one
//! key or of those of many that the front does not have, and is counted in a warning; a hit in
//! front does not notice. A write that fails below is an error. A front that fails is one without
//! the entry.
//!
//! Statistics are those of the last level, with the hits of all levels; `stats_by_level` has each
//! level's own. [`resize`](crate::Store::resize) is the last level's.

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

pub use options::{
    DEFAULT_STALE, DEFAULT_WRITE_MAX_BYTES, LEVEL_OPTIONS, MIN_WRITE_MAX_BYTES, TierOptions,
};
pub(crate) use options::{refuse, resolve, take};
pub use store::TieredStore;
