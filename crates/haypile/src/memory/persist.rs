//! The option `persist=`: a store that keeps its entries from one process to the next.
//!
//! The entries are saved to a [snapshot](super::snapshot) when the store is closed or dropped, and
//! by `flush(Durability::Disk)`. They are loaded when the store is opened, either before it serves
//! or while it serves.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use haypile_policy::rules::memory::charge;

use super::contents::{Kept, Load};
use super::read::PinnedRecord;
use super::record::{Draft, NEVER_IN_GROUPS};
use super::snapshot::{
    EntryRef, Pushed, ReadOptions, SnapshotError, SnapshotReader, SnapshotWriter, WriteOptions,
};
use super::{MemoryStore, Policy};
use crate::clock::nanos;
use crate::error::{Error, Result};
use crate::fork;
use crate::groups;
use crate::mutant;
use crate::process;
use crate::stats::Loading;
use crate::store::Store;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::writers::Writers;

/// Options of a snapshot file that keeps a memory store's entries until the next process opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersistOptions {
    /// The path of the snapshot file. The file is replaced as a whole, so that a crash leaves either the
    /// old or the new one.
    pub path: PathBuf,
    /// The bound on the snapshot file in bytes; `None` means no bound. The most used entries are
    /// written first.
    pub max_bytes: Option<u64>,
    /// The age above which entries are left out of the snapshot; `None` means no limit.
    pub max_age: Option<Duration>,
    /// Whether the store serves requests while it loads the snapshot that a previous process has
    /// saved. Loading does not undo writes and deletions in the meantime. Saving and closing wait
    /// until all is loaded. A store that is dropped before is not saved: the file stays as it was,
    /// and values written into the store are lost.
    pub in_background: bool,
    /// Whether to use a snapshot file whose owner is neither the effective user of this process nor
    /// root, or that users other than its owner can write. Otherwise the store begins empty with a
    /// [warning](Store::warnings), saving and closing are an error, and the file stays as it is.
    pub allow_shared: bool,
}

impl PersistOptions {
    /// Returns options that keep the whole store in this snapshot file, and load it before the
    /// store serves requests.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_bytes: None,
            max_age: None,
            in_background: false,
            allow_shared: false,
        }
    }

    /// Sets the bound on the snapshot file in bytes.
    #[must_use]
    pub fn max_bytes(self, max_bytes: impl Into<Option<u64>>) -> Self {
        Self { max_bytes: max_bytes.into(), ..self }
    }

    /// Sets the age above which entries are left out of the snapshot.
    #[must_use]
    pub fn max_age(self, max_age: impl Into<Option<Duration>>) -> Self {
        Self { max_age: max_age.into(), ..self }
    }

    /// Sets whether the store serves requests while it loads the snapshot.
    #[must_use]
    pub fn in_background(self, in_background: bool) -> Self {
        Self { in_background, ..self }
    }

    /// Sets whether to use a snapshot file even if other users can write it.
    #[must_use]
    pub fn allow_shared(self, allow_shared: bool) -> Self {
        Self { allow_shared, ..self }
    }
}

/// The state of loading a memory store's snapshot file, and of saving it.
#[derive(Debug)]
pub(super) struct Persistence {
    options: PersistOptions,
    /// The lock that is held while a snapshot is written, and by closing from the refusal of all
    /// operations until the entries are deleted, because deleted entries cannot be saved.
    saving: Mutex<()>,
    /// The lock that is held until the snapshot is loaded, because a snapshot written before would
    /// lack the rest.
    loading: Mutex<()>,
    /// Whether the store lacks a part of the snapshot: loading has begun and not ended.
    is_part: AtomicBool,
    warnings: Mutex<Vec<String>>,
    /// The times of the loading, once it has ended.
    loaded: Mutex<Option<Loading>>,
    /// The writers of the snapshot that was loaded.
    writers: Mutex<Option<Writers>>,
    /// The process that opened the store, and saves it.
    process: u64,
}

