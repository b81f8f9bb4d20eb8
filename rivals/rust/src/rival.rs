//! Rivals as subjects of the laboratory.

use std::hash::BuildHasher;

use haypile_measure::subject::{Cause, Subject, SubjectError, Worker};

use crate::map::PlainMap;
use crate::shared::SharedCache;

/// Opens a cache, or says why not.
type Open<C> = Box<dyn Fn() -> Result<C, String>>;

/// A cache that any number of threads may use at once.
pub(crate) struct Rival<C> {
    name: &'static str,
    version: &'static str,
    open: Open<C>,
    cache: C,
    /// Capacities of the cache that differ from the bytes of the job, by name.
    counts: Vec<(&'static str, u64)>,
}

impl<C: SharedCache> Rival<C> {
    pub(crate) fn new(
        name: &'static str,
        version: &'static str,
        open: impl Fn() -> Result<C, String> + 'static,
    ) -> Result<Self, SubjectError> {
        let cache = open().map_err(SubjectError::open(name))?;
        Ok(Self { name, version, open: Box::new(open), cache, counts: Vec::new() })
    }

    /// Adds a number that the rival states in its results.
    pub(crate) fn with_count(mut self, name: &'static str, number: u64) -> Self {
        self.counts.push((name, number));
        self
    }
}

impl<C: SharedCache> Subject for Rival<C> {
    fn version(&self) -> String {
        self.version.to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let worker = || User { cache: &self.cache, scratch: C::Scratch::default() };
        Ok((0..threads).map(|_| Box::new(worker()) as Box<dyn Worker + Send>).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.cache = (self.open)().map_err(SubjectError::open(self.name))?;
        Ok(())
    }

    fn entries(&mut self) -> Option<u64> {
        self.cache.entries()
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        let mut counts = self.counts.clone();
        counts.extend(self.cache.counts());
        counts
    }
}

/// One of the threads.
struct User<'a, C: SharedCache> {
    cache: &'a C,
    scratch: C::Scratch,
}

impl<C: SharedCache> Worker for User<'_, C> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        Ok(self.cache.get(&mut self.scratch, key, |value| copy(value, buffer)))
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        self.cache.set(key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        self.cache.delete(&mut self.scratch, key);
        Ok(true)
    }
}

/// A map that one thread uses, without a lock.
pub(crate) struct Alone<S> {
    version: &'static str,
    open: Box<dyn Fn() -> PlainMap<S>>,
    map: PlainMap<S>,
}

impl<S: BuildHasher + Send> Alone<S> {
    pub(crate) fn new(version: &'static str, open: impl Fn() -> PlainMap<S> + 'static) -> Self {
        Self { version, map: open(), open: Box::new(open) }
    }
}

impl<S: BuildHasher + Send> Subject for Alone<S> {
    fn version(&self) -> String {
        self.version.to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        if threads > 1 {
            let subject = "hashmap".to_owned();
            return Err(SubjectError::Threads { subject, limit: 1, threads });
        }
        Ok(vec![Box::new(&mut self.map)])
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.map = (self.open)();
        Ok(())
    }

    fn entries(&mut self) -> Option<u64> {
        Some(self.map.entries())
    }
}

impl<S: BuildHasher> Worker for &mut PlainMap<S> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        Ok(self.get(key).map(|value| copy(value, buffer)).is_some())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        PlainMap::set(self, key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        Ok(PlainMap::delete(self, key))
    }
}

/// Copies a value out; the allocation stays.
#[inline]
fn copy(value: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(value);
}
