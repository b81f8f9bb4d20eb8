//! Inspection of a file from outside: its contents, its users, and whether it is intact.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::SystemClock;
use crate::compress::Compression;
use crate::file::area::Area;
use crate::file::format::counter::{Counted, Counter};
use crate::file::format::header::{self, Header};
use crate::file::format::layout::SLOTS;
use crate::file::format::segment::{Live, SegmentKind};
use crate::file::format::slot::Slot;
use crate::file::operations::census::Census;
use crate::file::operations::read::{Lookup, Search};
use crate::file::platform::ground::Ground;
use crate::file::process::copied::{self, Copied};
use crate::file::process::create::{Compressed, Wanted};
use crate::file::process::error::FileError;
use crate::file::process::sessions::Sessions;
use crate::open::OpenError;
use crate::private_file::check_private;

/// Damages that are described; more are only counted.
const DESCRIBED: usize = 20;
/// The number of times that an entry is read again, where others change it concurrently.
const ATTEMPTS: u32 = 8;

/// A description of a cache file: its contents, its counts and its users.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStat {
    /// The size of the cache file in bytes.
    pub size_bytes: u64,
    /// The part of the cache file that records (keys and values) can take, in bytes.
    pub capacity_bytes: u64,
    /// The number of segments (pieces that are filled and emptied as a whole) of the cache file.
    pub segments: u64,
    /// The size of each segment of the cache file, in bytes.
    pub segment_bytes: u64,
    /// The number of segments of the cache file that hold no entries.
    pub free_segments: u64,
    /// The number of entries in the cache file; some may have expired.
    pub entries: u64,
    /// The total size of all live entries of the cache file in bytes: keys, values and metadata.
    pub live_bytes: u64,
    /// The number of entries for which the cache file's index has slots, including those of its
    /// overflow lines.
    pub slots: u64,
    /// The time at which the cache file was created.
    pub created: SystemTime,
    /// The time at which the oldest segment of the cache file that still holds entries was opened;
    /// `None` for an empty file.
    pub oldest: Option<SystemTime>,
    /// The id of each process that has the cache file open for writing, and the time at which it
    /// opened the file.
    pub processes: Vec<(u64, SystemTime)>,
    /// The number of slots in the cache file for processes that write; one process may take several
    /// slots.
    pub most_processes: u64,
    /// The counts of operations of all processes since the cache file was created; its `entries`
    /// and `bytes` are `entries` and `live_bytes` of this description.
    pub stats: crate::stats::Stats,
    /// The number of entries that were copied to another segment of the cache file instead of being
    /// evicted.
    pub reinserted: u64,
    /// The number of locks in the cache file that were taken over from processes that had died.
    pub recoveries: u64,
    /// The number of processes that were found to have died while they used the cache file.
    pub deaths: u64,
    /// The number of entries that were evicted because their bucket of the cache file's index was
    /// full:
    /// `entry_size=` was too large.
    pub crowded: u64,
    /// The number of writes under a lease that were refused although their keys may not have
    /// changed, because too many other keys were removed. `stats.revoked` counts them as well.
    pub unsure: u64,
    /// Whether the whole index of the cache file was verified since the last reboot; until then,
    /// reads verify values.
    pub is_swept: bool,
    /// The method that compresses the cache file's values; `None` if they are stored as they are.
    pub compression: Option<Compression>,
    /// The user id of the owner of the cache file, if users other than this one and root can write
    /// it. Such a file is read without being mapped, and nothing reported about it is certain.
    pub exposed_to: Option<u32>,
}

/// The result of a check of every entry in a cache file: counts and descriptions of damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileCheck {
    /// The number of entries that the check found intact.
    pub entries: u64,
    /// The number of places in the cache file that the check found damaged, such as index slots
    /// without an intact record.
    pub damaged: u64,
    /// Descriptions, for people, of the first places in the cache file that the check found
    /// damaged.
    pub damages: Vec<String>,
    /// The user id of the owner of a checked cache file that other users can write; see
    /// [`FileStat::exposed_to`].
    pub exposed_to: Option<u32>,
}

impl FileStat {
    /// Reads the properties of a cache file, without changing it. The file may be in use. A file
    /// that belongs to another user, or that others can write, is read without being mapped, and
    /// nothing in it is trusted.
    ///
    /// # Errors
    ///
    /// [`OpenError::Backend`] for a path that is not a file of this version, or cannot be read.
    pub fn of(path: &Path) -> Result<Self, OpenError> {
        match open(path)? {
            OpenedFile::Mapped(sessions) => {
                let using = sessions.begin();
                let session = sessions.get(&using).map_err(|error| failed(path, error))?;
                Ok(stat_of(&session.area, &session.header, None))
            }
            OpenedFile::Copied(file, owner) => Ok(stat_of(&file.0, &file.1, Some(owner))),
        }
    }

