//! A cache that is tortured.

use super::Orders;

/// A function that opens the cache that the arguments of a torture process name.
pub type OpenTarget<'a> = &'a dyn Fn(&Orders) -> Result<Box<dyn Target>, String>;

/// The operations of a cache that the processes of the torture use.
pub trait Target {
    /// Reads a key: replaces what is in `buffer` and says that it hit, or leaves anything in it.
    ///
    /// # Errors
    ///
    /// As in all of these, why it was not done.
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Refusal>;

    /// Writes a value.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal>;

    /// Deletes a key, whether it is there or not.
    fn delete(&mut self, key: &[u8]) -> Result<(), Refusal>;

    /// Reads a key, or computes its value and writes it into these groups, so that no other process computes
    /// it concurrently.
    fn get_or_compute(
        &mut self,
        key: &[u8],
        groups: &[String],
        compute: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        let _ = (key, groups, compute);
        Err(Refusal::Unsupported)
    }

    /// Reads a key into `buffer`, or writes what `read` gives into these groups: as a caller does that looks aside,
    /// with whatever the cache has so that this undoes no removal in the meantime.
    fn fill(
        &mut self,
        key: &[u8],
        groups: &[String],
        buffer: &mut Vec<u8>,
        read: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<Filled, Refusal> {
        let _ = groups;
        if self.get_into(key, buffer)? {
            return Ok(Filled::Hit);
        }
        let value = read();
        self.set(key, &value)?;
        Ok(Filled::Stored)
    }

    /// Makes every entry of a group a miss.
    fn invalidate(&mut self, group: &str) -> Result<(), Refusal> {
        let _ = group;
        Err(Refusal::Unsupported)
    }

    /// Deletes every entry.
    fn clear(&mut self) -> Result<(), Refusal> {
        Err(Refusal::Unsupported)
    }
}

/// The outcome of [`Target::fill`]: the cache had the value, stored a new one, or refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The cache had a value.
    Hit,
    /// The cache had no value, and one was written.
    Stored,
    /// The cache had no value, and none was written: its key was removed in the meantime, or may have been.
    Refused,
}

/// The reason why the cache did not do an operation.
#[derive(Debug)]
pub enum Refusal {
    /// Another process holds a lock or claim that the operation needs. Nothing has changed.
    Busy,
    /// The cache has no such operation.
    Unsupported,
    /// The cache's error; the operation may have been done or not.
    Failed(String),
}
