//! A cache that is tortured.

use super::Orders;

/// Opens the cache of some orders.
pub type OpenTarget<'a> = &'a dyn Fn(&Orders) -> Result<Box<dyn Target>, String>;

/// A cache as a process of the torture uses it.
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

    /// Reads a key, or computes its value and writes it, so that no other process computes it
    /// concurrently.
    fn get_or_compute(
        &mut self,
        key: &[u8],
        compute: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        let _ = (key, compute);
        Err(Refusal::Unsupported)
    }
}

/// Why an operation was not done.
#[derive(Debug)]
pub enum Refusal {
    /// Another process holds what it needs. Nothing has changed.
    Busy,
    /// The cache has no such operation.
    Unsupported,
    /// The cache's error; the operation may have been done or not.
    Failed(String),
}