    /// Whether users other than this one and root can write the file at a path. Then a cache is not opened there
    /// unless its URL allows it; `mode=copy` reads it without trusting it.
    pub fn is_exposed(path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|metadata| check_private(&metadata).is_err())
    }
}

impl FileCheck {
    /// Reads every entry of a cache file, and checks that each index slot leads to an intact record
    /// of the right key, and that the stored counts are right. Calls `progress` with the part of
    /// the check that is done, from 0 to 1.
    ///
    /// # Errors
    ///
    /// As [`FileStat::of`].
    pub fn of(path: &Path, mut progress: impl FnMut(f64)) -> Result<Self, OpenError> {
        match open(path)? {
            OpenedFile::Mapped(sessions) => {
                let using = sessions.begin();
                let session = sessions.get(&using).map_err(|error| failed(path, error))?;
                Ok(check_area(&session.area, None, &mut progress))
            }
            OpenedFile::Copied(file, owner) => Ok(check_area(&file.0, Some(owner), &mut progress)),
        }
    }
}

fn stat_of<G: Ground>(area: &Area<G>, header: &Header, exposed_to: Option<u32>) -> FileStat {
    let mut counted = Counted::default();
    for slot in 0..area.geometry.numbers.owner_slots {
        counted.add(&area.owner_slot(slot).counted(), &Counted::default());
    }
    let live = Census::of(area).live_for_sure();
    let segments = || (0..area.geometry.numbers.segments).map(|segment| area.entry(segment));
    let is_filled =
        |kind| matches!(kind, SegmentKind::Open | SegmentKind::Sealed | SegmentKind::Recycling);
    let oldest = segments()
        .filter(|entry| is_filled(entry.state().kind) && entry.epoch() == area.epoch())
        .map(|entry| entry.opened_ms())
        .min();
    let numbers = area.geometry.numbers;
    let free = (0..numbers.segments).filter(|segment| area.is_free(*segment)).count();
    FileStat {
        size_bytes: area.geometry.file_bytes,
        capacity_bytes: area.geometry.capacity_bytes(),
        segments: numbers.segments.into(),
        segment_bytes: area.geometry.segment_bytes(),
        free_segments: free as u64,
        entries: live.entries,
        live_bytes: live.bytes,
        slots: SLOTS * (u64::from(numbers.buckets) + u64::from(numbers.overflows)),
        created: time(header.created_ms),
        oldest: oldest.map(time),
        processes: area.processes().into_iter().map(|(id, ms)| (id, time(ms))).collect(),
        most_processes: numbers.owner_slots.into(),
        stats: area.stats(live, &counted),
        reinserted: counted.of(Counter::Reinserted),
        recoveries: counted.of(Counter::Recoveries),
        deaths: area.ground.load(header::DEATHS, Ordering::Relaxed),
        crowded: counted.of(Counter::Crowded),
        unsure: counted.of(Counter::Unsure),
        is_swept: area.is_swept_for_all(),
        compression: header.compression.map(Compression::from),
        exposed_to,
    }
}

enum OpenedFile {
    Mapped(Box<Sessions>),
    /// With the user who owns it.
    Copied(Box<(Area<Copied>, Header)>, u32),
}

fn open(path: &Path) -> Result<OpenedFile, OpenError> {
    let wanted = Wanted {
        size_bytes: 0,
        entry_bytes: 0,
        groups: None,
        compression: Compressed::AsItIs,
        is_writable: false,
        prefaults: false,
        may_be_shared: false,
        may_be_remote: false,
        now_ms: 0,
    };
    match Sessions::open(path, wanted, false, 0) {
        Ok(sessions) => Ok(OpenedFile::Mapped(Box::new(sessions))),
        // What cannot be mapped safely can be read.
        Err(
            FileError::Foreign { .. }
            | FileError::Writable { .. }
            | FileError::Network { .. }
            | FileError::PerhapsNetwork { .. }
            | FileError::Holes(_),
        ) => {
            let file = copied::open(path, Arc::new(SystemClock::new()));
            let file = file.map_err(|error| failed(path, error))?;
            let owner = path.symlink_metadata().map_or(0, |metadata| metadata.uid());
            Ok(OpenedFile::Copied(Box::new(file), owner))
        }
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, source: FileError) -> OpenError {
    let url = format!("file://{}", path.display());
    OpenError::Backend { url, source: Box::new(source) }
}

fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.min(1 << 47))
}

