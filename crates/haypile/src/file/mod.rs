//! `file://`: one mapped file that every process on the machine shares, without a server.
//!
//! `docs/format-file.md` describes every byte, the invariants, and the protocol. The modules, from
//! the ground up:
//!
//! | module | what it is |
//! |---|---|
//! | `layout`, `header`, `slot`, `record`, `segment` | the format: offsets, and the meaning of words |
//! | `ground` | what the protocol stands on, as a trait |
//! | `map`, `kernel`, `mapped` | the same of a real file: mapping and locks, with nearly all `unsafe` |
//! | `copied` | the same of a file that is read and not mapped |
//! | `area`, `lock`, `halted`, `chain`, `bucket` | the file as the protocol sees it; locks that outlive their owners |
//! | `stamp`, `doubt`, `sweep` | what a loss of power leaves: what is believed, and how doubt ends |
//! | `get`, `pin`, `append`, `write` | operations on one key |
//! | `survey`, `plan`, `open`, `recycle`, `run`, `spare`, `ghosts` | making room |
//! | `rules` | what that decides by, which the simulator does as well |
//! | `whole`, `claims` | all entries; single flight |
//! | `filesystem`, `create` | files |
//! | `seats`, `counter`, `session` | a process, its threads, what they count, and children |
//! | `name`, `reader`, `store`, `copied_store`, `opener` | the [`Store`](crate::Store) |
//! | `inspect` | looking at a file from outside |
//! | `crash`, `hooks`, `model` | steps at which tests end or stop the process; what tests decide; the model checker |

mod append;
mod area;
mod bucket;
mod chain;
mod claims;
mod copied;
mod copied_store;
mod counter;
mod crash;
mod create;
mod doubt;
mod filesystem;
mod get;
mod ghosts;
mod ground;
mod halted;
mod header;
#[cfg(feature = "test-hooks")]
#[doc(hidden)]
pub mod hooks;
mod inspect;
mod kernel;
mod layout;
mod lock;
mod looks;
mod map;
mod mapped;
#[cfg(all(test, shuttle))]
mod model;
mod name;
mod open;
mod opener;
mod pin;
mod plan;
mod reader;
mod record;
mod recycle;
pub mod rules;
mod run;
mod seats;
mod segment;
mod session;
mod slot;
mod spare;
mod stamp;
mod store;
mod survey;
mod sweep;
mod whole;
mod write;

pub use inspect::{FileCheck, FileStat, check, is_exposed, stat};
pub use layout::{
    DEFAULT_ENTRY_BYTES, MAX_ENTRY_BYTES, MAX_FILE_BYTES, MIN_ENTRY_BYTES, MIN_FILE_BYTES,
};
pub(crate) use opener::FileOpener;
pub use store::FileStore;
