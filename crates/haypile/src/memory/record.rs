//! A key and its value in one reference-counted allocation, so that a value can be read in place
//! after its entry has been removed.
//!
//! This is the slab's only use of `unsafe`. A [`Record`] belongs to the entry in its slot; a
//! [`Pin`] is a reader's hold on the same allocation, which is freed with the last holder. The
//! shared parts are written before a record is inserted, and atomic afterwards.

#![expect(unsafe_code, reason = "an allocation of a size known at run time, shared by counting")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::slice;

use haypile_policy::prefetch::{CACHE_LINE_BYTES, prefetch, prefetch_to_write};

use crate::mutant;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The bytes of the key, of the value and of the marks of its groups follow directly.
#[repr(C)]
struct RecordHeader {
    /// The number of holders of the allocation: the record, and pins.
    holders: AtomicU32,
    /// The time of writing in seconds of the Unix epoch; 0 if not recorded.
    written_s: AtomicU32,
    /// The lengths of the key in bytes, in the lower 16 bits; of the marks in words, in the next 6; of the value and
    /// the marks together in bytes, in the others.
    lengths: u64,
    fingerprint: u64,
    version: AtomicU64,
    /// The expiry in nanoseconds after the clock's origin; `u64::MAX` for never, or
    /// [`NEVER_IN_GROUPS`].
    expires_ns: AtomicU64,
}

/// The size of a memory store's record (an entry) without its key and its value, in bytes.
pub(super) const HEADER_BYTES: usize = size_of::<RecordHeader>();

/// More holders than this mean that pins leak; if the count overflowed, memory in use could be
/// freed.
const MAX_HOLDERS: u32 = u32::MAX / 2;

/// Cache lines of a record that are prefetched: enough for a value of 200 bytes.
const PREFETCHED_LINES: usize = 4;

/// The stored expiry of an entry that is in groups and never expires by time. Every entry that can become invalid
/// has an expiry, so that readers of other entries need no further check.
pub(super) const NEVER_IN_GROUPS: u64 = u64::MAX - 1;

/// Where the lengths after the key's begin.
const MARK_WORDS_AT: u32 = 16;
const MARKED_BYTES_AT: u32 = 22;
const MOST_MARK_WORDS: u64 = (1 << (MARKED_BYTES_AT - MARK_WORDS_AT)) - 1;
const MARK_WORD_BYTES: u64 = 8;

/// A hold on an allocation. It is not counted by itself: [`Record`] and [`Pin`] are.
#[derive(Debug)]
struct Hold(NonNull<RecordHeader>);

// SAFETY: the allocation is reached through shared references only, everything that is written
// while it is shared is atomic, and the last holder has acquired the effects of the others.
unsafe impl Send for Hold {}
// SAFETY: as above.
unsafe impl Sync for Hold {}

impl Hold {
    fn header(&self) -> &RecordHeader {
        // SAFETY: every holder is counted, and the allocation lives until the count is zero.
        unsafe { self.0.as_ref() }
    }

    fn layout(&self) -> Layout {
        let bytes = HEADER_BYTES + self.key_bytes() + self.marked_bytes();
        Layout::from_size_align(bytes, align_of::<RecordHeader>())
            .expect("the layout that it was allocated with")
    }

    fn key_bytes(&self) -> usize {
        usize::try_from(self.header().lengths & 0xFFFF).expect("16 bits")
    }

    /// Returns the length of the value with the marks.
    fn marked_bytes(&self) -> usize {
        let bytes = self.header().lengths >> MARKED_BYTES_AT;
        usize::try_from(bytes).expect("an allocation's length fits usize")
    }

    fn value_bytes(&self) -> usize {
        self.marked_bytes() - self.mark_bytes()
    }

    fn mark_bytes(&self) -> usize {
        let words = self.header().lengths >> MARK_WORDS_AT & MOST_MARK_WORDS;
        usize::try_from(words * MARK_WORD_BYTES).expect("at most 63 words")
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.bytes()[..self.key_bytes()]
    }

    #[inline]
    fn value(&self) -> &[u8] {
        let bytes = self.bytes();
        &bytes[self.key_bytes()..bytes.len() - self.mark_bytes()]
    }

    fn marks(&self) -> &[u8] {
        &self.bytes()[self.key_bytes() + self.value_bytes()..]
    }

    /// Returns the key, the value and the marks.
    fn bytes(&self) -> &[u8] {
        let bytes = self.key_bytes() + self.marked_bytes();
        // SAFETY: this number of initialised bytes follows the header in the same allocation, and
        // nobody writes to them after the draft is inserted.
        unsafe { slice::from_raw_parts(self.0.as_ptr().add(1).cast(), bytes) }
    }

