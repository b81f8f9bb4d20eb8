//! Counts of the calls of a memoized function.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// Counts without a lock, which a child of a fork could find locked.
#[pyclass(frozen, module = "haypile._haypile")]
#[derive(Default)]
pub(crate) struct Calls {
    hits: AtomicU64,
    misses: AtomicU64,
}

#[pymethods]
impl Calls {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Counts a call.
    fn count(&self, computed: bool) {
        let counter = if computed { &self.misses } else { &self.hits };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the hits and the misses.
    fn counted(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Begins again from zero.
    fn reset(&self) {
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }
}
