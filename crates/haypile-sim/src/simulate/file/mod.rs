//! The `file` store under simulation: the policy `segment`.
//!
//! The store's own rules, [`haypile_policy::rules::file`], say what leaves. A driver for the engine's
//! policies cannot run them: they name segments to recycle and not entries to evict.

mod driver;
mod layout;
mod log;
mod simulated;
mod window;

pub(super) use driver::FileDriver;
pub(super) use layout::segments;
pub use simulated::SimulatedFile;