    /// Gives up one hold; frees the allocation and returns `true` if it was the last.
    ///
    /// # Safety
    ///
    /// The caller is counted as a holder and does not use the hold again.
    unsafe fn give_up(&self) -> bool {
        // Only a holder can create another, so a sole holder stays alone. It needs no atomic
        // subtraction, which would delay everything after it until all earlier stores are done.
        if self.header().holders.load(Ordering::Acquire) > 1
            && !mutant::is_on("record-freed-under-its-reader")
        {
            if self.header().holders.fetch_sub(1, Ordering::Release) > 1 {
                return false;
            }
            // Orders the other holders' accesses before the deallocation.
            fence(Ordering::Acquire);
        }
        let layout = self.layout();
        // SAFETY: it was allocated with this layout, and there is no holder left. The header has
        // nothing to drop.
        unsafe { dealloc(self.0.as_ptr().cast(), layout) };
        true
    }
}

/// A new record (key and value of an entry) of a memory store that no other thread has seen yet.
#[derive(Debug)]
pub(super) struct Draft(Record);

impl Draft {
    /// Copies a key and its value into a new record of the memory store; `None` if no memory can be
    /// allocated.
    ///
    /// # Panics
    ///
    /// If the key is longer than 65,535 bytes.
    pub(super) fn copied(fingerprint: u64, key: &[u8], value: &[u8]) -> Option<Self> {
        let mut draft = Self::allocate(fingerprint, key, value.len(), 0, false)?;
        draft.spare().write_copy_of_slice(value);
        Some(draft)
    }

    /// Copies a key, its value and the hashes of its groups (marks), which are whole words, into a
    /// new record; `None` if no memory can be allocated.
    ///
    /// # Panics
    ///
    /// If the key is longer than 65,535 bytes.
    pub(super) fn marked(fingerprint: u64, key: &[u8], value: &[u8], marks: &[u8]) -> Option<Self> {
        let marked_bytes = value.len().checked_add(marks.len())?;
        let mut draft = Self::allocate(fingerprint, key, marked_bytes, marks.len(), false)?;
        let (value_part, marks_part) = draft.spare().split_at_mut(value.len());
        value_part.write_copy_of_slice(value);
        marks_part.write_copy_of_slice(marks);
        Some(draft)
    }

    /// Allocates a record for a key with a value of zeros, to be written through
    /// [`value_mut`](Self::value_mut); `None` if no memory can be allocated.
    ///
    /// # Panics
    ///
    /// If the key is longer than 65,535 bytes.
    pub(super) fn zeroed(fingerprint: u64, key: &[u8], value_bytes: usize) -> Option<Self> {
        Self::allocate(fingerprint, key, value_bytes, 0, true)
    }

    fn allocate(
        fingerprint: u64,
        key: &[u8],
        marked_bytes: usize,
        mark_bytes: usize,
        is_zeroed: bool,
    ) -> Option<Self> {
        let key_bytes = u16::try_from(key.len()).expect("callers check the key's length");
        let marked_length = u64::try_from(marked_bytes)
            .ok()
            .filter(|bytes| bytes >> (64 - MARKED_BYTES_AT) == 0)?;
        let mark_words = mark_bytes as u64 / MARK_WORD_BYTES;
        debug_assert!(mark_words <= MOST_MARK_WORDS, "an entry has few groups");
        let bytes = HEADER_BYTES.checked_add(key.len())?.checked_add(marked_bytes)?;
        let layout = Layout::from_size_align(bytes, align_of::<RecordHeader>()).ok()?;
        // SAFETY: the layout is not empty, because it contains a header.
        let pointer = unsafe { if is_zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let header: NonNull<RecordHeader> = NonNull::new(pointer)?.cast();
        // SAFETY: the allocation has room for the header and, behind it, for the key, and is
        // aligned for the header.
        unsafe {
            header.write(RecordHeader {
                holders: AtomicU32::new(1),
                written_s: AtomicU32::new(0),
                lengths: marked_length << MARKED_BYTES_AT
                    | mark_words << MARK_WORDS_AT
                    | u64::from(key_bytes),
                fingerprint,
                version: AtomicU64::new(0),
                expires_ns: AtomicU64::new(u64::MAX),
            });
            header.add(1).cast::<u8>().copy_from_nonoverlapping(
                NonNull::new_unchecked(key.as_ptr().cast_mut()),
                key.len(),
            );
        }
        Some(Self(Record(Hold(header))))
    }

    /// Returns the bytes of the value and the marks, which may be uninitialised: the caller must write all of
    /// them.
    fn spare(&mut self) -> &mut [std::mem::MaybeUninit<u8>] {
        let hold = &self.0.0;
        // SAFETY: value and marks follow the header and the key in the same allocation. This draft is
        // its only holder and is borrowed mutably.
        unsafe {
            let value = hold.0.as_ptr().add(1).cast::<std::mem::MaybeUninit<u8>>();
            slice::from_raw_parts_mut(value.add(hold.key_bytes()), hold.marked_bytes())
        }
    }

    /// Returns the writable bytes of a new record's value. The record has no groups.
    pub(super) fn value_mut(&mut self) -> &mut [u8] {
        let spare = self.spare();
        // SAFETY: both constructors of a draft initialise its value.
        unsafe { slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), spare.len()) }
    }

    /// Returns the new record (key and value), whose version and expiry are not set yet.
    pub(super) fn record(&self) -> &Record {
        &self.0
    }

    /// Completes a new record by setting its version, expiry and time of writing; from now on only
    /// its expiry changes.
    pub(super) fn place(self, version: u64, expires_ns: u64, written_s: u32) -> Record {
        let header = self.0.0.header();
        header.version.store(version, Ordering::Relaxed);
        let expires_ns = self.0.expiry(expires_ns);
        header.expires_ns.store(expires_ns, Ordering::Relaxed);
        header.written_s.store(written_s, Ordering::Relaxed);
        self.0
    }
}

