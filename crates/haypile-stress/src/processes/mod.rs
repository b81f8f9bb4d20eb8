//! Many processes that use one cache, and are killed and stopped at random instants.
//!
//! Each thread of a writing process owns some keys, and alone writes them. Before a write it notes
//! in a [ledger](ledger), a file that survives every kill, what it attempts, and afterwards what was
//! acknowledged. So whichever process reads a key knows what it may find:
//!
//! - A value names its key, its sequence number and its length, and every byte of it follows from
//!   these: it is whole, and of this key.
//! - It is not older than what was acknowledged before the read began, nor newer than what was
//!   attempted when it ended. Through levels, what other processes wrote may be older by the sum of
//!   `stale=`; no read is older than one that ended before it began, in the same process.
//! - Nothing is missing, where all live entries fit (`--live`).
//! - Counters, and values that all processes compare and swap, lie between the acknowledged and the
//!   attempted changes. Of all that add a key, one succeeds.
//! - A value that is kept in place stays what it was.
//!
//! Writes that a kill has cut short happened wholly or not at all; the next process that owns the
//! keys finds out which.

mod checker;
mod contested;
mod driver;
mod ledger;
mod lines;
mod owned;
mod plan;
mod process;
mod reads;
mod record;
mod tally;
mod thread;

pub(crate) use driver::test;
pub(crate) use plan::{OperationKind, Plan};
pub(crate) use process::work;
