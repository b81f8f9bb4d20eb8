//! `persist=`: a store that comes back warm.
//!
//! What the store holds is saved to a [snapshot](super::snapshot) when it is closed or dropped, and
//! with `flush(Durability::Disk)`; and loaded when it is opened, at once or while it serves.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use super::contents::{Kept, Load};
use super::read::PinnedRecord;
use super::record::Draft;
use super::snapshot::{
    EntryRef, Pushed, ReadOptions, SnapshotError, SnapshotReader, SnapshotWriter, WriteOptions,
};
use super::{MemoryStore, Policy, charge};
use crate::clock::nanos;
use crate::error::{Error, Result};
use crate::mutant;
use crate::store::Store;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Where a memory store is kept between two processes, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersistOptions {
    /// The file. It is replaced as a whole, so that a crash leaves the old one or the new one.
    pub path: PathBuf,
    /// The most bytes that the file may have; `None` for all that the store holds. The most used
    /// entries are written first.
    pub max_bytes: Option<u64>,
    /// Entries that were written longer ago are left out; `None` for none.
    pub max_age: Option<Duration>,
    /// Whether the store serves while it loads. What is written or deleted meanwhile stays so.
    /// Saving and closing wait until all is loaded. A store that is only dropped meanwhile is not
    /// saved: the file stays as it was, and what was written into the store is lost.
    pub in_background: bool,
    /// Whether to use a file whose owner is neither the effective user of this process nor root, or
    /// that users other than its owner can write. If not, the store begins empty with a
    /// [warning](Store::warnings), saving and closing are an error, and the file stays as it is.
    pub allow_shared: bool,
}

impl PersistOptions {
    /// All of the store to this file, loaded before the store serves.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_bytes: None,
            max_age: None,
            in_background: false,
            allow_shared: false,
        }
    }

    /// Bounds the file.
    #[must_use]
    pub fn max_bytes(self, max_bytes: impl Into<Option<u64>>) -> Self {
        Self { max_bytes: max_bytes.into(), ..self }
    }

    /// Leaves out what was written longer ago.
    #[must_use]
    pub fn max_age(self, max_age: impl Into<Option<Duration>>) -> Self {
        Self { max_age: max_age.into(), ..self }
    }

    /// Serves while it loads.
    #[must_use]
    pub fn in_background(self, in_background: bool) -> Self {
        Self { in_background, ..self }
    }

    /// Uses a file even if other users can write it.
    #[must_use]
    pub fn allow_shared(self, allow_shared: bool) -> Self {
        Self { allow_shared, ..self }
    }
}

/// The state of what is kept.
#[derive(Debug)]
pub(super) struct Persistence {
    options: PersistOptions,
    /// Held while a snapshot is written, and from the refusal of all operations by closing until
    /// everything has left: what has left is not saved.
    saving: Mutex<()>,
    /// Held until a snapshot is loaded: one that is written before would lack what is to come.
    loading: Mutex<()>,
    /// Whether the store lacks a part of the snapshot: loading has begun and not ended.
    is_part: AtomicBool,
    warnings: Mutex<Vec<String>>,
}

impl Persistence {
    /// Refuses a file that could not be written later.
    pub(super) fn new(mut options: PersistOptions) -> io::Result<Self> {
        let folder = match options.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if !folder.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        options.path = std::path::absolute(&options.path)?;
        Ok(Self {
            options,
            saving: Mutex::new(()),
            loading: Mutex::new(()),
            is_part: AtomicBool::new(false),
            warnings: Mutex::new(Vec::new()),
        })
    }

    /// Whether the time at which entries were written matters.
    pub(super) fn needs_age(&self) -> bool {
        self.options.max_age.is_some()
    }

    /// Whether a part of the snapshot is not loaded. To save the store would lose it.
    pub(super) fn is_part(&self) -> bool {
        self.is_part.load(Ordering::Acquire) && !mutant::is_on("part-of-a-store-is-saved")
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    fn warn(&self, error: &SnapshotError) {
        log::warn!("{error}");
        self.warnings.lock().push(error.to_string());
    }
}

impl<P: Policy + 'static> MemoryStore<P> {
    /// Loads the snapshot, if there is one; in a thread of its own if that was asked for.
    pub(super) fn start_loading(self: Arc<Self>) -> Arc<Self> {
        let Some(persistence) = &self.persistence else { return self };
        for shard in &self.shards {
            shard.0.write().begin_loading();
        }
        if !persistence.options.in_background {
            self.load(persistence, || true);
            return self;
        }
        let store = Arc::clone(&self);
        let (locked, wait) = mpsc::channel();
        let load = move || {
            let persistence = store.persistence.as_ref().expect("the store is kept");
            let _loading = persistence.loading.lock();
            // Whoever waits for the load to end finds the lock taken from here on.
            let _ = locked.send(());
            // Nobody else can get hold of a store that only this thread has.
            store.load(persistence, || Arc::strong_count(&store) > 1);
        };
        match thread::Builder::new().name("haypile-load".to_owned()).spawn(load) {
            Ok(_) => drop(wait.recv()),
            Err(_) => self.load(persistence, || true),
        }
        self
    }
}