/// A record of a memory store: the key and value of an entry, with metadata such as version and
/// expiry.
#[derive(Debug)]
pub(super) struct Record(Hold);

impl Record {
    #[inline]
    pub(super) fn fingerprint(&self) -> u64 {
        self.0.header().fingerprint
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        self.0.key()
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        self.0.value()
    }

    /// Returns the length of the record's key, and that of its value with the hashes of its groups,
    /// in bytes.
    #[inline]
    pub(super) fn lengths(&self) -> (usize, usize) {
        (self.0.key_bytes(), self.0.marked_bytes())
    }

    /// Returns the encoded hashes of the groups that the record's entry is in (its marks); empty if
    /// it is in none.
    #[inline]
    pub(super) fn marks(&self) -> &[u8] {
        self.0.marks()
    }

    /// Returns whether the record's entry is in groups, by which entries are invalidated together.
    #[inline]
    pub(super) fn has_groups(&self) -> bool {
        self.0.mark_bytes() > 0
    }

    pub(super) fn version(&self) -> u64 {
        self.0.header().version.load(Ordering::Relaxed)
    }

    /// Returns the expiry of the record in nanoseconds of the store's clock; `u64::MAX` and
    /// [`NEVER_IN_GROUPS`] mean never.
    pub(super) fn expires_ns(&self) -> u64 {
        self.0.header().expires_ns.load(Ordering::Relaxed)
    }

    pub(super) fn set_expires_ns(&self, expires_ns: u64) {
        self.0.header().expires_ns.store(self.expiry(expires_ns), Ordering::Relaxed);
    }

    /// Returns the expiry as it stands in the record.
    fn expiry(&self, expires_ns: u64) -> u64 {
        if self.has_groups() { expires_ns.min(NEVER_IN_GROUPS) } else { expires_ns }
    }

    /// Prefetches the header of the record and some of the bytes after it, before the record is
    /// read.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.lines().for_each(prefetch);
    }

    /// Prefetches the record's header and some of the bytes after it, before the record is freed:
    /// the next record is written to that memory.
    #[inline]
    pub(super) fn prefetch_to_free(&self) {
        self.lines().for_each(prefetch_to_write);
    }

    /// Returns where the first lines of the record are.
    #[inline]
    fn lines(&self) -> impl Iterator<Item = *const [u8; CACHE_LINE_BYTES]> {
        let start = self.0.0.as_ptr().cast_const().cast::<[u8; CACHE_LINE_BYTES]>();
        (0..PREFETCHED_LINES).map(move |line| start.wrapping_add(line))
    }

    /// Returns a reader's hold on the record, which keeps its memory allocated.
    pub(super) fn pin(&self) -> Pin {
        // Relaxed: the caller already has the record from another holder.
        let holders = self.0.header().holders.fetch_add(1, Ordering::Relaxed);
        assert!(holders < MAX_HOLDERS, "2^31 values of one key are pinned");
        Pin(Hold(self.0.0))
    }

    /// Whether a reader holds the record. No reader can take a hold while the caller has exclusive
    /// access.
    pub(super) fn is_pinned(&self) -> bool {
        self.0.header().holders.load(Ordering::Acquire) > 1
    }

    /// Releases the store's hold on a removed record; returns whether that freed the record's
    /// memory, which a reader may still hold.
    pub(super) fn release(self) -> bool {
        let record = std::mem::ManuallyDrop::new(self);
        // SAFETY: a record counts as one holder, and is not dropped again.
        unsafe { record.0.give_up() }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // SAFETY: a record counts as one holder and is dropped once.
        unsafe { self.0.give_up() };
    }
}