impl Persistence {
    /// Creates the state of loading and saving a snapshot file with these options; returns an error
    /// for a file that could not be written later.
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
            loaded: Mutex::new(None),
            writers: Mutex::new(None),
            process: process::generation(),
        })
    }

    /// Whether this process is a child of the one that opened the store. The file is the parent's, and the
    /// thread that loads it does not exist here.
    fn is_inherited(&self) -> bool {
        self.process != process::generation()
    }

    /// Whether the store must record when each entry was written, because the snapshot leaves out
    /// old entries.
    pub(super) fn needs_age(&self) -> bool {
        self.options.max_age.is_some()
    }

    /// Whether a part of the snapshot was not loaded, so that saving the store would lose it.
    pub(super) fn is_part(&self) -> bool {
        self.is_part.load(Ordering::Acquire) && !mutant::is_on("part-of-a-store-is-saved")
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    /// Returns the users that can have written the snapshot that was loaded, if users other than this one may have:
    /// without `allow_shared` it is refused. Waits for the end of loading.
    pub(super) fn writers(&self) -> Vec<Writers> {
        if !self.options.allow_shared || self.is_inherited() {
            return Vec::new();
        }
        drop(self.loading.lock());
        self.writers.lock().iter().cloned().collect()
    }

    pub(super) fn loaded(&self) -> Option<Loading> {
        *self.loaded.lock()
    }

    fn warn(&self, error: &SnapshotError) {
        log::warn!("{error}");
        let _inside = fork::ForkGate::enter();
        self.warnings.lock().push(error.to_string());
    }
}

