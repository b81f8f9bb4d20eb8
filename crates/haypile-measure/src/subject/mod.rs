//! A cache under test, Haypile's own or a rival's.
//!
//! A runner has a table of [`Subjects`]; it opens one of them by its name and gives its
//! [`Worker`]s the operations of a job. A subject is told from others by its name alone: nothing
//! that measures knows what is behind it.

mod again;
mod copy;
mod error;
mod mock;
mod noop;
mod server;
mod spec;
mod store;
mod table;

use std::sync::Arc;

pub use error::{Cause, SubjectError};
pub use spec::{SubjectSpec, split_list};
pub use store::{Servers, StoreSubject, complete};
pub use table::{Check, Kind, Open, Subjects, UNCHECKED, is_of_engine};

use crate::job::JobOrigin;
use crate::meter::{Meter, Residency};

/// The capacity that a subject (cache under test) is opened with, and its number of processes. A subject uses the
/// capacity in bytes, or in entries if it counts these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The cache's capacity in bytes, at least of keys and values; caches differ in what else they count.
    pub capacity_bytes: u64,
    /// The cache's capacity in entries: the number of entries of mean size in `capacity_bytes`.
    pub capacity_entries: u64,
    /// The number of processes that use the cache at once: at least 1.
    pub processes: u32,
    /// The state of the working directory before the subject (cache) is opened in it: without a cache, or with an
    /// existing one.
    pub found: Found,
    /// The HTTP origin server of a subject that is an HTTP cache; `None` for other caches.
    pub origin: Option<JobOrigin>,
}

impl Room {
    /// Creates the settings for opening a new cache of a capacity in one process.
    pub fn new(capacity_bytes: u64, capacity_entries: u64) -> Self {
        Self { capacity_bytes, capacity_entries, processes: 1, found: Found::Nothing, origin: None }
    }
}

/// The state of the working directory in which a cache is opened: empty, or with an existing cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No cache: a file under the subject's name is of an earlier job.
    Nothing,
    /// A cache that another process has left there, or uses there now.
    Cache,
}

/// A subject of measurements: a cache under test.
pub trait Subject {
    /// The version of the cache, as its makers write it.
    fn version(&self) -> String;

    /// The language that the cache is used from.
    fn language(&self) -> String {
        "rust".to_owned()
    }

    /// Those who use the cache, one for each thread. They are dropped before the next call.
    ///
    /// # Errors
    ///
    /// [`SubjectError::Threads`] if the cache cannot be used by that number of threads at once.
    fn workers(&mut self, threads: usize)
    -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError>;

    /// Replaces the cache by a new and empty one of the same kind. Timed where a job asks for it.
    ///
    /// # Errors
    ///
    /// [`SubjectError::Open`].
    fn fresh(&mut self) -> Result<(), SubjectError>;

    /// Removes all entries of the cache, which stays open.
    ///
    /// # Errors
    ///
    /// That it cannot, or what the cache said.
    fn clear(&mut self) -> Result<(), Cause> {
        Err("this cache cannot be cleared; it can only be replaced by a new one".into())
    }

    /// Writes everything to disk, so that a process that opens the cache later has it.
    ///
    /// # Errors
    ///
    /// That it cannot, or what the cache said.
    fn flush(&mut self) -> Result<(), Cause> {
        Err("this cache writes nothing to disk".into())
    }

    /// Closes the cache, drops its files from the system's memory and opens it again, so that what is
    /// read next comes from the disk. Returns the extent of its files and of what is still in memory.
    ///
    /// # Errors
    ///
    /// That it has no files, or what the cache or the system said.
    fn cool(&mut self) -> Result<Residency, Cause> {
        Err("this cache has no files that could be dropped from memory".into())
    }

    /// Whether it still loads, in the background, what it had when it was closed last.
    fn is_loading(&mut self) -> bool {
        false
    }

    /// The number of entries, if the cache can tell.
    fn entries(&mut self) -> Option<u64> {
        None
    }

    /// Numbers for the counts of the result, such as the capacity in the cache's own unit.
    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The number of the process that serves the cache, if the subject has started one: its
    /// processor time and its memory are the cache's too.
    fn server_pid(&self) -> Option<u32> {
        None
    }

    /// Whether the cache is still all there after the timed part: a server that was lost is no
    /// cache that misses.
    ///
    /// # Errors
    ///
    /// What was lost.
    fn check(&mut self) -> Result<(), Cause> {
        Ok(())
    }

    /// The meter that reads the clocks and the memory instead of the system: for tests.
    fn meter(&self) -> Option<Arc<dyn Meter>> {
        None
    }

    /// Whether it does nothing and only shows what measuring costs: then nothing is verified.
    fn pretends(&self) -> bool {
        false
    }
}

/// A user of a subject (cache under test) on one thread: its operations are timed, and so add as little as possible to
/// the cache's own.
pub trait Worker {
    /// Reads a key: replaces what is in `buffer` by its value and says that it hit, or leaves
    /// whatever it likes in it. The allocation of the buffer is to be reused.
    ///
    /// # Errors
    ///
    /// As in all of these: the cache's error. A miss is not an error.
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause>;

    /// Writes a value.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause>;

    /// Writes a value that expires after a second.
    fn set_expiring(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        let _ = (key, value);
        Err("this cache knows no time to live".into())
    }

    /// Reads a key, or has its value computed and writes it: by as few callers as the cache can
    /// manage. Without a method of its own a cache has no protection from a stampede, and everybody
    /// who misses computes.
    fn compute(
        &mut self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        compute: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), Cause> {
        if self.get_into(key, buffer)? {
            return Ok(());
        }
        buffer.clear();
        compute(buffer);
        self.set(key, buffer)
    }

    /// Deletes a key; says whether it was there, if the cache can tell, or else `true`.
    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause>;

    /// Reads keys at once and gives `found` the position of each and its value, in any order.
    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        let mut buffer = Vec::new();
        for (position, key) in keys.iter().enumerate() {
            let hit = self.get_into(key, &mut buffer)?;
            found(position, hit.then_some(&buffer));
        }
        Ok(())
    }
}