/// A reader's hold on a record, which may have been removed from the store since.
#[derive(Debug)]
pub(super) struct Pin(Hold);

impl Pin {
    pub(super) fn key(&self) -> &[u8] {
        self.0.key()
    }

    pub(super) fn value(&self) -> &[u8] {
        self.0.value()
    }

    pub(super) fn marks(&self) -> &[u8] {
        self.0.marks()
    }

    /// Returns the length of the held record's key, and that of its value with the hashes of its
    /// groups, in bytes.
    pub(super) fn lengths(&self) -> (usize, usize) {
        (self.0.key_bytes(), self.0.marked_bytes())
    }

    pub(super) fn expires_ns(&self) -> u64 {
        self.0.header().expires_ns.load(Ordering::Relaxed)
    }

    pub(super) fn written_s(&self) -> u32 {
        self.0.header().written_s.load(Ordering::Relaxed)
    }

    /// Releases the reader's hold on a record, and returns whether that freed the record's memory,
    /// because there was no other holder.
    pub(super) fn release(self) -> bool {
        let pin = std::mem::ManuallyDrop::new(self);
        // SAFETY: a pin counts as one holder, and is not dropped again.
        unsafe { pin.0.give_up() }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: a pin counts as one holder and is dropped once.
        unsafe { self.0.give_up() };
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::thread;

    use super::*;

    fn record(key: &[u8], value: &[u8]) -> Record {
        Draft::copied(7, key, value).expect("a few bytes can be allocated").place(1, 2, 3)
    }

    #[test]
    fn a_record_has_what_it_was_made_of() {
        let long = vec![9; 65_535];
        for (key, value) in [(&b""[..], &b""[..]), (b"k", b""), (b"", b"value"), (&long, &long)] {
            let record = record(key, value);
            assert_eq!((record.key(), record.value()), (key, value));
            assert_eq!((record.fingerprint(), record.version()), (7, 1));
            assert_eq!((record.expires_ns(), record.pin().written_s()), (2, 3));
        }
    }

    #[test]
    fn marks_are_no_part_of_the_value() {
        for words in [0, 1, 63] {
            let marks = vec![7; 8 * words];
            let draft = Draft::marked(7, b"key", b"value", &marks).unwrap();
            let record = draft.place(1, 2, 3);
            assert_eq!((record.key(), record.value()), (&b"key"[..], &b"value"[..]));
            assert_eq!((record.marks(), record.has_groups()), (&marks[..], words > 0));
            assert_eq!((record.pin().value(), record.pin().marks()), (&b"value"[..], &marks[..]));
        }
    }

    #[test]
    fn a_draft_of_zeroes_is_written_in_place() {
        let mut draft = Draft::zeroed(1, b"key", 4).unwrap();
        assert_eq!(draft.value_mut(), [0; 4]);
        draft.value_mut().copy_from_slice(b"done");
        assert_eq!(draft.place(0, 0, 0).value(), b"done");
        assert_eq!(Draft::zeroed(1, b"", 0).unwrap().value_mut(), []);
    }

    #[test]
    fn what_no_memory_can_hold_is_none() {
        assert!(Draft::zeroed(0, b"", usize::MAX).is_none());
        assert!(Draft::zeroed(0, b"", isize::MAX.unsigned_abs() - 100).is_none());
    }

    #[test]
    fn the_last_hold_frees() {
        let first = record(b"key", b"value");
        assert!(!first.is_pinned());
        let pin = first.pin();
        assert!(first.is_pinned());
        assert!(!first.release());
        assert_eq!((pin.key(), pin.value()), (&b"key"[..], &b"value"[..]));
        assert!(pin.release());
        assert!(record(b"", b"").release());
    }

    #[test]
    fn threads_read_what_they_pinned() {
        let record = record(b"key", &[5; 100]);
        thread::scope(|scope| {
            for _ in 0..4 {
                let pin = record.pin();
                scope.spawn(move || assert_eq!(pin.value(), [5; 100]));
            }
            drop(record);
        });
    }
}