impl<P: Policy + 'static> MemoryStore<P> {
    /// Loads the store's snapshot, if there is one; in a thread of its own if the options ask for
    /// it.
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
            let persistence =
                store.persistence.as_ref().expect("the caller checked that it has one");
            let _loading = persistence.loading.lock();
            // A caller that waits for the end of loading finds the lock taken from here on.
            let _ = locked.send(());
            // A store that only this thread holds can never be used.
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
    /// Loads the snapshot, if there is one, while the store is wanted. Parts that cannot be read
    /// become a warning.
    fn load(&self, persistence: &Persistence, is_wanted: impl Fn() -> bool) {
        persistence.is_part.store(true, Ordering::Release);
        let (now, now_ns) = (self.clock.wall(), self.clock.now_ns());
        let PersistOptions { path, allow_shared, .. } = &persistence.options;
        let (max_bytes, allow_shared) = (self.capacity_bytes(), *allow_shared);
        let begin = Instant::now();
        let (mut loading, mut is_whole) = (Loading::default(), true);
        match SnapshotReader::open(path, ReadOptions { now, max_bytes, charge, allow_shared }) {
            Ok(mut reader) => {
                {
                    let _inside = fork::ForkGate::enter();
                    *persistence.writers.lock() = Some(reader.writers());
                }
                loop {
                    if !is_wanted() {
                        return;
                    }
                    match reader.next_entry() {
                        Ok(Some(entry)) => {
                            let _inside = fork::ForkGate::enter();
                            if self.load_entry(entry, now, now_ns).is_err() {
                                // The store was closed in the meantime, or memory is short.
                                is_whole = false;
                                break;
                            }
                            loading.entries += 1;
                        }
                        Ok(None) => break,
                        Err(error) => persistence.warn(&error),
                    }
                }
                let (read, checked) = reader.spent();
                (loading.read_ns, loading.check_ns) = (nanos(read), nanos(checked));
                loading.insert_ns =
                    nanos(begin.elapsed().saturating_sub(read).saturating_sub(checked));
                let _inside = fork::ForkGate::enter();
                *persistence.loaded.lock() = is_whole.then_some(loading);
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => persistence.warn(&error),
        }
        let _inside = fork::ForkGate::enter();
        for shard in &self.shards {
            shard.0.write().end_loading();
        }
        persistence.is_part.store(false, Ordering::Release);
    }

    fn load_entry(&self, entry: EntryRef<'_>, now: SystemTime, now_ns: u64) -> Result<()> {
        let fingerprint = self.hasher.fingerprint(entry.key);
        let mut marks = Vec::new();
        if !entry.marks.is_empty() {
            self.groups.begin().map_err(|bytes| self.out_of_memory(bytes))?;
            groups::renew(entry.marks, &mut marks);
        }
        let draft = Draft::marked(fingerprint, entry.key, entry.value, &marks);
        let draft = draft.ok_or_else(|| self.out_of_memory(entry.value.len()))?;
        let expires_ns = entry.expires.map_or(u64::MAX, |expires| {
            now_ns.saturating_add(expires.duration_since(now).map_or(0, nanos))
        });
        let written_s = seconds_since_epoch(entry.written);
        let shard = self.shard_of(fingerprint);
        let mut load = Load { draft, expires_ns, written_s, uses: entry.uses, now_ns, room: None };
        let mut contents = self.write(shard)?;
        if let Some(bytes) = contents.lacks_memory_for_new(expires_ns < u64::MAX) {
            drop(contents);
            return Err(self.out_of_memory(bytes));
        }
        while let Some((again, bytes)) = contents.load(load, &self.pool) {
            drop(contents);
            if self.check_sizes(entry.key, entry.value.len() + marks.len()).is_err() {
                // The store has shrunk since loading began.
                return Ok(());
            }
            contents = self.make_room(shard, bytes)?;
            load = again;
        }
        Ok(())
    }

    /// Waits until the store's snapshot is loaded, then saves the store's entries to the snapshot
    /// file.
    pub(super) fn save(&self) -> Result<()> {
        let Some(persistence) = &self.persistence else {
            return Err(Error::Unsupported {
                operation: "flush to disk without persist=",
                store: self.describe(),
            });
        };
        if persistence.is_inherited() {
            return Err(Error::Unsupported {
                operation: "flush to disk what its parent process saves",
                store: self.describe(),
            });
        }
        drop(persistence.loading.lock());
        let _saving = persistence.saving.lock();
        // The store may have been closed during the wait, and be empty.
        drop(self.read(0)?);
        self.write_snapshot(persistence)
    }

    /// Waits until the store's snapshot is loaded, then saves its entries to the snapshot file and
    /// closes the store. A forked child saves nothing: its copy is not what the parent will save.
    pub(super) fn save_and_close(&self, persistence: &Persistence) -> Result<()> {
        if persistence.is_inherited() {
            self.refuse_all();
            self.forget_all();
            return Ok(());
        }
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
            // Pins one entry at a time, because pinned memory is not available for new entries.
            let Some(pin) = self.shards[shard].0.read().pin_kept(&kept) else { continue };
            let entry = PinnedRecord::new(pin, &self.pool);
            let (pin, uses) = (entry.pin(), kept.uses);
            let expires_ns = pin.expires_ns();
            let expires = (expires_ns < NEVER_IN_GROUPS)
                .then(|| now + Duration::from_nanos(expires_ns.saturating_sub(now_ns)));
            let written = match pin.written_s() {
                0 => now,
                written_s => SystemTime::UNIX_EPOCH + Duration::from_secs(written_s.into()),
            };
            let entry = EntryRef {
                key: pin.key(),
                value: pin.value(),
                marks: pin.marks(),
                expires,
                written,
                uses,
            };
            if writer.push(entry)? == Pushed::Full {
                break;
            }
        }
        writer.finish()?;
        Ok(())
    }

    /// Returns all entries with their shards, the most used first. The shards' rankings are merged
    /// by relative rank.
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

/// Converts the time at which an entry was written to seconds of the Unix epoch; 0 means "not
/// recorded".
pub(super) fn seconds_since_epoch(time: SystemTime) -> u32 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
