//! A cache as one process has opened it.

use std::mem;
use std::sync::Arc;

use engine::{OpenError, Registry};
use pyo3::Python;

use crate::arguments::Groups;
use crate::{fork, logging};

/// Values from this length on are copied without the GIL.
pub(crate) const LONG_BYTES: usize = 64 << 10;

/// The engine's cache, and the process that opened it.
///
/// A child of a fork never uses the cache that it has inherited, not even to free it: threads that
/// do not exist in the child may hold its locks, and dropping a store may save data that belong to
/// the parent. The child leaves that cache untouched, and opens the URL again.
#[derive(Debug)]
pub(crate) struct Opened {
    cache: Option<engine::Cache>,
    generation: u64,
    /// Whether its operations are short: it has one level, and needs no server.
    is_local: bool,
    has_groups: bool,
}

impl Opened {
    pub(crate) fn open(url: &str) -> Result<Arc<Self>, OpenError> {
        let generation = fork::generation();
        let mut registry = Registry::new();
        haypile_remote::register(&mut registry);
        // What this logs is an error, or one of the cache's warnings.
        let cache = engine::Cache::new(logging::silently(|| registry.open(url))?);
        let url = cache.store().url();
        let in_process = |scheme| ["memory", "file", "none"].contains(&scheme);
        let is_local = matches!(url.levels(), [level] if in_process(level.scheme()));
        // The last level has all entries. One that only reads a file writes none.
        let has_groups = url.levels().last().is_some_and(|level| in_process(level.scheme()));
        Ok(Arc::new(Self { cache: Some(cache), generation, is_local, has_groups }))
    }

    pub(crate) fn cache(&self) -> &engine::Cache {
        self.cache.as_ref().expect("it is taken only by drop")
    }

    /// Returns a number that differs between caches that are open at the same time.
    pub(crate) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether its operations are short, as long as they do not compute.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Returns the cache whose writes are in these groups. What is computed would else never be stored, and
    /// nobody would say why.
    pub(crate) fn in_groups(&self, groups: &Groups) -> engine::Result<engine::Cache> {
        if !groups.0.is_empty() && !self.has_groups {
            let store = self.cache().store().describe();
            return Err(engine::Error::Unsupported { operation: "groups", store });
        }
        self.cache().in_groups(&groups.0)
    }

    /// Returns whether the cache can put entries into groups.
    pub(crate) fn has_groups(&self) -> bool {
        self.has_groups
    }

    /// Whether it was opened in another process.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Calls the engine for an operation on one entry, of this many bytes as far as they are known. A short
    /// one of a local cache is made with the GIL: releasing and taking it costs more. It calls no Python, so that
    /// no fork finds it halfway: see [`fork`].
    pub(crate) fn operate<R: Send>(
        &self,
        py: Python<'_>,
        bytes: usize,
        operation: impl FnOnce(&engine::Cache) -> R + Send,
    ) -> R {
        if self.is_local && bytes < LONG_BYTES {
            let result = operation(self.cache());
            logging::emit(py);
            result
        } else {
            fork::without_gil(py, || operation(self.cache()))
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let cache = self.cache.take();
        if self.is_inherited() {
            return mem::forget(cache);
        }
        let close = || {
            let _inside = engine::ForkGate::enter();
            drop(cache);
        };
        // The last reference may have been that of a Python object. To save a cache, or to send what is left to a server,
        // takes as long as it takes. It runs no Python: there may be an exception that is not handled yet.
        let mut close = Some(close);
        Python::try_attach(|py| {
            if let Some(close) = close.take() {
                py.detach(close);
            }
        });
        // The interpreter is ending.
        if let Some(close) = close {
            close();
        }
    }
}
