//! The registry, which opens stores by URL.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::compress;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
use crate::file;
use crate::memory;
use crate::none;
use crate::record;
use crate::store::Store;
use crate::tier::{self, TierOptions, TieredStore, Upper};
use crate::url::{CacheUrl, ResolvedLevel, Scheme, UrlError};

/// Opens the caches of one scheme.
///
/// An opener does not compress: the [`Registry`] puts a
/// [`CompressedStore`](crate::compress::CompressedStore) in front of the store that it opens if the
/// scheme has the option `compress=` and the URL uses it, or if the store's values [are
/// compressed](Store::compression).
pub trait Opener: fmt::Debug + Send + Sync {
    /// Returns the scheme with its options.
    fn scheme(&self) -> &'static Scheme;

    /// Opens a level that was [resolved](crate::url::Level::resolve) against [`scheme`](Self::scheme). The
    /// registry provides the clock, and opens stores that this level wraps.
    fn open(&self, level: &ResolvedLevel, registry: &Registry)
    -> Result<Arc<dyn Store>, OpenError>;
}

/// A cache that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is wrong.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A scheme that needs another platform.
    #[error("'{scheme}' needs Linux on x86-64 or aarch64; on this platform there are {available}")]
    NotHere {
        /// The scheme.
        scheme: &'static str,
        /// The schemes registered.
        available: String,
    },
    /// A known scheme that this program has not registered.
    #[error(
        "'{scheme}' is not registered in this program; register the crate that opens it; without \
         it there are {available}"
    )]
    NotRegistered {
        /// The scheme.
        scheme: &'static str,
        /// The schemes registered.
        available: String,
    },
    /// A policy that exceeds the bound for a moment, which only the simulator runs.
    #[error(
        "the policy '{policy}' lets a cache grow beyond its size for a moment, and a store never \
         does; remove the parameter that allows that, or simulate it"
    )]
    ExceedsBound {
        /// The policy and its parameters.
        policy: String,
    },
    /// The file store's policy, for a store of another kind.
    #[error(
        "the policy '{policy}' belongs to the file store, which has no other, and 'memory' does \
         not have it; take another policy, or simulate it"
    )]
    FileStoreOnly {
        /// The policy and its parameters.
        policy: String,
    },
    /// A default TTL of zero.
    #[error(
        "the cache's TTL is zero, which is refused because caches disagree on its meaning; give \
         none for entries that never expire"
    )]
    ZeroTtl,
    /// A number of shards that the store cannot have.
    #[error("a store of this size cannot have {shards} shards; it has a power of two up to {most}")]
    BadShards {
        /// The requested number.
        shards: usize,
        /// The largest number at this size.
        most: usize,
    },
    /// A namespace that is longer than the store accepts.
    #[error("a namespace of {bytes} bytes is too long: a file's namespace has at most 255")]
    LongNamespace {
        /// Its length.
        bytes: usize,
    },
    /// A size that the store cannot have.
    #[error("a cache cannot have {size_bytes} bytes; its size is from {min_bytes} to {max_bytes}")]
    SizeOutOfRange {
        /// The requested size.
        size_bytes: u64,
        /// The smallest allowed.
        min_bytes: u64,
        /// The largest allowed.
        max_bytes: u64,
    },
    /// The file of a recording could not be created.
    #[error(
        "cannot record to {}: {source}; 'record' names a file in a directory that exists \
         and can be written to",
        path.display()
    )]
    Recording {
        /// The given path, to which the process id is appended.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The server or the file cannot be used.
    #[error("{url} cannot be opened: {source}")]
    Backend {
        /// The canonical URL.
        url: String,
        /// The error of the server, the file or the client library, with advice.
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// The schemes of network caches, which this crate leaves to others, because it does no network
/// I/O.
const ELSEWHERE: [&str; 4] = ["memcached", "redis", "redis+cluster", "redis+unix"];

/// The schemes of this crate that this platform does not have.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
const NOT_HERE: [&str; 1] = ["file"];
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
const NOT_HERE: [&str; 0] = [];

/// The schemes that can be opened.
///
/// A new registry has those of this crate; [`register`](Self::register) adds others.
///
/// ```
/// let registry = haypile::Registry::new();
/// let store = registry.open("memory:size=1MiB,policy=lru").unwrap();
/// assert_eq!(store.describe(), "memory://?size=1MiB&policy=lru");
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    openers: BTreeMap<&'static str, Arc<dyn Opener>>,
    clock: Arc<dyn Clock>,
}

impl Registry {
    /// Returns a registry of `none`, `memory` and `file`, on the system's clock.
    pub fn new() -> Self {
        let mut registry = Self { openers: BTreeMap::new(), clock: Arc::new(SystemClock::new()) };
        registry.register(Arc::new(none::NoneOpener));
        registry.register(Arc::new(memory::MemoryOpener));
        #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
        registry.register(Arc::new(file::FileOpener));
        registry
    }

    /// Replaces the clock, for tests.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Adds a scheme, or replaces the opener of one.
    pub fn register(&mut self, opener: Arc<dyn Opener>) {
        self.openers.insert(opener.scheme().name, opener);
    }

    /// Returns the clock of the stores that this registry opens.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Returns the registered schemes, ordered by name.
    pub fn schemes(&self) -> impl Iterator<Item = &'static Scheme> {
        self.openers.values().map(|opener| opener.scheme())
    }

    /// Parses a URL in either form, checks it and returns it in canonical form.
    ///
    /// # Errors
    ///
    /// [`OpenError::Url`] for an error in the text; [`OpenError::NotHere`] and
    /// [`OpenError::NotRegistered`] for schemes that this registry does not open.
    pub fn parse(&self, text: &str) -> Result<CacheUrl, OpenError> {
        self.resolve(&text.parse()?)
    }

    /// Checks a URL against the registered schemes, and returns it in canonical form.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse).
    pub fn resolve(&self, url: &CacheUrl) -> Result<CacheUrl, OpenError> {
        let (upper, last) = self.resolve_levels(url)?;
        let mut levels = upper.iter().map(Upper::level).collect::<Result<Vec<_>, _>>()?;
        levels.push(last.level().clone());
        Ok(CacheUrl::new(levels)?)
    }

    /// Returns the upper levels, the fastest first, and the last one.
    fn resolve_levels(&self, url: &CacheUrl) -> Result<(Vec<Upper>, ResolvedLevel), OpenError> {
        let (last, upper) = url.levels().split_last().expect("a URL has a level");
        let mut levels = Vec::with_capacity(upper.len());
        for (number, level) in upper.iter().enumerate() {
            let resolve = || Ok(Upper::resolve(level, self.opener(level.scheme())?.scheme())?);
            levels.push(resolve().map_err(without_secrets(url, number))?);
        }
        let resolve = || {
            let scheme = self.opener(last.scheme())?.scheme();
            tier::refuse(last)?;
            Ok(last.resolve(scheme)?)
        };
        Ok((levels, resolve().map_err(without_secrets(url, upper.len()))?))
    }

    /// Opens the cache of this URL, given as text.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse), and those of the scheme's opener.
    pub fn open(&self, text: &str) -> Result<Arc<dyn Store>, OpenError> {
        self.open_url(&text.parse()?)
    }

    /// Opens the cache of this URL.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_url(&self, url: &CacheUrl) -> Result<Arc<dyn Store>, OpenError> {
        let (upper, last) = self.resolve_levels(url)?;
        let lower_ttl = last.duration("ttl");
        let mut store = self.open_level(&last)?;
        for Upper { level, relation } in upper.iter().rev() {
            let options = TierOptions::of(relation, level, lower_ttl);
            let front = self.open_level(level)?;
            store = Arc::new(TieredStore::new(front, store, options, self.clock()));
        }
        Ok(store)
    }

    /// Opens a level, wraps it in a recording if it asks for one, and in compression around that,
    /// so that a recording has the sizes that the store sees.
    fn open_level(&self, level: &ResolvedLevel) -> Result<Arc<dyn Store>, OpenError> {
        let store = self.opener(level.scheme().name)?.open(level, self)?;
        let made_with = store.compression();
        let store = record::wrap(store, level, self.clock())?;
        Ok(compress::wrap(level, made_with, store))
    }

    fn opener(&self, scheme: &str) -> Result<&Arc<dyn Opener>, OpenError> {
        if let Some(opener) = self.openers.get(scheme) {
            return Ok(opener);
        }
        if NOT_HERE.contains(&scheme) {
            return Err(OpenError::NotHere { scheme: "file", available: self.available() });
        }
        let elsewhere = ELSEWHERE.into_iter().find(|name| *name == scheme);
        Err(match elsewhere {
            Some(scheme) => OpenError::NotRegistered { scheme, available: self.available() },
            None => {
                UrlError::UnknownScheme { scheme: scheme.to_owned(), allowed: self.available() }
                    .into()
            }
        })
    }

    fn available(&self) -> String {
        self.openers.keys().copied().collect::<Vec<_>>().join(", ")
    }
}

/// Hides what could be a part of a password in an error about one level of a URL.
fn without_secrets(url: &CacheUrl, level: usize) -> impl FnOnce(OpenError) -> OpenError + '_ {
    move |error| match error {
        OpenError::Url(error) => url.without_secrets(level, error).into(),
        error => error,
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}
