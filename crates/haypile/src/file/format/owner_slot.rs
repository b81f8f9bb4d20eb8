//! The words of an owner slot.

/// The offset, in an owner slot of the cache file, of the count of owners that the slot has had.
pub(in crate::file) const INCARNATION: u64 = 0;
pub(in crate::file) const STATE: u64 = 8;
pub(in crate::file) const PROCESS: u64 = 16;
pub(in crate::file) const SINCE: u64 = 24;
/// The offset, in an owner slot of the cache file, of the number (plus 1) of the segment that the
/// owner appends to.
pub(in crate::file) const HAZARD: u64 = 32;
/// The offset, in an owner slot of the cache file, of the boot stamp (the number for a boot) of the
/// slot's last owner.
pub(in crate::file) const SLOT_STAMP: u64 = 40;
/// The offset, in an owner slot of the cache file, of the PID namespace in which the owner's
/// process id is valid.
pub(in crate::file) const NAMESPACE: u64 = 48;

/// The offset, in an owner slot of the cache file, of the word with the append lanes (shared open
/// segments) that the owner last used for each queue; see [`lane`](super::lane).
pub(in crate::file) const LANES: u64 = 56;

pub(in crate::file) const TAKEN: u64 = 1;
pub(in crate::file) const LEFT: u64 = 0;
