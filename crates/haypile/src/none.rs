//! The scheme `none://`: a cache that never holds anything, the baseline of every experiment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::error::{Error, MAX_KEY_BYTES, Result};
use crate::groups;
use crate::lease::Lease;
use crate::open::{OpenError, Opener};
use crate::stats::{Event, EventCounters, Stats};
use crate::store::{Cursor, Durability, Hit, Limits, Page, Store, allocate, check_key};
use crate::ttl::Ttl;
use crate::url::{CacheUrl, Level, Place, ResolvedLevel, Scheme};
use crate::write::{Reservation, SetOptions, Version, WriteMode, Written};
use crate::writers::Writers;

/// The URL scheme `none`, which has no options of its own.
pub(crate) static SCHEME: Scheme = Scheme {
    name: "none",
    place: Place::Nowhere,
    idle: &[],
    options: &[],
    help: "never holds anything: the baseline of every experiment",
};

/// A store that accepts every write and retains nothing, so that every read is a miss.
///
/// Its statistics count reads as misses and writes as declined.
#[derive(Debug, Default)]
pub struct NoneStore {
    counters: EventCounters,
    closed: AtomicBool,
}

impl NoneStore {
    /// Returns a store that accepts every write and retains nothing, so that every read is a miss.
    pub fn new() -> Self {
        Self::default()
    }

    fn check(&self, key: &[u8]) -> Result<()> {
        self.check_open()?;
        check_key(self, key, MAX_KEY_BYTES)
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed { store: self.describe() });
        }
        Ok(())
    }
}

impl Store for NoneStore {
    fn url(&self) -> CacheUrl {
        Level::new(SCHEME.name).expect("the name of a scheme is one").into()
    }

    fn writers(&self) -> Vec<Writers> {
        Vec::new()
    }

    fn limits(&self) -> Limits {
        Limits { max_key_bytes: MAX_KEY_BYTES, max_value_bytes: u64::MAX, capacity_bytes: Some(0) }
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        self.check(key)?;
        self.counters.add(Event::Miss);
        Ok(None)
    }

    fn set(&self, key: &[u8], _value: &[u8], options: &SetOptions) -> Result<Written> {
        self.check(key)?;
        options.ttl.resolve(None)?;
        match options.mode {
            WriteMode::Set | WriteMode::Add | WriteMode::Leased(_) => {
                self.counters.add(Event::Set);
                Ok(Written::Stored)
            }
            WriteMode::Replace | WriteMode::Cas(_) => {
                self.counters.add(Event::Unmet);
                Ok(Written::Absent)
            }
        }
    }

    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        groups::check(self, groups)?;
        self.set(key, value, options)
    }

    fn invalidate(&self, group: &[u8]) -> Result<()> {
        groups::check(self, &[group])
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.check(key)?;
        options.ttl.resolve(None)?;
        let mut buffer = allocate(self, value_bytes)?;
        buffer.resize(value_bytes, 0);
        Ok(Box::new(NoneReservation { store: self, key: key.into(), options: *options, buffer }))
    }

    /// One lease is as good as another: no value is ever read.
    fn lease(&self, key: &[u8]) -> Result<Lease> {
        self.check(key)?;
        Ok(Lease::from_bytes([0; Lease::BYTES]))
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.check(key)?;
        self.counters.add(Event::DeleteMiss);
        Ok(false)
    }

    fn delete_version(&self, key: &[u8], _version: Version) -> Result<bool> {
        self.delete(key)
    }

    fn compare_and_delete(&self, key: &[u8], _expected: &[u8]) -> Result<bool> {
        self.delete(key)
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        ttl.resolve(None)?;
        self.check(key)?;
        self.counters.add(Event::TouchMiss);
        Ok(false)
    }

    fn incr(&self, key: &[u8], _delta: u64) -> Result<Option<u64>> {
        self.check(key)?;
        self.counters.add(Event::CountMiss);
        Ok(None)
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.incr(key, delta)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.check(key).map(|()| false)
    }

    fn clear(&self) -> Result<()> {
        self.check_open()
    }

    fn keys(&self, _from: Cursor, _limit: usize) -> Result<Page> {
        self.check_open().map(|()| Page::default())
    }

    fn len(&self) -> Result<u64> {
        self.check_open().map(|()| 0)
    }

    fn bytes(&self) -> Result<u64> {
        self.check_open().map(|()| 0)
    }

    fn stats(&self) -> Result<Stats> {
        let stats = self.counters.stats();
        Ok(Stats { declined: stats.sets, capacity_bytes: Some(0), ..stats })
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        self.check_open()?;
        match durability {
            Durability::Visible => Ok(()),
            Durability::Disk => {
                Err(Error::Unsupported { operation: "flush to disk", store: self.describe() })
            }
        }
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

struct NoneReservation<'a> {
    store: &'a NoneStore,
    key: Box<[u8]>,
    options: SetOptions,
    buffer: Vec<u8>,
}

impl Reservation for NoneReservation<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        self.store.set(&self.key, &self.buffer, &self.options)
    }
}

#[derive(Debug)]
pub(crate) struct NoneOpener;

impl Opener for NoneOpener {
    fn scheme(&self) -> &'static Scheme {
        &SCHEME
    }

    fn open(
        &self,
        _level: &ResolvedLevel,
        _clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(NoneStore::new()))
    }
}