/// The state of the entry of a slot.
enum Verdict {
    Whole(u32, u64),
    /// Of an earlier epoch: it is there for nobody.
    Cleared,
    Damaged(&'static str),
    /// Others changed it while it was read.
    Changed,
}

fn check_area<G: Ground>(
    area: &Area<G>,
    exposed_to: Option<u32>,
    progress: &mut dyn FnMut(f64),
) -> FileCheck {
    let mut check = FileCheck { exposed_to, ..FileCheck::default() };
    let mut counted = vec![Live::default(); area.geometry.numbers.segments as usize];
    let words = || -> Vec<u64> { area.live_sums() };
    let before = words();
    let buckets = area.geometry.numbers.buckets;
    for bucket in 0..buckets {
        if bucket % 4096 == 0 {
            progress(f64::from(bucket) / f64::from(buckets));
        }
        for slot in area.slots_of(bucket) {
            match verdict(area, bucket, slot) {
                Verdict::Whole(segment, bytes) => {
                    check.entries += 1;
                    counted[segment as usize].count(bytes);
                }
                Verdict::Cleared | Verdict::Changed => {}
                Verdict::Damaged(what) => {
                    check.note(format!("bucket {bucket}, {slot:?}: {what}"));
                }
            }
        }
    }
    let deaths = area.ground.load(header::DEATHS, Ordering::Relaxed);
    let is_counted = area.ground.load(header::RECOUNTED, Ordering::Relaxed) == deaths;
    // Counts that changed in the meantime say nothing, nor do those that are known to be off.
    if is_counted && check.damaged == 0 && words() == before {
        for (segment, (word, counted)) in before.into_iter().zip(counted).enumerate() {
            let entry = area.entry(u32::try_from(segment).expect("segments are numbered so"));
            let is_filled = matches!(entry.state().kind, SegmentKind::Open | SegmentKind::Sealed);
            let live = Live::decode(word);
            if is_filled && entry.epoch() == area.epoch() && live != counted {
                check.note(format!("segment {segment} counts {live:?} and has {counted:?}"));
            }
        }
    }
    progress(1.0);
    check
}

fn verdict<G: Ground>(area: &Area<G>, bucket: u32, slot: Slot) -> Verdict {
    for _ in 0..ATTEMPTS {
        let Some(segment) = area.segment_of(slot) else {
            return Verdict::Damaged("it points beyond the segments");
        };
        let entry = area.entry(segment);
        let generation = entry.generation();
        if !area.slots_of(bucket).iter().any(|other| other.is_same(slot)) {
            return Verdict::Changed;
        }
        if entry.epoch() != area.epoch() {
            return Verdict::Cleared;
        }
        let verdict = match area.record(slot, segment) {
            None => Verdict::Damaged("it points to something that is not a record"),
            Some(record) => {
                let (mut key, mut value) = (Vec::new(), Vec::new());
                let key_at = record.at + record.head.key_at();
                if area.copy_bytes(key_at, record.head.key_bytes(), &mut key).is_err()
                    || area.copy_value(&record, &mut value).is_err()
                {
                    return Verdict::Changed;
                }
                let key = area.key(&key, record.head.has_namespace());
                if !slot.is_tagged(key.hash) || area.geometry.bucket_of(key.hash) != bucket {
                    Verdict::Damaged("the record is of another key")
                } else if record.head.checksum(key.hash, &value) != area.checksum_of(&record) {
                    Verdict::Damaged("the record is damaged: its checksum is another")
                } else if !matches!(Lookup::new(area, &key).search(None), Ok(Search::Found(_))) {
                    Verdict::Changed
                } else {
                    Verdict::Whole(segment, record.head.bytes())
                }
            }
        };
        if entry.generation_after() == generation {
            return verdict;
        }
    }
    Verdict::Changed
}

impl FileCheck {
    fn note(&mut self, damage: String) {
        self.damaged += 1;
        if self.damages.len() < DESCRIBED {
            self.damages.push(damage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use crate::write::SetOptions;

    #[test]
    fn a_file_tells_what_it_holds_and_a_flipped_bit_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        let url = format!("file://{}?size=1MiB", path.display());
        let store: Arc<dyn crate::Store> = Registry::new().open(&url).expect("a store");
        for number in 0..100_u32 {
            let value = vec![7; 100 + number as usize];
            assert!(
                store.set(&number.to_le_bytes(), &value, &SetOptions::set()).unwrap().is_stored()
            );
        }
        assert!(store.get(&5_u32.to_le_bytes()).unwrap().is_some());
        let stat = FileStat::of(&path).expect("a file");
        assert_eq!((stat.size_bytes, stat.entries, stat.stats.hits), (1 << 20, 100, 1));
        assert_eq!(stat.processes.len(), 1);
        assert_eq!(stat.processes[0].0, u64::from(std::process::id()));
        let whole = FileCheck::of(&path, |_| {}).expect("a file");
        assert_eq!((whole.entries, whole.damaged), (100, 0), "{whole:?}");
        store.close().unwrap();
        drop(store);

        let mut bytes = std::fs::read(&path).expect("bytes");
        let at = bytes.windows(100).rposition(|window| window == [7; 100]).expect("a value");
        bytes[at + 50] ^= 1;
        std::fs::write(&path, bytes).expect("written");
        let check = FileCheck::of(&path, |_| {}).expect("a file");
        assert_eq!((check.entries, check.damaged), (99, 1), "{check:?}");
    }
}
