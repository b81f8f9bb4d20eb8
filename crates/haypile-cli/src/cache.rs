//! Opens caches by the URLs of arguments.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use haypile::{Durability, Registry, Store};

use crate::args::cache::Url;

/// A cache of one command.
///
/// It is not closed by itself: a memory store with `persist=` is saved when it is dropped, and one
/// that was opened with a smaller size than before would lose entries by being looked at.
pub(crate) struct OpenCache(ManuallyDrop<Arc<dyn Store>>);

impl OpenCache {
    /// Opens the cache, and says on standard error what went wrong without being an error.
    pub(crate) fn open(url: &Url) -> anyhow::Result<Self> {
        let store = Registry::new().open(&url.url)?;
        for warning in store.warnings() {
            eprintln!("haypile: {warning}");
        }
        Ok(Self(ManuallyDrop::new(store)))
    }

    /// The cache.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0
    }

    /// Ends a command that has changed something or not. What has changed is saved where the cache
    /// is saved at all. What `record=` asks for is written in any case.
    pub(crate) fn end(&self, has_changed: bool) -> anyhow::Result<()> {
        if has_changed {
            self.0.close()?;
        } else {
            self.0.flush(Durability::Visible)?;
        }
        Ok(())
    }
}
