//! The ground of the protocol: shared memory, and the kernel's knowledge of processes and files.

pub(in crate::file) mod filesystem;
pub(in crate::file) mod ground;
pub(in crate::file) mod halted;
pub(in crate::file) mod kernel;
pub(in crate::file) mod map;
pub(in crate::file) mod mapped;
pub(in crate::file) mod memory_limit;
pub(in crate::file) mod random;
pub(in crate::file) mod stamp;
