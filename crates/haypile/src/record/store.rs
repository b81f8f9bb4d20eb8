//! The store that records its operations.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::open::Naming;
use super::recorder::Recorder;
use super::{RecordOptions, RecordingState};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::open::OpenError;
use crate::pinned::Pinned;
use crate::store::{Durability, Hit, Store};
use crate::ttl::Ttl;
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Version, WriteMode, Written};
use haypile_policy::recording::{Kind, RecordedEntry};

/// A store that forwards each operation to another one and records it; see the [module
/// documentation](super).
pub struct RecordingStore {
    inner: Arc<dyn Store>,
    recorder: Recorder,
    /// The options that its URL adds to that of `inner`.
    naming: Naming,
}

impl RecordingStore {
    /// Wraps the store `inner`, and records its operations from now on. The file of the recording
    /// is created at once.
    ///
    /// The URL is that of `inner`; a [`Registry`](crate::Registry) opens stores whose URL has the
    /// recording options.
    ///
    /// # Errors
    ///
    /// [`OpenError::Recording`] if the file cannot be created.
    pub fn new(
        inner: Arc<dyn Store>,
        options: RecordOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        Self::named(inner, options, clock, Naming::default())
    }

    pub(super) fn named(
        inner: Arc<dyn Store>,
        options: RecordOptions,
        clock: Arc<dyn Clock>,
        naming: Naming,
    ) -> Result<Self, OpenError> {
        let path = options.path.clone();
        match Recorder::create(options, clock) {
            Ok(recorder) => Ok(Self { inner, recorder, naming }),
            Err(source) => Err(OpenError::Recording { path, source }),
        }
    }

    /// Returns the state of the recording of operations (`record=`): in progress, ended because the
    /// file is full or the cache closed, or failed.
    pub fn state(&self) -> RecordingState {
        self.recorder.state()
    }

    /// Returns the path of the file to which operations are recorded.
    pub fn path(&self) -> PathBuf {
        self.recorder.path()
    }

    /// Returns the number of bytes written to the file of recorded operations so far.
    pub fn written_bytes(&self) -> u64 {
        self.recorder.written_bytes()
    }

    fn read(&self, key: &[u8], value_bytes: Option<usize>) {
        let kind = if value_bytes.is_some() { Kind::Hit } else { Kind::Miss };
        let size_bytes = value_bytes.map(|bytes| bytes as u64);
        self.recorder.record(&RecordedEntry { kind, effect: true, key, size_bytes, ttl_us: None });
    }

    fn wrote(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
        result: &Result<Written>,
    ) {
        let (kind, effect) = match (result, options.mode) {
            // A larger store would accept it, whatever the condition.
            (Err(Error::ValueTooLarge { .. }), _) => (Kind::Set, false),
            (Err(_), _) => return,
            (Ok(written), mode) => (kind(mode), written.is_stored()),
        };
        let (size_bytes, ttl_us) = (Some(value_bytes as u64), ttl_us(options.ttl));
        self.recorder.record(&RecordedEntry { kind, effect, key, size_bytes, ttl_us });
    }

    fn deleted(&self, key: &[u8], result: &Result<bool>) {
        if let Ok(effect) = *result {
            self.plain(Kind::Delete, effect, key);
        }
    }

    /// Records a deletion under a condition, if the condition held: a simulation would otherwise delete an
    /// entry that stays.
    fn deleted_if(&self, key: &[u8], result: &Result<bool>) {
        if let Ok(true) = result {
            self.plain(Kind::Delete, true, key);
        }
    }

    fn counted(&self, kind: Kind, key: &[u8], result: &Result<Option<u64>>) {
        if let Ok(number) = *result {
            let digits = |number: u64| u64::from(number.checked_ilog10().unwrap_or(0) + 1);
            let size_bytes = number.map(digits);
            let effect = number.is_some();
            self.recorder.record(&RecordedEntry { kind, effect, key, size_bytes, ttl_us: None });
        }
    }

    fn plain(&self, kind: Kind, effect: bool, key: &[u8]) {
        self.recorder.record(&RecordedEntry { kind, effect, key, size_bytes: None, ttl_us: None });
    }
}

