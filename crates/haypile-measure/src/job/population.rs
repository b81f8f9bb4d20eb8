//! The keys of a job, and the sizes of their values.

use super::error::JobError;
use super::ops::MAX_OPERAND;

/// The distance in bytes between the values of two neighbouring keys in a job's pool of random
/// bytes.
pub const VALUE_STEP: u64 = 61;

/// The keys of a job in the order of their numbers, each with the size of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    pub(super) keys: Vec<u8>,
    /// The offset of each of the job's keys in `keys`, and the end of the last key.
    pub(super) index: Vec<u32>,
    pub(super) sizes: Vec<u32>,
}

impl Population {
    /// Creates an empty set of keys for a job.
    pub fn new() -> Self {
        Self { keys: Vec::new(), index: vec![0], sizes: Vec::new() }
    }

    /// Adds a key to the job and returns its number. The caller ensures that it differs from all
    /// others.
    ///
    /// # Errors
    ///
    /// [`JobError::TooLarge`] beyond 2^28 keys or 4 GiB of keys.
    pub fn push(&mut self, key: &[u8], value_bytes: u32) -> Result<u32, JobError> {
        let number = u32::try_from(self.sizes.len()).ok().filter(|&number| number <= MAX_OPERAND);
        let number = number.ok_or_else(|| JobError::TooLarge {
            what: format!("{} keys", self.sizes.len() + 1),
            limit: u64::from(MAX_OPERAND) + 1,
        })?;
        let end = u32::try_from(self.keys.len() + key.len()).map_err(|_| JobError::TooLarge {
            what: format!("{} bytes of keys", self.keys.len() + key.len()),
            limit: u64::from(u32::MAX),
        })?;
        self.keys.extend_from_slice(key);
        self.index.push(end);
        self.sizes.push(value_bytes);
        Ok(number)
    }

    /// Returns the number of keys of the job.
    pub fn len(&self) -> u32 {
        u32::try_from(self.sizes.len()).expect("push allows no more than 2^28")
    }

    /// Whether the job has no keys.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Returns the bytes of a key of the job by the key's number.
    ///
    /// # Panics
    ///
    /// If there is no such key.
    pub fn key(&self, number: u32) -> &[u8] {
        let at = number as usize;
        &self.keys[self.index[at] as usize..self.index[at + 1] as usize]
    }

    /// Returns the size of the value of a job's key, in bytes.
    ///
    /// # Panics
    ///
    /// If there is no such key.
    pub fn value_bytes(&self, number: u32) -> u32 {
        self.sizes[number as usize]
    }

    /// Returns the length of a job's key and of its value together, in bytes.
    ///
    /// # Panics
    ///
    /// If there is no such key.
    pub fn entry_bytes(&self, number: u32) -> u64 {
        self.key(number).len() as u64 + u64::from(self.sizes[number as usize])
    }

    /// Returns the total length of all keys and values of the job, in bytes.
    pub fn bytes(&self) -> u64 {
        self.keys.len() as u64 + self.sizes.iter().map(|&size| u64::from(size)).sum::<u64>()
    }
}

impl Default for Population {
    fn default() -> Self {
        Self::new()
    }
}
