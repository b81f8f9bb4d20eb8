//! Entries, and snapshots of them.

use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, SystemTime};

use haypile::memory::snapshot::{
    EntryRef, Pushed, ReadOptions, SnapshotError, SnapshotReader, SnapshotWriter, WriteOptions,
    WriteSummary,
};
use proptest::prelude::*;

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) marks: Vec<u8>,
    pub(crate) expires: Option<SystemTime>,
    pub(crate) written: SystemTime,
    pub(crate) uses: u8,
}

impl Entry {
    /// Returns an entry that never expires.
    pub(crate) fn new(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        let (key, value, marks) = (key.into(), value.into(), Vec::new());
        Self { key, value, marks, expires: None, written: now(), uses: 1 }
    }

    pub(crate) fn lent(&self) -> EntryRef<'_> {
        let Self { key, value, marks, expires, written, uses } = self;
        EntryRef { key, value, marks, expires: *expires, written: *written, uses: *uses }
    }

    pub(crate) fn charge(&self) -> u64 {
        charge(self.key.len() as u64, (self.value.len() + self.marks.len()) as u64)
    }
}

impl From<EntryRef<'_>> for Entry {
    fn from(entry: EntryRef<'_>) -> Self {
        let EntryRef { key, value, marks, expires, written, uses } = entry;
        let (key, value, marks) = (key.to_vec(), value.to_vec(), marks.to_vec());
        Self { key, value, marks, expires, written, uses }
    }
}

/// The time at which all snapshots of these tests are made and read.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)
}

/// Neither the sum of the two lengths, nor a linear function of them.
pub(crate) fn charge(key_bytes: u64, value_bytes: u64) -> u64 {
    key_bytes + value_bytes.next_multiple_of(64) + 100
}

pub(crate) fn options() -> WriteOptions {
    WriteOptions::new(now(), "memory://?size=1MiB")
}

/// Writes all entries, and returns the outcome of each.
pub(crate) fn write(
    path: &Path,
    options: WriteOptions,
    entries: &[Entry],
) -> Result<(WriteSummary, Vec<Pushed>), SnapshotError> {
    let mut writer = SnapshotWriter::create(path, options)?;
    let pushed = entries.iter().map(|entry| writer.push(entry.lent())).collect::<Result<_, _>>()?;
    Ok((writer.finish()?, pushed))
}

/// Returns the bytes of a snapshot of all these entries.
pub(crate) fn image(entries: &[Entry]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    write(&path, options(), entries).unwrap();
    std::fs::read(path).unwrap()
}

/// Writes a file that only this user can write, whatever the umask.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

pub(crate) fn limited(max_bytes: u64) -> ReadOptions<fn(u64, u64) -> u64> {
    ReadOptions { now: now(), max_bytes, charge, allow_shared: false }
}

/// Returns the entries that a reader yields, and its errors.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Vec<Entry>, SnapshotError> {
    let mut reader = SnapshotReader::open(path, limited(max_bytes))?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry.into());
    }
    Ok(entries)
}

/// Returns all readable entries of an image, whatever its state, and the number of errors.
pub(crate) fn salvage(image: &[u8]) -> Result<(Vec<Entry>, usize), SnapshotError> {
    let options = limited(u64::MAX);
    let mut reader = SnapshotReader::from_source(Cursor::new(image), Path::new("image"), options)?;
    let (mut entries, mut errors) = (Vec::new(), 0);
    loop {
        match reader.next_entry() {
            Ok(Some(entry)) => entries.push(entry.into()),
            Ok(None) => return Ok((entries, errors)),
            Err(_) => errors += 1,
        }
    }
}

/// Entries from none to a few blocks, some larger than a block, some expired.
pub(crate) fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let value_bytes = prop_oneof![
        40 => 0..2_000usize,
        4 => 300_000..600_000usize,
        1 => (1 << 20) - 200..(1 << 20) + 200usize,
    ];
    let key_bytes = prop_oneof![20 => 0..40usize, 1 => Just(65_535)];
    let entry = (key_bytes, value_bytes, any::<(u8, u8)>(), 0..200u64, -2..20i64);
    prop::collection::vec(entry, 0..40).prop_map(|entries| {
        let entry = |(at, (key_bytes, value_bytes, (byte, uses), age_s, ttl))| Entry {
            marks: pattern(at, 8 * (at % 3)),
            key: pattern(at, key_bytes),
            value: pattern(usize::from(byte), value_bytes),
            expires: (ttl < 10).then(|| shifted(ttl)),
            written: now() - Duration::from_secs(age_s),
            uses,
        };
        entries.into_iter().enumerate().map(entry).collect()
    })
}

/// Returns bytes that differ from each other and from those of another `seed`.
fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    let byte_of = |number: usize| number.to_le_bytes()[0];
    let mut pattern = vec![byte_of(seed); bytes];
    for (at, byte) in pattern.iter_mut().enumerate().step_by(97) {
        *byte = byte_of((at >> 3) ^ seed);
    }
    pattern
}

/// Returns now plus some nanoseconds.
fn shifted(ns: i64) -> SystemTime {
    let by = Duration::from_nanos(ns.unsigned_abs());
    if ns < 0 { now() - by } else { now() + by }
}
