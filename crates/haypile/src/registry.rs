//! The registry, which opens stores by URL.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
use crate::file;
use crate::memory;
use crate::none;
use crate::open::{OpenError, Opener};
use crate::store::Store;
use crate::tier::{self, TierOptions, TieredStore, Upper};
use crate::url::{CacheUrl, ResolvedLevel, Scheme, UrlError};
use crate::wrapped;

/// The schemes of network caches, which this crate leaves to others, because it does no network
/// I/O.
const ELSEWHERE: [&str; 4] = ["memcached", "redis", "redis+cluster", "redis+unix"];

/// The schemes of this crate that this platform does not have.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
const NOT_HERE: [&str; 1] = ["file"];
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
const NOT_HERE: [&str; 0] = [];

/// A registry of URL schemes with their openers, which opens caches by their URLs.
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
    /// Returns a registry with the schemes `none`, `memory` and `file`, on the system's clock.
    pub fn new() -> Self {
        let mut registry = Self { openers: BTreeMap::new(), clock: Arc::new(SystemClock::new()) };
        registry.register(Arc::new(none::NoneOpener));
        registry.register(Arc::new(memory::MemoryOpener));
        #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
        registry.register(Arc::new(file::FileOpener));
        registry
    }

    /// Replaces the clock that opened stores use, for tests.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Adds a URL scheme with its opener to this registry, or replaces the scheme's opener.
    pub fn register(&mut self, opener: Arc<dyn Opener>) {
        self.openers.insert(opener.scheme().name, opener);
    }

    /// Returns the clock of the stores that this registry opens.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Returns the URL schemes of this registry, ordered by name.
    pub fn schemes(&self) -> impl Iterator<Item = &'static Scheme> {
        self.openers.values().map(|opener| opener.scheme())
    }

    /// Parses a cache URL in long or short form, checks it, and returns it in canonical form.
    ///
    /// # Errors
    ///
    /// [`OpenError::Url`] for an error in the text; [`OpenError::NotHere`] and
    /// [`OpenError::NotRegistered`] for schemes that this registry does not open.
    pub fn parse(&self, text: &str) -> Result<CacheUrl, OpenError> {
        self.resolve(&text.parse()?)
    }

    /// Checks a URL against the registered schemes and their options, and returns it in canonical
    /// form.
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

    /// Opens the cache of a URL that is given as text.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse), and those of the scheme's opener.
    pub fn open(&self, text: &str) -> Result<Arc<dyn Store>, OpenError> {
        self.open_url(&text.parse()?)
    }

    /// Opens the cache of a parsed URL.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_url(&self, url: &CacheUrl) -> Result<Arc<dyn Store>, OpenError> {
        let (upper, last) = self.resolve_levels(url)?;
        let lower_ttl = last.duration("ttl");
        let mut store = wrapped::open(&**self.opener(last.scheme().name)?, &last, self.clock())?;
        for Upper { level, relation } in upper.iter().rev() {
            let options = TierOptions::of(relation, level, lower_ttl);
            let front = wrapped::open(&**self.opener(level.scheme().name)?, level, self.clock())?;
            store = Arc::new(TieredStore::new(front, store, options, self.clock()));
        }
        Ok(store)
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