impl<P: Policy> MemoryStore<P> {
    /// Loads the snapshot, if there is one, as long as the store is wanted. What cannot be read is
    /// a warning.
    fn load(&self, persistence: &Persistence, is_wanted: impl Fn() -> bool) {
        persistence.is_part.store(true, Ordering::Release);
        let (now, now_ns) = (self.clock.wall(), self.clock.now_ns());
        let PersistOptions { path, allow_shared, .. } = &persistence.options;
        let (max_bytes, allow_shared) = (self.capacity_bytes(), *allow_shared);
        match SnapshotReader::open(path, ReadOptions { now, max_bytes, charge, allow_shared }) {
            Ok(mut reader) => loop {
                if !is_wanted() {
                    return;
                }
                match reader.next_entry() {
                    Ok(Some(entry)) => {
                        if self.load_entry(entry, now, now_ns).is_err() {
                            // Closed meanwhile, or there is no memory.
                            break;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => persistence.warn(&error),
                }
            },
            Err(error) if error.is_not_found() => {}
            Err(error) => persistence.warn(&error),
        }
        for shard in &self.shards {
            shard.0.write().end_loading();
        }
        persistence.is_part.store(false, Ordering::Release);
    }

    fn load_entry(&self, entry: EntryRef<'_>, now: SystemTime, now_ns: u64) -> Result<()> {
        let fingerprint = self.hasher.fingerprint(entry.key);
        let draft = Draft::copied(fingerprint, entry.key, entry.value);
        let draft = draft.ok_or_else(|| self.out_of_memory(entry.value.len()))?;
        let expires_ns = entry.expires.map_or(u64::MAX, |expires| {
            now_ns.saturating_add(expires.duration_since(now).map_or(0, nanos))
        });
        let written_s = seconds_since_epoch(entry.written);
        let shard = self.shard_of(fingerprint);
        let mut load =
            Load { draft, expires_ns, written_s, uses: entry.uses, now_ns, has_room: false };
        let mut contents = self.write(shard)?;
        while let Some((again, bytes)) = contents.load(load, &self.pool) {
            drop(contents);
            if self.check_sizes(entry.key, entry.value.len()).is_err() {
                // The store has become smaller than it was when loading began.
                return Ok(());
            }
            contents = self.make_room(shard, bytes)?;
            load = Load { has_room: true, ..again };
        }
        Ok(())
    }

    /// Writes a snapshot of what the store holds, once it is loaded.
    pub(super) fn save(&self) -> Result<()> {
        let Some(persistence) = &self.persistence else {
            return Err(Error::Unsupported {
                operation: "flush to disk without persist=",
                store: self.describe(),
            });
        };
        drop(persistence.loading.lock());
        let _saving = persistence.saving.lock();
        // It may have been closed while this waited, and be empty.
        drop(self.read(0)?);
        self.write_snapshot(persistence)
    }

    /// Closes the store once it is loaded: else what is still to come would be lost.
    pub(super) fn save_and_close(&self, persistence: &Persistence) -> Result<()> {
        if !mutant::is_on("store-is-saved-before-it-is-loaded") {
            drop(persistence.loading.lock());
        }
        let _saving = persistence.saving.lock();
        let saved = if self.refuse_all() { self.write_snapshot(persistence) } else { Ok(()) };
        self.forget_all();
        saved
    }

    fn write_snapshot(&self, persistence: &Persistence) -> Result<()> {
        self.try_write_snapshot(&persistence.options).map_err(|source| Error::Backend {
            operation: "save its snapshot",
            store: self.describe(),
            source: Box::new(source),
        })
    }

    fn try_write_snapshot(&self, options: &PersistOptions) -> Result<(), SnapshotError> {
        let (now, now_ns) = (self.clock.wall(), self.clock.now_ns());
        let mut write = WriteOptions::new(now, self.describe());
        write.max_bytes = options.max_bytes;
        write.max_age = options.max_age;
        write.allow_shared = options.allow_shared;
        let mut writer = SnapshotWriter::create(&options.path, write)?;
        for (shard, kept) in self.ranked(now_ns) {
            // One after the other: what is held cannot make room for what is written meanwhile.
            let Some(pin) = self.shards[shard].0.read().pin_kept(&kept) else { continue };
            let entry = PinnedRecord::new(pin, &self.pool);
            let (pin, uses) = (entry.pin(), kept.uses);
            let expires_ns = pin.expires_ns();
            let expires = (expires_ns != u64::MAX)
                .then(|| now + Duration::from_nanos(expires_ns.saturating_sub(now_ns)));
            let written = match pin.written_s() {
                0 => now,
                written_s => SystemTime::UNIX_EPOCH + Duration::from_secs(written_s.into()),
            };
            let entry = EntryRef { key: pin.key(), value: pin.value(), expires, written, uses };
            if writer.push(entry)? == Pushed::Full {
                break;
            }
        }
        writer.finish()?;
        Ok(())
    }

    /// All entries and their shards, the most used first. Those of shards are merged by their
    /// relative ranks.
    fn ranked(&self, now_ns: u64) -> Vec<(usize, Kept)> {
        let mut ranked = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let entries = shard.0.read().ranked(now_ns);
            let count = entries.len() as u64;
            let with_rank = |(kept, place): (Kept, u64)| ((place << 32) / count, number, kept);
            ranked.extend(entries.into_iter().zip(0..).map(with_rank));
        }
        ranked.sort_by_key(|(rank, ..)| *rank);
        ranked.into_iter().map(|(_, shard, kept)| (shard, kept)).collect()
    }
}

/// The seconds at which an entry was written; 0 stands for "not noted".
pub(super) fn seconds_since_epoch(time: SystemTime) -> u32 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
