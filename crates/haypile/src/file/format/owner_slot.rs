//! The words of an owner slot.

/// The offset in an owner slot of the count of owners that it has had.
pub(in crate::file) const INCARNATION: u64 = 0;
pub(in crate::file) const STATE: u64 = 8;
pub(in crate::file) const PROCESS: u64 = 16;
pub(in crate::file) const SINCE: u64 = 24;
/// The offset in an owner slot of the segment that the owner appends to, plus 1.
pub(in crate::file) const HAZARD: u64 = 32;
/// The offset in an owner slot of the boot stamp of its last owner.
pub(in crate::file) const SLOT_STAMP: u64 = 40;
/// The offset in an owner slot of the PID namespace in which the owner's process id is valid.
pub(in crate::file) const NAMESPACE: u64 = 48;

/// The offset in an owner slot of the word with the append lanes that its owner last used, by
/// queue; see [`lane`](super::lane).
pub(in crate::file) const LANES: u64 = 56;

pub(in crate::file) const TAKEN: u64 = 1;
pub(in crate::file) const LEFT: u64 = 0;
