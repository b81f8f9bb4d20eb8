//! The columnar trace.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

use super::bytes::Bytes;
use super::hpt::{self, ColumnType, Columns, HptError, Parts};
use super::keys::{TEXT, text_at};
use super::{Key, Sample, SizeChanges, TraceError};

/// A trace, stored by columns: the input of every simulation.
///
/// Its bytes are those of an `.hpt` file (`docs/format-hpt.md`), in memory or mapped. They are
/// proven sound once, when the trace is made; after that nothing can fail.
///
/// A trace has at most 2^32 - 2 requests for at most 2^32 - 2 keys.
pub struct Trace {
    image: Bytes,
    columns: Columns,
    /// The changes of sizes, computed when a simulation first asks for them.
    size_changes: OnceLock<SizeChanges>,
}

impl Trace {
    /// Opens an `.hpt` file and maps it into memory.
    ///
    /// The whole file is read once, to test it. It has to stay as it is as long as the trace
    /// lives: a process that truncates a mapped file ends this one with `SIGBUS`. Replacing it by
    /// renaming another file over it, as [`write_to`](Self::write_to) does, is harmless.
    ///
    /// # Errors
    /// [`TraceError::Io`] if it cannot be read or is not a regular file, [`TraceError::Hpt`] if it is
    /// not a sound `.hpt` file.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let image =
            map(path).map_err(|source| TraceError::Io { path: path.to_path_buf(), source })?;
        Self::checked(image).map_err(|source| TraceError::Hpt { path: path.to_path_buf(), source })
    }

    /// Creates a trace from the bytes of an `.hpt` file; errors call it `name`.
    ///
    /// # Errors
    /// [`TraceError::Hpt`] if they are not a sound `.hpt` file, which the message calls `name`.
    pub fn from_image(name: impl Into<PathBuf>, image: Vec<u8>) -> Result<Self, TraceError> {
        Self::checked(Bytes::Memory(image))
            .map_err(|source| TraceError::Hpt { path: name.into(), source })
    }

    /// Creates a trace from the bytes of an `.hpt` file that this program has just made.
    pub(super) fn from_own(image: Bytes) -> Result<Self, TraceError> {
        let name = || std::env::temp_dir().join("a temporary trace");
        Self::checked(image).map_err(|source| TraceError::Hpt { path: name(), source })
    }

    fn checked(image: Bytes) -> Result<Self, HptError> {
        let columns = hpt::check(&image)?;
        Ok(Self { image, columns, size_changes: OnceLock::new() })
    }

    /// Writes the trace to an `.hpt` file, which appears whole or not at all: a file of this name
    /// is replaced only when the new one is safely on disk.
    ///
    /// # Errors
    /// [`TraceError::Io`] if the file cannot be written; what had its name before is still there.
    pub fn write_to(&self, path: &Path) -> Result<(), TraceError> {
        hpt::write_file(path, &self.image)
    }

    /// Returns the bytes of the trace as an `.hpt` file.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Returns the number of requests in the trace.
    pub fn requests(&self) -> usize {
        self.columns.requests
    }

    /// Returns the number of distinct keys in the trace.
    pub fn keys(&self) -> u32 {
        self.columns.keys
    }

    /// Returns the key of each request, as an id: a number below [`keys`](Self::keys). Keys are numbered in order of
    /// first appearance.
    pub fn ids(&self) -> &[U32] {
        // The check refuses an image without ids.
        self.u32s(ColumnType::Ids).unwrap_or_default()
    }

    /// Returns the size of each request's value in bytes; `None` if the trace has no sizes.
    pub fn sizes(&self) -> Option<&[U32]> {
        self.u32s(ColumnType::Sizes)
    }

    /// Returns the requests with another size than the previous request for the same key. The first call makes a pass
    /// over the trace.
    pub(crate) fn size_changes(&self) -> &SizeChanges {
        self.size_changes.get_or_init(|| {
            let sizes = self.sizes().unwrap_or_default();
            SizeChanges::of(self.ids(), sizes, self.keys())
        })
    }

    /// Returns the operation of each request, as [`Op`](super::Op)`as u8`; `None` if all are reads.
    pub fn ops(&self) -> Option<&[u8]> {
        self.bytes(ColumnType::Ops)
    }

    /// Returns the time of each request in microseconds of the trace's own clock, in no promised order; `None` if the
    /// trace has no times.
    pub fn times_us(&self) -> Option<&[U64]> {
        self.u64s(ColumnType::Times)
    }

    /// Returns the TTL of each request's value in microseconds, from the request on; 0 where the trace states none.
    /// `None` if the trace has no TTLs.
    pub fn ttls_us(&self) -> Option<&[U64]> {
        self.u64s(ColumnType::Ttls)
    }

    /// Returns the cost of a miss of each read: the time in nanoseconds that the program then takes to get the value. A read
    /// for which the trace does not state it has the last known cost of its key, or else the first that comes later; 0 if
    /// there is none. `None` if the trace has no costs.
    pub fn costs_ns(&self) -> Option<&[U64]> {
        self.u64s(ColumnType::Costs)
    }

    /// Returns, for each request, the number of the next request for the same key, or [`u32::MAX`] if there is none.
    /// `None` if the trace has no such column: see [`compute_next_use`](Self::compute_next_use).
    ///
    /// An entry is `u32::MAX`, or the number of a later request. Whether it is the right one is
    /// not tested here: [`compute_next_use`](Self::compute_next_use) does.
    pub fn next_use(&self) -> Option<&[U32]> {
        self.u32s(ColumnType::NextUse)
    }

    /// Returns the information about the whole trace that a [sample](Self::sample) keeps: the rate, the seed and the
    /// totals; `None` if this trace is whole.
    pub fn sample_of(&self) -> Option<Sample<'_>> {
        self.u64s(ColumnType::Sample).map(Sample::new)
    }

    /// Returns the number of requests of the trace, or for a sample, of the whole trace from which it was taken.
    pub fn whole_requests(&self) -> u64 {
        self.sample_of().map_or(self.requests() as u64, |sample| sample.requests())
    }

    /// Returns the number of distinct keys of the trace, or for a sample, an estimate of those of the whole trace.
    pub fn whole_keys(&self) -> u64 {
        self.scaled_up(u64::from(self.keys()))
    }

    /// Returns the number of requests in this trace before request number `request` of the whole trace; they differ if
    /// this trace is a sample.
    pub(crate) fn place(&self, request: u64) -> usize {
        let sampled = self.sample_of().map_or(request, |sample| sample.mark_near(request).sampled);
        usize::try_from(sampled).expect("a place in memory")
    }

    /// Scales a count or a cache size from this trace, if it is a sample, to the whole trace; otherwise returns it
    /// unchanged.
    pub(crate) fn scaled_up(&self, count: u64) -> u64 {
        self.sample_of().map_or(count, |sample| sample.scaled_up(count))
    }

    /// Scales a cache size from the whole trace to this trace, if it is a sample, to at least 1; otherwise returns it
    /// unchanged.
    pub fn scaled_capacity(&self, capacity: u64) -> u64 {
        self.sample_of().map_or(capacity, |sample| sample.scaled_down(capacity))
    }

    /// Returns the key (a number or a text) that the trace calls `id`.
    ///
    /// # Panics
    /// If `id` is not below [`keys`](Self::keys).
    pub fn key(&self, id: u32) -> Key<'_> {
        let words = self.u64s(ColumnType::KeyWords).expect("every image has keys");
        let word = words[id as usize].get();
        match (self.bytes(ColumnType::KeyKinds), self.bytes(ColumnType::KeyText)) {
            (Some(kinds), Some(text)) if kinds[id as usize] == TEXT => {
                Key::Text(text_at(text, word))
            }
            _ => Key::Number(word),
        }
    }

    /// Returns the length in bytes of the key `id` as text; a number counts its decimal digits.
    ///
    /// # Panics
    /// If `id` is not below [`keys`](Self::keys).
    pub fn key_bytes(&self, id: u32) -> u32 {
        match self.key(id) {
            Key::Number(number) => number.checked_ilog10().unwrap_or(0) + 1,
            Key::Text(text) => u32::try_from(text.len()).expect("a key has at most 65,535 bytes"),
        }
    }

    /// Returns the numbers of requests and keys and all columns of the trace, from which a trace with some other
    /// columns can be assembled.
    pub(super) fn parts(&self) -> Parts<'_> {
        let columns = ColumnType::ALL.iter().filter_map(|&kind| Some((kind, self.bytes(kind)?)));
        Parts { requests: self.requests(), keys: self.keys(), columns: columns.collect() }
    }

    fn range(&self, kind: ColumnType) -> Option<Range<usize>> {
        self.columns.get(kind)
    }

    fn bytes(&self, kind: ColumnType) -> Option<&[u8]> {
        Some(&self.image[self.range(kind)?])
    }

    fn u32s(&self, kind: ColumnType) -> Option<&[U32]> {
        self.bytes(kind).map(u32s)
    }

    fn u64s(&self, kind: ColumnType) -> Option<&[U64]> {
        let bytes = self.bytes(kind)?;
        Some(<[U64]>::ref_from_bytes(bytes).expect("the check has tested the length"))
    }
}

/// Casts the bytes of a checked column to 32-bit integers.
pub(super) fn u32s(bytes: &[u8]) -> &[U32] {
    <[U32]>::ref_from_bytes(bytes).expect("the check has tested the length")
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("requests", &self.requests())
            .field("keys", &self.keys())
            .field("sizes", &self.sizes().is_some())
            .field("ops", &self.ops().is_some())
            .field("times", &self.times_us().is_some())
            .field("next_use", &self.next_use().is_some())
            .field("ttls", &self.ttls_us().is_some())
            .field("costs", &self.costs_ns().is_some())
            .field("sample", &self.sample_of())
            .finish_non_exhaustive()
    }
}

fn map(path: &Path) -> io::Result<Bytes> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an .hpt file is mapped into memory and has to be a regular file",
        ));
    }
    Bytes::map(&File::open(path)?)
}
