//! One start of a command, measured from outside with its whole process tree.
//!
//! A *supervisor* is a process of its own ([`serve`]): it starts the command, finds the moment at
//! which it is ready, and adds up what the command and all its descendants used. It is the child
//! subreaper of the tree, so that daemons which leave their parent become its children, and their
//! usage counts. Nothing of it needs root.
//!
//! ```text
//! laboratory ──(orders, a line of JSON)──> supervisor ──> command ──> its processes
//!      └── control group, where one can be made ──┴─────────┴────────────┘
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `orders`, `process` | what the laboratory asks for and gets; the supervisor's process |
//! | `supervise`, `tally` | the supervisor's loop; the usage of the tree at a moment |
//! | `ready`, `probe`, `window` | the signals by which a command is ready; one that is a command; one that is a window |
//! | `tree`, `reap` | processes as the kernel lists them; children that ended, with their usage |
//! | `orphans` | the tree of a supervisor that was killed |
//! | `census` | notices when there are too many processes |
//! | `cgroup` | a control group for one start, where the system lets us make one |
//! | `observe` | a start watched closely, untimed: its timeline, its files, what spoils a measurement |
//! | `trace` | a start under ptrace, untimed: the files and folders that it uses, and its calls of the system |
//! | `span` | from the first to the last operation on a cache, by its counters |

mod census;
mod cgroup;
mod observe;
mod orders;
mod orphans;
mod probe;
mod process;
mod ready;
mod reap;
mod span;
mod supervise;
mod tally;
mod trace;
mod tree;
mod window;

pub use cgroup::{ControlGroup, GroupKind};
pub use orders::{Accepted, CpuSource, MemorySource, StartOrders, StartReport};
pub use process::{serve, start};
pub use ready::{Ready, ReadyError};
pub use trace::{CallTrace, FileUse, serve as serve_trace};
