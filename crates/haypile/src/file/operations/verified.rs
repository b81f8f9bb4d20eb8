//! The entries whose values this process has verified, for reads that verify each once.

use std::collections::HashSet;

use crate::file::area::Record;
use crate::sync::Mutex;

/// The entries that are remembered: about 3 MB of them. Beyond that, all are verified again.
const MOST: usize = 1 << 16;

/// The entries whose checksums this process has verified, identified by the offsets of their
/// records and by their versions, which no other entry has.
#[derive(Debug, Default)]
pub(in crate::file) struct Verified(Mutex<HashSet<(u64, u64)>>);

impl Verified {
    /// Returns whether this process has verified the checksum of an entry.
    pub(in crate::file) fn contains(&self, record: &Record) -> bool {
        self.0.lock().contains(&Self::name(record))
    }

    /// Records that this process has verified the checksum of an entry.
    pub(in crate::file) fn add(&self, record: &Record) {
        let mut verified = self.0.lock();
        if verified.len() >= MOST {
            verified.clear();
        }
        verified.insert(Self::name(record));
    }

    /// Frees, in a forked child, the inherited memory of the set of verified entries, like
    /// [`Pins::free_inherited`](crate::file::operations::pin::Pins::free_inherited).
    pub(in crate::file) fn free_inherited(&self) {
        if let Some(mut verified) = self.0.try_lock() {
            *verified = HashSet::new();
        }
    }

    fn name(record: &Record) -> (u64, u64) {
        (record.at, record.head.version())
    }
}
