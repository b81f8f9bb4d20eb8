//! The scheme `file://`: one mapped file that every process on the machine shares, without a
//! server.
//!
//! [docs/format-file.md](https://github.com/haypile/haypile/blob/main/docs/format-file.md) describes every byte, the invariants, and the protocol. The layers, from
//! the bottom up; each uses only those above it in this table, which `make layers` checks:
//!
//! | layer | content |
//! |---|---|
//! | `crash`, `hooks` | steps at which tests end or stop the process, and what tests decide |
//! | `format` | the bytes: offsets, and the meaning of words |
//! | `platform` | what the protocol stands on, as the trait `Ground`; the same of a real file, with nearly all `unsafe` |
//! | `area` | the file as words: geometry, segment entries, records, owner slots, and locks that outlive their owners |
//! | `index` | buckets and the slots in them, and which of these are believed after a loss of power |
//! | `log` | appending, and making room |
//! | `operations` | operations on one key, on all of them, and single flight |
//! | `process` | files, a process and its threads, and children |
//! | `reader`, `store`, `leases`, `groups`, `counting`, `reservation`, `copied_store`, `inspect`, `opener`, `builder` | the [`Store`](crate::Store), and a file seen from outside |
//!
//! The model checker runs the protocol in `tests/model`, which is a module of this one, so that it
//! sees what is private.

mod area;
mod builder;
mod copied_store;
mod counting;
mod crash;
mod format;
mod groups;
#[cfg(feature = "test-hooks")]
#[doc(hidden)]
pub mod hooks;
mod index;
mod inspect;
mod leases;
mod log;
#[cfg(all(test, shuttle))]
#[path = "../../tests/model/mod.rs"]
mod model;
mod opener;
mod operations;
mod platform;
mod process;
mod reader;
mod reservation;
mod store;

pub use builder::FileBuilder;
pub use inspect::{FileCheck, FileStat};
pub(crate) use opener::FileOpener;

/// Returns whether an error of opening a cache file is about its contents, so that replacing the
/// file by a new one can help.
pub(crate) fn is_unusable(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    use format::header::HeaderError;

    match error.downcast_ref() {
        Some(process::error::FileError::Header { source, .. }) => {
            !matches!(source, HeaderError::Newer(_))
        }
        _ => false,
    }
}
