//! The store that compresses values for another store.

use std::sync::Arc;

use super::Compression;
use super::codec::Codec;
use super::format::{
    NoMemory, Undecoded, WRAP_BYTES, decode_in_place, encode, is_marked, reserve, wrap,
};
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::pinned::Pinned;
use crate::size::ByteSize;
use crate::stats::{Event, EventCounters, LevelStats, Stats};
use crate::store::{COMPARE_ATTEMPTS, Hit, Limits, Store, allocate};
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Written};

/// A store that compresses values where that saves space; see the [module documentation](super).
///
/// Its limit on values is that of the inner store less five bytes, before compression: whether a
/// value is accepted does not depend on its content. Its bytes are those of the inner store, after
/// compression. A pinned value is a copy if it is compressed. A reservation buffers the value until
/// it is committed, if it is long enough to be compressed.
#[derive(Debug)]
pub struct CompressedStore {
    inner: Arc<dyn Store>,
    compression: Compression,
    min_bytes: u64,
    /// The longest value that the inner store accepted when it was opened. It may have shrunk
    /// since, and still hold longer values that fit because they are compressed.
    opened_limit_bytes: u64,
    /// Events that the inner store has not counted, and that the users of this store have to see.
    added: EventCounters,
    /// Events that the inner store has counted, and that the users of this store must not see.
    hidden: EventCounters,
}

impl CompressedStore {
    /// The default of the option `compress_min=`, the length in bytes from which values are
    /// compressed. Shorter values contain little repetition, and the header costs a part of what is
    /// saved.
    pub const DEFAULT_MIN_BYTES: u64 = 256;

    /// The smallest allowed threshold, in bytes, from which values are compressed. It is above the
    /// length of a counter, which must stay unchanged.
    pub const MIN_MIN_BYTES: u64 = 64;

    /// Wraps `inner`, and compresses values of at least `min_bytes`. A threshold below
    /// [`MIN_MIN_BYTES`](Self::MIN_MIN_BYTES) is raised to it.
    pub fn new(inner: Arc<dyn Store>, compression: Compression, min_bytes: u64) -> Self {
        let min_bytes = min_bytes.max(Self::MIN_MIN_BYTES);
        let opened_limit_bytes = inner.limits().max_value_bytes;
        Self {
            inner,
            compression,
            min_bytes,
            opened_limit_bytes,
            added: EventCounters::default(),
            hidden: EventCounters::default(),
        }
    }

    fn limit_bytes(&self) -> u64 {
        self.inner.limits().max_value_bytes.saturating_sub(WRAP_BYTES as u64)
    }

    fn check_value(&self, value_bytes: usize) -> Result<()> {
        let (value_bytes, limit_bytes) = (value_bytes as u64, self.limit_bytes());
        if value_bytes <= limit_bytes {
            return Ok(());
        }
        Err(Error::ValueTooLarge { value_bytes, limit_bytes, store: self.describe() })
    }

    /// Returns the longest value that a stored length is believed to have.
    fn read_limit_bytes(&self) -> u64 {
        self.opened_limit_bytes.max(self.limit_bytes())
    }

    fn out_of_memory(&self, NoMemory(bytes): NoMemory) -> Error {
        Error::OutOfMemory { bytes, store: self.describe() }
    }

    /// Calls `write` with the stored form of `value`.
    fn encoded<R>(&self, value: &[u8], write: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        if (value.len() as u64) < self.min_bytes && !is_marked(value) {
            return write(value);
        }
        Codec::with(|codec| {
            let mut room = std::mem::take(&mut codec.scratch);
            let form = encode(value, self.compression, self.min_bytes, codec, &mut room);
            let result = match form {
                Ok(form) => write(form.unwrap_or(value)),
                Err(error) => Err(self.out_of_memory(error)),
            };
            codec.scratch = room;
            result
        })
    }

