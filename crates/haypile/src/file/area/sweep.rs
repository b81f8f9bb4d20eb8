//! A process's knowledge of the [sweep](crate::file::log::sweep) of a file, which its threads share.

use crate::file::format::slot::Token;

/// The progress of the sweep (the pass over the cache file's index that verifies it after a
/// reboot), as one process knows it.
#[derive(Debug, Default)]
pub(in crate::file) struct SweepState {
    /// The owner (user of the cache file) in this process that began the pass verifying the index.
    pub(in crate::file) owner: Option<Token>,
    pub(in crate::file) chains: Vec<Option<Chain>>,
    pub(in crate::file) phase: Phase,
    /// The last seen word of the cache file that names the process verifying the index after a
    /// reboot, and its progress; `times` counts how often the word was unchanged.
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

/// The offsets of the records in a segment that was filled before the last reboot, for verifying
/// the index.
#[derive(Debug)]
pub(in crate::file) struct Chain {
    pub(in crate::file) generation: u64,
    /// The offset in the segment before which all of its records begin.
    pub(in crate::file) end: u64,
    /// The offset of the first record that begins in each of the 1,024 equal parts of the segment,
    /// in units of 8 bytes; `u32::MAX` if there is none.
    pub(in crate::file) anchors: Vec<u32>,
}
