//! Torture: processes that share a cache are killed, stopped and started again, and no value that
//! the others find may be wrong.
//!
//! Writers say each operation before it and after it, so that it is known what has to be found, and
//! values say what they are, so that a torn one is seen. `docs/torture.md` describes the cases, the
//! lines, and how programs of other languages take part.
//!
//! ```text
//! case ──> slot (one writer after the other) ──(process)──> role ──> target, a cache
//!   │        └─> ledger (what was acknowledged, what was found)
//!   ├────> reader, opener ────────────────────(process)──> role
//!   └────> invalidate (drivers, and what is true) ──(process)──> role
//! ```

mod case;
mod context;
mod controls;
mod draw;
mod invalidate;
mod kill_all;
mod kills;
mod ledger;
mod plan;
mod process;
mod reader;
mod slot;
mod spoken;
mod stage;
mod stops;
mod takeover;
mod tally;
mod value;

pub mod role;

pub use case::torture;
pub use plan::{Contestant, NAME, TortureCase, TortureOutcome, TorturePlan};
