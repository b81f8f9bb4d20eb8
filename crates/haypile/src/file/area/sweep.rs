//! A process's knowledge of the [sweep](crate::file::log::sweep) of a file, which its threads share.

use crate::file::format::slot::Token;

/// The knowledge that a process has of the sweep, the pass over the index that verifies it after a
/// reboot.
#[derive(Debug, Default)]
pub(in crate::file) struct SweepState {
    /// The owner slot of this process that began the sweep of the index.
    pub(in crate::file) owner: Option<Token>,
    pub(in crate::file) chains: Vec<Option<Chain>>,
    pub(in crate::file) phase: Phase,
    /// The process that sweeps the index and its progress, as last seen, and the number of times
    /// that both were unchanged.
    pub(in crate::file) seen: u64,
    pub(in crate::file) times: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::file) enum Phase {
    #[default]
    Begin,
    /// Walking over the records of a segment: the segment, and the offset in it.
    Walk { segment: u32, at: u64 },
    /// Reading slots: the number of the bucket.
    Read { bucket: u32 },
}

/// The offsets of the records in a segment that was filled before the last reboot.
#[derive(Debug)]
pub(in crate::file) struct Chain {
    pub(in crate::file) generation: u64,
    /// The offset in the segment from which on no further record is found.
    pub(in crate::file) end: u64,
    /// The offset of the first record of each part of the segment, in units of 8 bytes; `u32::MAX`
    /// if there is none.
    pub(in crate::file) anchors: Vec<u32>,
}
