//! Opens caches by the URLs of arguments.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use haypile::url::{CacheUrl, Level, UrlError, ValueKind};
use haypile::{Durability, Registry, Store};

use crate::args::cache::Url;

/// A cache of one command.
///
/// It is not closed by itself: a memory store with `persist=` is saved when it is dropped, and one
/// that was opened with a smaller size than before would lose entries by being looked at.
pub(crate) struct OpenCache(ManuallyDrop<Arc<dyn Store>>);

impl OpenCache {
    /// Opens the cache.
    pub(crate) fn open(url: &Url) -> anyhow::Result<Self> {
        let registry = registry();
        let url = registry.parse(&url.url)?;
        Self::open_url(&registry, &url)
    }

    /// Opens the cache for a command that only reads: a file that is not there is not made.
    pub(crate) fn open_to_read(url: &Url) -> anyhow::Result<Self> {
        let registry = registry();
        let url = registry.parse(&url.url)?;
        let levels = url.levels().iter().map(|level| read_only(&registry, level));
        let url = CacheUrl::new(levels.collect::<Result<_, _>>()?)?;
        Self::open_url(&registry, &url)
    }

    /// Opens the cache for a command that looks into it, and trusts nothing in a file that other users
    /// can write.
    pub(crate) fn open_to_inspect(url: &Url) -> anyhow::Result<Self> {
        let registry = registry();
        let url = registry.parse(&url.url)?;
        let levels = url.levels().iter().map(|level| {
            if is_exposed(level) {
                eprintln!(
                    "haypile: {} can be written by other users: what is shown was checked for \
                     damage, and not written by a user that you trust",
                    level.path()
                );
                return level.clone().with_option("mode", "copy");
            }
            read_only(&registry, level)
        });
        let url = CacheUrl::new(levels.collect::<Result<_, _>>()?)?;
        Self::open_url(&registry, &url)
    }

    /// Says on standard error what went wrong without being an error.
    fn open_url(registry: &Registry, url: &CacheUrl) -> anyhow::Result<Self> {
        let store = registry.open_url(url)?;
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

/// The schemes that the program opens: the engine's, and those of servers.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    registry
}

/// Whether the file of a level would be refused, for other users can write it.
#[cfg(target_os = "linux")]
fn is_exposed(level: &Level) -> bool {
    level.scheme() == "file"
        && ["mode", "allow_shared"].iter().all(|name| level.option(name).is_none())
        && haypile::file::is_exposed(std::path::Path::new(level.path()))
}

#[cfg(not(target_os = "linux"))]
fn is_exposed(_: &Level) -> bool {
    false
}

/// The level with `mode=ro`, if its scheme has that and its URL says nothing else.
fn read_only(registry: &Registry, level: &Level) -> Result<Level, UrlError> {
    let scheme = registry.schemes().find(|scheme| scheme.name == level.scheme());
    let mode = scheme.and_then(|scheme| scheme.option("mode")).map(|option| option.kind);
    match mode {
        Some(ValueKind::Choice(modes))
            if modes.contains(&"ro") && level.option("mode").is_none() =>
        {
            level.clone().with_option("mode", "ro")
        }
        _ => Ok(level.clone()),
    }
}
