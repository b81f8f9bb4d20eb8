//! The mapped file: the only memory that processes share, and the engine's most careful `unsafe`.
//!
//! There are never references to the bytes of the mapping, only atomic words, and copies by
//! instructions that the compiler does not see into: other processes write at any time.

#![expect(unsafe_code, reason = "a mapping that other processes write to")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use haypile_policy::prefetch::{CACHE_LINE_BYTES, prefetch, prefetch_to_write};
use rustix::mm::{self, Advice, MapFlags, MsyncFlags, ProtFlags};
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::call::Call;
use crate::file::format::layout::LINE_BYTES;
use crate::file::platform::ground::{IN_ORDER, Line, exchange_orders, is_equal_rest};

/// Copies of at least this length are made by one instruction instead of word by word.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 512;

/// Copies of at least this length are made by 16 bytes at a time.
#[cfg(target_arch = "x86_64")]
const WIDE_BYTES: usize = 32;

const LINE_WORDS: usize = 8;

/// A 64-byte line of a mapped cache file, as eight atomic words.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct MappedLine<'a>(&'a [AtomicU64; LINE_WORDS]);

impl MappedLine<'_> {
    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        &self.0[usize::try_from(at / 8).unwrap_or(0) % LINE_WORDS]
    }
}

impl Line for MappedLine<'_> {
    #[inline]
    fn load(&self, at: u64, order: Ordering) -> u64 {
        u64::from_le(self.word(at).load(order))
    }

    #[inline]
    fn store(&self, at: u64, value: u64, order: Ordering) {
        self.word(at).store(value.to_le(), order);
    }
}

/// The kind of access, reading or writing, for which pages of a mapped file are loaded in advance.
/// Loading pages for writing makes the system write all of them to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Access {
    Read,
    Write,
}

