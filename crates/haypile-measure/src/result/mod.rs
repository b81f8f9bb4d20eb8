//! Results of measurements: rows of JSON, one per line. `docs/results.md` describes the schema.
//!
//! A file of results may hold several runs. Each begins with a [`Run`] row; a [`Sample`] row for
//! each subject, case and block follows as soon as it is finished.

mod asked;
mod begin;
mod calls;
mod error;
mod identity;
mod load;
mod machine;
mod read;
mod row;
mod samples;
mod timeline;
mod write;

pub use asked::Asked;
pub use begin::command_line;
pub use calls::{CallCounts, FolderCalls, StartCalls};
pub use error::ResultsError;
pub use identity::Identity;
pub use load::disturbance;
pub use load::disturbance_of;
pub use load::{DISTURBED, Load};
pub use machine::{Governor, Machine, Program};
pub use read::{Results, read, read_from};
pub use row::{Latency, MEMORY_FOUND, Parameters, Row, Run, Sample, SubjectId};
pub use samples::{CaseKey, Place, Samples, Values};
pub use timeline::{ProcessBar, Tick, Timeline};
pub use write::ResultsWriter;

/// The version of the format of results files that this program writes.
pub const SCHEMA: u64 = 1;