fn kind(mode: WriteMode) -> Kind {
    match mode {
        WriteMode::Set => Kind::Set,
        // What is computed after a miss, and perhaps refused.
        WriteMode::Add | WriteMode::Leased(_) => Kind::Add,
        WriteMode::Replace => Kind::Replace,
        WriteMode::Cas(_) => Kind::Cas,
    }
}

/// Converts a TTL to microseconds, rounded up; 0 means never, `None` no TTL of its own.
fn ttl_us(ttl: Ttl) -> Option<u64> {
    match ttl {
        Ttl::Default => None,
        Ttl::Never => Some(0),
        Ttl::After(duration) => {
            Some(u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX))
        }
    }
}

impl fmt::Debug for RecordingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingStore")
            .field("inner", &self.inner)
            .field("path", &self.path())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Layer for RecordingStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn loaded(&self, key: &[u8], buffer: &mut Vec<u8>, hit: Option<Hit>) -> Result<Option<Hit>> {
        self.read(key, hit.map(|_| buffer.len()));
        Ok(hit)
    }

    fn pinned<'a>(&'a self, key: &[u8], found: Option<Pinned<'a>>) -> Result<Option<Pinned<'a>>> {
        self.read(key, found.as_ref().map(|value| value.len()));
        Ok(found)
    }

    fn url(&self) -> CacheUrl {
        self.naming.url(&*self.inner)
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        let result = self.inner.set(key, value, options);
        self.wrote(key, value.len(), options, &result);
        result
    }

    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        let result = self.inner.set_in_groups(key, value, options, groups);
        self.wrote(key, value.len(), options, &result);
        result
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        match self.inner.reserve(key, value_bytes, options) {
            Ok(inner) => {
                let (key, options) = (key.into(), *options);
                Ok(Box::new(RecordingReservation { store: self, inner, key, options }))
            }
            Err(error) => {
                let result = Err(error);
                self.wrote(key, value_bytes, options, &result);
                result.map(|_| unreachable!("the result is an error"))
            }
        }
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        let result = self.inner.delete(key);
        self.deleted(key, &result);
        result
    }

    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        let result = self.inner.delete_version(key, version);
        self.deleted_if(key, &result);
        result
    }

    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        let result = self.inner.compare_and_delete(key, expected);
        self.deleted_if(key, &result);
        result
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        let effect = self.inner.touch(key, ttl)?;
        let (kind, ttl_us) = (Kind::Touch, ttl_us(ttl));
        self.recorder.record(&RecordedEntry { kind, effect, key, size_bytes: None, ttl_us });
        Ok(effect)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        let result = self.inner.incr(key, delta);
        self.counted(Kind::Incr, key, &result);
        result
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        let result = self.inner.decr(key, delta);
        self.counted(Kind::Decr, key, &result);
        result
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        let results = self.inner.set_many(entries);
        for ((key, value, options), result) in entries.iter().zip(&results) {
            self.wrote(key, value.len(), options, result);
        }
        results
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        let results = self.inner.delete_many(keys);
        for (key, result) in keys.iter().zip(&results) {
            self.deleted(key, result);
        }
        results
    }

    fn clear(&self) -> Result<()> {
        self.inner.clear()?;
        self.plain(Kind::Clear, true, &[]);
        Ok(())
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        self.recorder.flush();
        self.inner.flush(durability)
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.inner.warnings();
        let path = self.path();
        match self.state() {
            RecordingState::Active | RecordingState::Closed => {}
            RecordingState::Full => warnings.push(format!(
                "the recording {} is full; later operations are not in it; raise record_max",
                path.display()
            )),
            RecordingState::Failed { error } => warnings.push(format!(
                "the recording {} has ended: {error}; later operations are not in it",
                path.display()
            )),
        }
        warnings
    }

    fn close(&self) -> Result<()> {
        let result = self.inner.close();
        self.recorder.close();
        result
    }
}

struct RecordingReservation<'a> {
    store: &'a RecordingStore,
    inner: Box<dyn Reservation + 'a>,
    key: Box<[u8]>,
    options: SetOptions,
}

impl Reservation for RecordingReservation<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.inner.buffer()
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        let Self { store, mut inner, key, options } = *self;
        let value_bytes = inner.buffer().len();
        let result = inner.commit();
        store.wrote(&key, value_bytes, &options, &result);
        result
    }
}
