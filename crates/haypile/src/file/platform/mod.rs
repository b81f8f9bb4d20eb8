//! What the protocol stands on: shared memory, and what the kernel knows of processes and files.

pub(in crate::file) mod filesystem;
pub(in crate::file) mod ground;
pub(in crate::file) mod halted;
pub(in crate::file) mod kernel;
pub(in crate::file) mod map;
pub(in crate::file) mod mapped;
pub(in crate::file) mod stamp;