    /// Returns whether a value that was found can be used, and deletes its entry if it is damaged.
    fn judge(&self, key: &[u8], hit: Hit, decoded: Result<(), Undecoded>) -> Result<bool> {
        match decoded {
            Ok(()) => Ok(true),
            Err(Undecoded::NoMemory(error)) => Err(self.out_of_memory(error)),
            #[cfg(not(all(feature = "lz4", feature = "zstd")))]
            Err(Undecoded::Absent(method)) => {
                Err(Error::MissingFeature { feature: method.name(), store: self.describe() })
            }
            Err(Undecoded::Corrupt) => {
                self.hidden.add(Event::Hit);
                self.added.add(Event::Miss);
                self.added.add(Event::Corrupt);
                // Kept, it would block writes that need an absent key. A newer value of another
                // writer stays, if versions tell it from this one. If deleting fails, or the store
                // cannot compare versions, the read is still a miss.
                let deleted = match hit.version {
                    Some(version) => self.inner.delete_version(key, version),
                    None => self.inner.delete(key),
                };
                if let Ok(deleted) = deleted {
                    self.hidden.add(if deleted { Event::Delete } else { Event::DeleteMiss });
                }
                Ok(false)
            }
        }
    }

    /// Decodes a value in the buffer that it was read into, and returns whether there is one;
    /// otherwise empties the buffer.
    fn decoded_in_place(&self, key: &[u8], hit: Hit, buffer: &mut Vec<u8>) -> Result<bool> {
        if !is_marked(buffer) {
            return Ok(true);
        }
        let limit_bytes = self.read_limit_bytes();
        let decoded = Codec::with(|codec| {
            let mut room = std::mem::take(&mut codec.scratch);
            let decoded = decode_in_place(buffer, limit_bytes, codec, &mut room);
            codec.scratch = room;
            decoded
        });
        if decoded.is_err() {
            buffer.clear();
        }
        self.judge(key, hit, decoded)
    }

    /// Returns the counts of `inner` as they appear to the users of this store.
    fn seen_from_here(&self, inner: &Stats) -> Stats {
        let hidden = self.hidden.stats();
        let mut seen = inner.clone();
        self.added.add_to(&mut seen);
        for event in Event::ALL {
            seen[event] = seen[event].saturating_sub(hidden[event]);
        }
        seen
    }
}

/// Returns the URL of a store with this compression, or the store's own if that has several levels.
fn with_options(inner: CacheUrl, compression: Compression, min_bytes: u64) -> CacheUrl {
    let [level] = inner.levels() else { return inner };
    let level = level.clone().with_option("compress", compression.to_string());
    let level =
        level.and_then(|level| level.with_option("compress_min", ByteSize(min_bytes).to_string()));
    level.map_or(inner, CacheUrl::from)
}

