//! [`FileBuilder`], which opens the cache in a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cache::Cache;
use crate::clock::{Clock, SystemClock};
use crate::compress::Compression;
use crate::file::opener::{FileOpener, SCHEME};
use crate::open::OpenError;
use crate::store::Store;
use crate::url::Level;
use crate::wrapped;

/// A builder that opens the cache in a file, which all processes that open it share. The file may have any path:
/// spaces, commas and bytes that are not UTF-8 need no care here, and the URL of the store has them percent-encoded.
///
/// ```
/// use haypile::file::FileBuilder;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("my cache, v2.haypile");
/// let cache = FileBuilder::new(&path).size(64 << 20).open()?;
/// cache.set("user:7", "Ada")?;
/// // Another process, or a later one, finds it.
/// let other = FileBuilder::new(&path).open()?;
/// assert_eq!(other.get("user:7")?.as_deref(), Some(b"Ada".as_slice()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileBuilder {
    path: PathBuf,
    /// The names and values of options, as in a URL.
    options: Vec<(String, String)>,
    clock: Arc<dyn Clock>,
}

impl FileBuilder {
    /// Returns the builder of a cache in the file at this path, which is relative to the current directory unless it is
    /// absolute. A file that does not exist is created, with 64 MiB unless [`size`](Self::size) says otherwise.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        Self { path, options: Vec::new(), clock: Arc::new(SystemClock::new()) }
    }

    /// Sets the size of a new cache file in bytes, from 1 MiB to 1 TiB. An existing file keeps its
    /// own, and [warns](Cache::warnings) if that is another.
    #[must_use]
    pub fn size(self, bytes: u64) -> Self {
        self.option("size", bytes.to_string())
    }

    /// Sets the default time to live (TTL) of entries, for writes that state none.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.option("ttl", humantime::format_duration(ttl).to_string().replace(' ', ""))
    }

    /// Sets the namespace of the cache, which then sees only the entries written under this name.
    #[must_use]
    pub fn namespace(self, name: impl Into<String>) -> Self {
        self.option("namespace", name)
    }

    /// Makes the builder open the cache file only for reads; the file has to exist.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.option("mode", "ro")
    }

    /// Sets the method that compresses values of the cache file, where that makes them shorter.
    #[must_use]
    pub fn compression(self, compression: Compression) -> Self {
        self.option("compress", compression.to_string())
    }

    /// Sets any option that a URL of a file has, by its name there; [docs/options.md](https://github.com/haypile/haypile/blob/main/docs/options.md) lists
    /// them. A later value replaces an earlier one.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.options.retain(|(given, _)| *given != name);
        self.options.push((name, value.into()));
        self
    }

    /// Sets the clock that decides when entries of the cache expire.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Opens the cache in the file.
    ///
    /// # Errors
    ///
    /// [`OpenError::Url`] for an option that the file store does not have or a value that it does not take;
    /// [`OpenError::Backend`] for a file that cannot be created or used, with the reason and what to do.
    pub fn open(self) -> Result<Cache, OpenError> {
        self.store().map(Cache::new)
    }

    /// Opens the cache file as a store, without the [`Cache`] around it that `open` returns: to be
    /// one level of a cache, or to be wrapped in a layer.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn store(self) -> Result<Arc<dyn Store>, OpenError> {
        let path = std::path::absolute(&self.path).map_err(|source| OpenError::Backend {
            url: self.path.display().to_string(),
            source: source.into(),
        })?;
        let mut level = Level::new(SCHEME.name)?.with_path(path)?;
        for (name, value) in self.options {
            level = level.with_option(name, value)?;
        }
        wrapped::open(&FileOpener, &level.resolve(&SCHEME)?, self.clock)
    }
}