/// A file that is mapped into memory until this value is dropped.
#[derive(Debug)]
pub(in crate::file) struct Map {
    start: NonNull<u8>,
    /// The number of whole words of 8 bytes.
    words: usize,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread, and is only used through atomic words and copies.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `bytes` bytes of a file into memory, as shared memory of all processes that
    /// do so, and returns the mapping.
    pub(in crate::file) fn new(file: &File, bytes: u64, is_writable: bool) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut protection = ProtFlags::READ;
        if is_writable {
            protection |= ProtFlags::WRITE;
        }
        // SAFETY: the kernel chooses the address, so that nothing of ours is replaced.
        let start = unsafe {
            mm::mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0).call("mmap")?
        };
        // A hint: on tmpfs that was mounted with huge=advise, pages that come from now on are huge.
        // SAFETY: the addresses are this mapping's, which nobody uses yet.
        let _ = unsafe { mm::madvise(start, bytes, Advice::LinuxHugepage) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words: bytes / 8, bytes })
    }

    /// Reads all pages of the mapped file into memory, for this kind of access. Linux before 5.14
    /// returns an error.
    pub(in crate::file) fn prefault(&self, access: Access) -> io::Result<()> {
        let advice = match access {
            Access::Read => Advice::LinuxPopulateRead,
            Access::Write => Advice::LinuxPopulateWrite,
        };
        // SAFETY: the addresses are this mapping's; their contents stay as they are.
        unsafe { mm::madvise(self.start.as_ptr().cast(), self.bytes, advice) }.call("madvise")
    }

    /// Flushes to disk everything that any process has written to the mapped file.
    pub(in crate::file) fn sync(&self) -> io::Result<()> {
        // SAFETY: the addresses are this mapping's; their contents stay as they are.
        unsafe { mm::msync(self.start.as_ptr().cast(), self.bytes, MsyncFlags::SYNC) }.call("msync")
    }

    /// Returns the address of the word at a multiple of 8 within the mapping. It is derived from the
    /// mapping, not from the word: a copy goes on from it to the words that follow.
    #[inline]
    fn address_of_word(&self, at: u64) -> *mut u64 {
        let at = usize::try_from(at).expect("64-bit platforms only");
        // Rotating an offset that is not a multiple of 8 yields a number far beyond the end.
        assert!(at.rotate_right(3) < self.words, "offset {at} of {}", self.bytes);
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.as_ptr().add(at).cast() }
    }

    /// Returns the word at a multiple of 8 within the mapping. A write to a mapping that is not writable is
    /// prevented by the code that opened it.
    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        // SAFETY: the word is within the mapping, which lives as long as `self`, and aligned, for
        // mappings begin at a page. All accesses of all processes are atomic or copies as above.
        unsafe { AtomicU64::from_ptr(self.address_of_word(at)) }
    }

    #[inline]
    pub(in crate::file) fn load(&self, at: u64, order: Ordering) -> u64 {
        u64::from_le(self.word(at).load(order))
    }

    #[inline]
    pub(in crate::file) fn store(&self, at: u64, value: u64, order: Ordering) {
        self.word(at).store(value.to_le(), order);
    }

    #[inline]
    pub(in crate::file) fn exchange(&self, at: u64, old: u64, new: u64) -> Result<(), u64> {
        let (made, not_made) = exchange_orders();
        let result = self.word(at).compare_exchange(old.to_le(), new.to_le(), made, not_made);
        result.map(|_| ()).map_err(u64::from_le)
    }

    #[inline]
    pub(in crate::file) fn add(&self, at: u64, delta: u64) -> u64 {
        // Little-endian platforms only: `file/mod.rs` sees to it.
        self.word(at).fetch_add(delta, Ordering::Relaxed)
    }

    pub(in crate::file) fn raise(&self, at: u64, value: u64) {
        self.word(at).fetch_max(value, IN_ORDER);
    }

    /// Returns the cache line at this offset in the mapped file, a multiple of 64.
    #[inline]
    pub(in crate::file) fn line(&self, at: u64) -> MappedLine<'_> {
        let _ = self.address_of_word(at + (LINE_BYTES - 8));
        let first = self.address_of_word(at);
        // SAFETY: the first and the last of the eight words are within the mapping; see `word`.
        MappedLine(unsafe { &*first.cast::<[AtomicU64; LINE_WORDS]>() })
    }

    /// Returns whether the mapped file has these bytes at an offset, like
    /// [`Ground::is_equal`](super::ground::Ground::is_equal).
    #[inline]
    pub(in crate::file) fn is_equal(&self, at: u64, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let _ = self.address_of_word(at + (bytes.len() as u64 - 1) / 8 * 8);
        let mut word = self.address_of_word(at).cast_const();
        let (words, rest) = bytes.as_chunks::<8>();
        // SAFETY: the first and the last word are within the mapping, and so is all between them.
        let load = |word: *const u64| unsafe {
            AtomicU64::from_ptr(word.cast_mut()).load(Ordering::Relaxed)
        };
        for expected in words {
            if load(word) != u64::from_le_bytes(*expected) {
                return false;
            }
            word = word.wrapping_add(1);
        }
        rest.is_empty() || is_equal_rest(load(word), rest)
    }

    /// Prefetches `bytes` bytes of the mapped file, from the offset `at`, into the processor's
    /// cache.
    #[inline]
    pub(in crate::file) fn prefetch_bytes(&self, at: u64, bytes: u64) {
        for at in (at..at + bytes).step_by(CACHE_LINE_BYTES) {
            prefetch(self.hint(at));
        }
    }

    /// Prefetches `bytes` bytes of the mapped file, from the offset `at`, into the processor's
    /// cache, for writing.
    #[inline]
    pub(in crate::file) fn prefetch_to_write(&self, at: u64, bytes: u64) {
        for at in (at..at + bytes).step_by(CACHE_LINE_BYTES) {
            prefetch_to_write(self.hint(at));
        }
    }

    /// Returns an address to prefetch, which may be outside of the mapping.
    #[inline]
    fn hint(&self, at: u64) -> *const u8 {
        self.start.as_ptr().cast_const().cast::<u8>().wrapping_add(usize::try_from(at).unwrap_or(0))
    }

    /// Appends bytes of the mapped file, from an offset that is a multiple of 8, to a vector with
    /// enough capacity.
    #[inline]
    pub(in crate::file) fn copy_out_to(&self, at: u64, bytes: usize, into: &mut Vec<u8>) {
        let length = into.len();
        assert!(into.capacity() - length >= bytes, "the vector has room");
        if bytes == 0 {
            return;
        }
        let last = at + (bytes as u64 - 1) / 8 * 8;
        // The first and the last word are within the mapping, and so is all between them.
        let (first, _) = (self.address_of_word(at), self.address_of_word(last));
        // SAFETY: within the vector's capacity.
        let mut target = unsafe { into.as_mut_ptr().add(length) };
        #[cfg(target_arch = "x86_64")]
        if bytes >= LONG_BYTES {
            // SAFETY: source and target are valid for `bytes`, as shown above; they do not overlap,
            // for the vector is not of the mapping. The compiler takes the assembly for a read of
            // any memory. The fence keeps later loads behind it.
            unsafe {
                std::arch::asm!(
                    "rep movsb", "lfence",
                    inout("rcx") bytes => _,
                    inout("rsi") first => _,
                    inout("rdi") target => _,
                    options(nostack, preserves_flags)
                );
                into.set_len(length + bytes);
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if bytes >= WIDE_BYTES {
            // SAFETY: as above; there are at least 32 bytes.
            unsafe {
                copy_wide(first.cast(), target, bytes);
                into.set_len(length + bytes);
            }
            return;
        }
        let mut source = first;
        for _ in 0..bytes / 8 {
            // SAFETY: a word within the mapping, see above; and 8 bytes within the capacity.
            unsafe {
                let word = AtomicU64::from_ptr(source).load(Ordering::Relaxed);
                target.cast::<u64>().write_unaligned(word);
                source = source.add(1);
                target = target.add(8);
            }
        }
        let rest = bytes % 8;
        if rest > 0 {
            // SAFETY: as above; `rest` bytes are left of the capacity.
            unsafe {
                let word = AtomicU64::from_ptr(source).load(Ordering::Relaxed).to_le_bytes();
                ptr::copy_nonoverlapping(word.as_ptr(), target, rest);
            }
        }
        // SAFETY: this number of bytes was written.
        unsafe { into.set_len(length + bytes) };
    }

    /// Copies bytes into the mapped file, to an offset that is a multiple of 8, and pads them with
    /// zeros to the next multiple.
    #[inline]
    pub(in crate::file) fn copy_in(&self, at: u64, from: &[u8]) {
        if from.is_empty() {
            return;
        }
        let last = at + (from.len() as u64 - 1) / 8 * 8;
        let (first, last) = (self.address_of_word(at), self.word(last));
        let (words, rest) = from.as_chunks::<8>();
        if !rest.is_empty() {
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            last.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        #[cfg(target_arch = "x86_64")]
        if from.len() >= LONG_BYTES {
            // SAFETY: the words are within the mapping, from the first to the last; stores of a
            // string instruction come before the stores after it.
            unsafe {
                std::arch::asm!(
                    "rep movsb",
                    inout("rcx") words.len() * 8 => _,
                    inout("rsi") from.as_ptr() => _,
                    inout("rdi") first => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if words.len() * 8 >= WIDE_BYTES {
            // SAFETY: the words are within the mapping, from the first to the last, and at least 32
            // bytes long.
            unsafe { copy_wide(from.as_ptr(), first.cast(), words.len() * 8) };
            return;
        }
        let mut target = first;
        for word in words {
            // SAFETY: a word within the mapping, see above.
            unsafe {
                AtomicU64::from_ptr(target).store(u64::from_le_bytes(*word), Ordering::Relaxed);
                target = target.add(1);
            }
        }
    }

    /// Returns the address of `bytes` bytes at an offset in the mapped file; the caller has ensured
    /// that no process writes to them.
    pub(in crate::file) fn address(&self, at: u64, bytes: usize) -> *const u8 {
        let at = usize::try_from(at).expect("64-bit platforms only");
        assert!(at <= self.bytes && bytes <= self.bytes - at, "{bytes} at {at} of {}", self.bytes);
        self.start.as_ptr().wrapping_add(at)
    }

    /// Returns the lower half of a word, which the kernel can wait for.
    fn half(&self, at: u64) -> &AtomicU32 {
        let word = self.address_of_word(at).cast::<u32>();
        // SAFETY: the first half of an aligned word within the mapping; platforms are little-endian.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// Sleeps while the lower half of a word of the mapped file is `value`, at most for `at_most`
    /// (a futex).
    pub(in crate::file) fn sleep_on(&self, at: u64, value: u64, at_most: Duration) {
        let value = u32::try_from(value & 0xFFFF_FFFF).expect("32 bits");
        let at_most = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        // It has changed, the time is over, a signal came: all the same to the caller.
        let _ = futex::wait(self.half(at), futex::Flags::empty(), value, Some(&at_most));
    }

    /// Wakes all threads, of all processes, that sleep on this word of the mapped file.
    pub(in crate::file) fn wake(&self, at: u64) {
        let _ = futex::wake(self.half(at), futex::Flags::empty(), u32::MAX >> 1);
    }
}

/// Copies 32 bytes or more, 16 at a time. One side is a mapping that other processes write to: the
/// compiler takes the assembly for an access to any memory, and processors do not reorder its loads
/// among each other, nor its stores.
///
/// # Safety
///
/// Both are valid for `bytes`, which is at least [`WIDE_BYTES`], and do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy_wide(source: *const u8, target: *mut u8, bytes: usize) {
    let left = bytes - WIDE_BYTES;
    // SAFETY: the loop ends before the last 32 bytes, which come in one piece.
    unsafe {
        std::arch::asm!(
            "test {left}, {left}",
            "jz 3f",
            "2:",
            "movups {one}, [{source} + {at}]",
            "movups {two}, [{source} + {at} + 16]",
            "movups [{target} + {at}], {one}",
            "movups [{target} + {at} + 16], {two}",
            "add {at}, 32",
            "cmp {at}, {left}",
            "jb 2b",
            "3:",
            "movups {one}, [{source} + {left}]",
            "movups {two}, [{source} + {left} + 16]",
            "movups [{target} + {left}], {one}",
            "movups [{target} + {left} + 16], {two}",
            source = in(reg) source,
            target = in(reg) target,
            left = in(reg) left,
            at = inout(reg) 0_usize => _,
            one = out(xmm_reg) _,
            two = out(xmm_reg) _,
            options(nostack)
        );
    }
}

impl Map {
    /// Replaces the mapped file by memory of zeros that is private to this process. Threads that
    /// are using the mapping continue at the same addresses.
    pub(in crate::file) fn replace_by_zeros(&self) -> io::Result<()> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        let start = self.start.as_ptr().cast();
        // SAFETY: the addresses are this mapping's, and stay valid. There are no references to its
        // bytes, only to atomic words, which may change at any time.
        unsafe { mm::mmap_anonymous(start, self.bytes, protection, flags)? };
        Ok(())
    }
}

impl Map {
    /// Unmaps the file from memory.
    ///
    /// # Safety
    ///
    /// Nobody uses the mapping from now on, and it is never dropped.
    pub(in crate::file) unsafe fn unmap(&self) {
        // SAFETY: it was mapped so, and the caller sees to it that no one uses it.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast::<c_void>(), self.bytes) };
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody has a pointer into it any more: they borrow `self`.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast::<c_void>(), self.bytes) };
    }
}

/// A mapped page of a file that keeps the file's open description, and its locks, alive; a forked
/// child does not inherit the page.
#[derive(Debug)]
pub(in crate::file) struct Anchor {
    start: NonNull<c_void>,
    /// The process that made the page: in a child there is something else at this address, or
    /// nothing.
    process: rustix::process::Pid,
}

const PAGE_BYTES: usize = 4096;

// SAFETY: it is never read or written, only unmapped.
unsafe impl Send for Anchor {}
// SAFETY: as above.
unsafe impl Sync for Anchor {}

impl Anchor {
    pub(in crate::file) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address. The page is never read or written.
        let start = unsafe {
            mm::mmap(ptr::null_mut(), PAGE_BYTES, ProtFlags::empty(), MapFlags::SHARED, file, 0)
                .call("mmap")?
        };
        let anchor = Self {
            start: NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?,
            process: rustix::process::getpid(),
        };
        // SAFETY: the page is this mapping's.
        unsafe { mm::madvise(start, PAGE_BYTES, Advice::LinuxDontFork) }.call(
            "madvise(MADV_DONTFORK), without which a forked child would keep its parent's locks,",
        )?;
        Ok(anchor)
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        if rustix::process::getpid() == self.process {
            // SAFETY: in the process that made it the mapping is still there.
            let _ = unsafe { mm::munmap(self.start.as_ptr(), PAGE_BYTES) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> Map {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 16).expect("room");
        Map::new(&file, 1 << 16, true).expect("a mapping")
    }

    #[test]
    fn what_is_copied_in_is_copied_out() {
        let map = map();
        let bytes: Vec<u8> = (0..5000_u32).map(|number| number.to_le_bytes()[0] ^ 0x5a).collect();
        for length in [0, 1, 7, 8, 9, 31, 32, 33, 47, 63, 64, 65, 160, 511, 512, 513, 4999] {
            map.copy_in(8, &bytes[..length]);
            let mut out = b"before".to_vec();
            out.reserve(length);
            map.copy_out_to(8, length, &mut out);
            assert_eq!(out, [b"before", &bytes[..length]].concat(), "{length}");
        }
    }

    #[test]
    fn words_are_shared_by_mappings_of_one_file() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("room");
        let [one, other] = [(); 2].map(|()| Map::new(&file, 4096, true).expect("a mapping"));
        one.store(4088, 7, Ordering::Release);
        assert_eq!(other.exchange(4088, 7, 9), Ok(()));
        assert_eq!(one.load(4088, Ordering::Acquire), 9);
        assert_eq!(one.exchange(4088, 7, 8), Err(9));
    }

    #[test]
    fn a_file_that_was_let_go_of_reads_as_zeros_and_is_not_written() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("room");
        let [one, other] = [(); 2].map(|()| Map::new(&file, 4096, true).expect("a mapping"));
        one.store(8, 7, Ordering::Release);
        one.replace_by_zeros().expect("memory");
        assert_eq!(one.load(8, Ordering::Acquire), 0);
        one.store(8, 9, Ordering::Release);
        assert_eq!((one.load(8, Ordering::Acquire), other.load(8, Ordering::Acquire)), (9, 7));
    }

    #[test]
    #[should_panic(expected = "offset 65536 of 65536")]
    fn an_offset_beyond_the_end_is_a_panic_and_no_access() {
        map().load(1 << 16, Ordering::Relaxed);
    }

    #[test]
    #[should_panic(expected = "offset 12 of 65536")]
    fn an_offset_within_a_word_is_a_panic_and_no_access() {
        map().load(12, Ordering::Relaxed);
    }
}
