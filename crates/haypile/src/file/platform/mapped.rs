//! The ground of a real file: a mapping, and the kernel.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::call::Call;
use crate::file::platform::ground::Ground;
use crate::file::platform::halted::ProcessId;
use crate::file::platform::kernel::{FileId, Kernel, Lock};
use crate::file::platform::map::{Map, MappedLine};

/// Pauses of a processor before it is given to others.
const SPINS: u32 = 64;
/// Pauses by giving the processor to others, before sleeping: about as long as emptying a small segment
/// takes, after which the lock that is waited for is free.
const YIELDS: u32 = 1024;
const SLEEP: Duration = Duration::from_micros(50);

/// The memory of a cache file that is mapped into this process, and the file's locks.
#[derive(Debug)]
pub(in crate::file) struct Mapped {
    pub(in crate::file) map: Map,
    pub(in crate::file) kernel: Kernel,
}

impl Mapped {
    /// Flushes the mapped cache file to disk, and returns whether the file still has a name in a
    /// directory.
    pub(in crate::file) fn sync(&self) -> io::Result<bool> {
        let done = self.kernel.with_file(|file| {
            file.sync_data().call("fdatasync")?;
            Ok(file.metadata().call("statx")?.nlink() > 0)
        });
        if done.is_ok() || !self.kernel.has_lost_descriptor() {
            return done;
        }
        self.map.sync()?;
        Ok(FileId::at(&self.kernel.path).is_ok_and(|id| id == self.kernel.id))
    }
}

impl Ground for Mapped {
    type Pin<'a> = Lock;
    type Line<'a> = MappedLine<'a>;

    #[inline]
    fn line(&self, at: u64) -> MappedLine<'_> {
        self.map.line(at)
    }

    #[inline]
    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.map.load(at, order)
    }

    #[inline]
    fn store(&self, at: u64, value: u64, order: Ordering) {
        self.map.store(at, value, order);
    }

    #[inline]
    fn exchange(&self, at: u64, old: u64, new: u64) -> Result<(), u64> {
        self.map.exchange(at, old, new)
    }

    #[inline]
    fn fence(&self, order: Ordering) {
        if order != Ordering::Relaxed {
            fence(order);
        }
    }

    #[inline]
    fn add(&self, at: u64, delta: u64) -> u64 {
        self.map.add(at, delta)
    }

    fn raise(&self, at: u64, value: u64) {
        self.map.raise(at, value);
    }

    #[inline]
    fn copy_out_to(&self, at: u64, bytes: usize, into: &mut Vec<u8>) {
        self.map.copy_out_to(at, bytes, into);
    }

    #[inline]
    fn copy_in(&self, at: u64, from: &[u8]) {
        self.map.copy_in(at, from);
    }

    #[inline]
    fn is_equal(&self, at: u64, bytes: &[u8]) -> bool {
        self.map.is_equal(at, bytes)
    }

    #[inline]
    fn prefetch(&self, at: u64) {
        self.map.prefetch_bytes(at, 1);
    }

    #[inline]
    fn prefetch_bytes(&self, at: u64, bytes: u64) {
        self.map.prefetch_bytes(at, bytes);
    }

    #[inline]
    fn prefetch_to_write(&self, at: u64, bytes: u64) {
        self.map.prefetch_to_write(at, bytes);
    }

    /// Yes where that cannot be asked.
    fn is_taken(&self, slot: u32) -> bool {
        self.kernel.is_slot_taken(slot).unwrap_or(true)
    }

    fn is_halted(&self, process: ProcessId) -> bool {
        process.is_halted()
    }

    fn is_pinned(&self, segment: u32) -> bool {
        self.kernel.is_segment_locked(segment)
    }

    fn pin(&self, segment: u32, slot: u32) -> Option<Lock> {
        self.kernel.pin(segment, slot).ok().flatten()
    }

    fn now(&self) -> Duration {
        self.kernel.elapsed()
    }

    fn sleep_on(&self, at: u64, value: u64, at_most: Duration) {
        self.map.sleep_on(at, value, at_most);
    }

    fn wake(&self, at: u64) {
        self.map.wake(at);
    }

    fn pause(&self, times: u32) {
        if times < SPINS {
            std::hint::spin_loop();
        } else if times < YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(SLEEP);
        }
    }
}