impl Layer for CompressedStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    /// Values are compressed here, and not once more by the program that opens the store.
    fn compression(&self) -> Option<Compression> {
        None
    }

    fn loaded(&self, key: &[u8], buffer: &mut Vec<u8>, hit: Option<Hit>) -> Result<Option<Hit>> {
        let Some(hit) = hit else { return Ok(None) };
        Ok(self.decoded_in_place(key, hit, buffer)?.then_some(hit))
    }

    fn pinned<'a>(&'a self, key: &[u8], found: Option<Pinned<'a>>) -> Result<Option<Pinned<'a>>> {
        let Some(pinned) = found else { return Ok(None) };
        if !is_marked(&pinned) {
            return Ok(Some(pinned));
        }
        // Copied before it is decoded: what damages a shared mapping must not reach a decoder in between.
        let mut value = Vec::new();
        reserve(&mut value, pinned.len()).map_err(|error| self.out_of_memory(error))?;
        value.extend_from_slice(&pinned);
        let hit = pinned.hit();
        drop(pinned);
        Ok(self.decoded_in_place(key, hit, &mut value)?.then(|| Pinned::copied(value, hit)))
    }

    fn url(&self) -> CacheUrl {
        // Not cached, because the size can change.
        with_options(self.inner.url(), self.compression, self.min_bytes)
    }

    fn limits(&self) -> Limits {
        Limits { max_value_bytes: self.limit_bytes(), ..self.inner.limits() }
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.check_value(value.len())?;
        self.encoded(value, |stored| self.inner.set(key, stored, options))
    }

    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        self.check_value(value.len())?;
        self.encoded(value, |stored| self.inner.set_in_groups(key, stored, options, groups))
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.check_value(value_bytes)?;
        let short = (value_bytes as u64) < self.min_bytes;
        // The compressed length of a long value is not known yet. The inner store checks the
        // rest.
        let inner = self.inner.reserve(key, if short { value_bytes } else { 0 }, options)?;
        let (key, options) = (key.into(), *options);
        if short {
            return Ok(Box::new(Short { store: self, key, options, inner }));
        }
        drop(inner);
        let mut value = allocate(self, value_bytes)?;
        value.resize(value_bytes, 0);
        Ok(Box::new(Long { store: self, key, options, value }))
    }

    /// Compares decompressed values: the same value has several stored forms, by method, level and
    /// threshold of its writer. Where there can be only one, the inner store compares it.
    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        if (expected.len() as u64) < Self::MIN_MIN_BYTES && !is_marked(expected) {
            return self.inner.compare_and_delete(key, expected);
        }
        let (mut stored, mut value) = (Vec::new(), Vec::new());
        for _ in 0..COMPARE_ATTEMPTS {
            let hit = self.inner.get_into(key, &mut stored)?;
            let is_there = match hit {
                Some(hit) => {
                    value.clear();
                    reserve(&mut value, stored.len()).map_err(|error| self.out_of_memory(error))?;
                    value.extend_from_slice(&stored);
                    self.decoded_in_place(key, hit, &mut value)?
                }
                None => false,
            };
            // It is not a read to the users of this store.
            self.hidden.add(if is_there { Event::Hit } else { Event::Miss });
            if !is_there || value != expected {
                self.added.add(Event::DeleteMiss);
                return Ok(false);
            }
            if self.inner.compare_and_delete(key, &stored)? {
                return Ok(true);
            }
            // It was written since, perhaps with an equal value in another form.
            self.hidden.add(Event::DeleteMiss);
        }
        Err(Error::Busy { store: self.describe(), process: None })
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        // Each entry is either refused here or passed to the inner store.
        let forms: Vec<Result<Option<Vec<u8>>>> = entries
            .iter()
            .map(|(_, value, _)| {
                self.check_value(value.len())?;
                self.encoded(value, |stored| {
                    if std::ptr::eq(stored, *value) {
                        return Ok(None);
                    }
                    let mut form = Vec::new();
                    reserve(&mut form, stored.len()).map_err(|error| self.out_of_memory(error))?;
                    form.extend_from_slice(stored);
                    Ok(Some(form))
                })
            })
            .collect();
        let accepted: Vec<(&[u8], &[u8], SetOptions)> = entries
            .iter()
            .zip(&forms)
            .filter_map(|((key, value, options), form)| {
                let form = form.as_ref().ok()?;
                Some((*key, form.as_deref().unwrap_or(*value), *options))
            })
            .collect();
        let mut written = self.inner.set_many(&accepted).into_iter();
        let result = |form: Result<Option<Vec<u8>>>| {
            form.and_then(|_| written.next().expect("a result for each entry"))
        };
        forms.into_iter().map(result).collect()
    }

    fn stats(&self) -> Result<Stats> {
        Ok(self.seen_from_here(&self.inner.stats()?))
    }

    fn stats_by_level(&self) -> Result<Vec<LevelStats>> {
        let mut levels = self.inner.stats_by_level()?;
        if let Some(front) = levels.first_mut() {
            front.stats = self.seen_from_here(&front.stats);
        }
        if let [only] = &mut levels[..] {
            only.url = Layer::url(self);
        }
        Ok(levels)
    }
}

/// A value too short to be compressed, written in place.
struct Short<'a> {
    store: &'a CompressedStore,
    key: Box<[u8]>,
    options: SetOptions,
    inner: Box<dyn Reservation + 'a>,
}

impl Reservation for Short<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.inner.buffer()
    }

    fn commit(mut self: Box<Self>) -> Result<Written> {
        let mut room = Vec::new();
        let wrapped = wrap(self.inner.buffer(), &mut room);
        match wrapped.map_err(|error| self.store.out_of_memory(error))? {
            None => self.inner.commit(),
            Some(stored) => self.store.inner.set(&self.key, stored, &self.options),
        }
    }
}

/// A value that is encoded when it is complete.
struct Long<'a> {
    store: &'a CompressedStore,
    key: Box<[u8]>,
    options: SetOptions,
    value: Vec<u8>,
}

impl Reservation for Long<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.value
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        Store::set(self.store, &self.key, &self.value, &self.options)
    }
}
