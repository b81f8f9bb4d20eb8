//! A cache as one process has opened it.

use std::mem;
use std::sync::Arc;

use engine::OpenError;

use crate::fork;

/// The engine's cache, and the process that opened it.
///
/// A child of a fork never uses the cache that it has inherited, not even to free it: threads that
/// do not exist in the child may hold its locks, and dropping a store may save data that belong to
/// the parent. The child leaves that cache untouched, and opens the URL again.
#[derive(Debug)]
pub(crate) struct Opened {
    cache: Option<engine::Cache>,
    generation: u64,
}

impl Opened {
    pub(crate) fn open(url: &str) -> Result<Arc<Self>, OpenError> {
        let generation = fork::generation();
        Ok(Arc::new(Self { cache: Some(engine::Cache::open(url)?), generation }))
    }

    pub(crate) fn cache(&self) -> &engine::Cache {
        self.cache.as_ref().expect("it is taken only by drop")
    }

    /// Whether it was opened in another process.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.is_inherited() {
            mem::forget(self.cache.take());
        }
    }
}
