//! The cache under test: its URL, opened as often as a test needs it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use haypile::tier::TierOptions;
use haypile::url::{CacheUrl, Level};
use haypile::{Clock, Registry, Store};
use tempfile::TempDir;

use crate::memory_opener::SeededMemory;

/// The part of a URL that stands for a directory of the test's own.
const DIRECTORY: &str = "{dir}";

/// The kind of store of one level of a cache, such as memory or file, as far as tests distinguish
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nothing,
    Memory,
    File,
    Redis,
    Memcached,
}

/// The URL of a cache under test, with the directory that `{dir}` in it stands for.
#[derive(Debug)]
pub(crate) struct Target {
    url: CacheUrl,
    kinds: Vec<Kind>,
    /// Removed when this is dropped.
    _directory: Option<TempDir>,
}

impl Target {
    /// Checks the URL of a cache under test, and creates the directory that `{dir}` in it stands
    /// for; dropping the target removes the directory.
    pub(crate) fn new(text: &str) -> Result<Self> {
        let directory = text.contains(DIRECTORY).then(new_directory).transpose()?;
        let path = directory.as_ref().map(|directory| directory.path().to_str());
        let path = path.unwrap_or(Some("")).context("the temporary directory is not UTF-8")?;
        let url = registry(None, 0).parse(&text.replace(DIRECTORY, path))?;
        let kinds: Vec<Kind> = url.levels().iter().map(kind_of).collect::<Result<_>>()?;
        Ok(Self { url, kinds, _directory: directory })
    }

    /// Returns the canonical URL of the cache under test.
    pub(crate) fn url(&self) -> &CacheUrl {
        &self.url
    }

    /// Returns the path of the file of the cache's last level, if it has one.
    pub(crate) fn file(&self) -> Option<&Path> {
        (self.last_kind() == Kind::File).then(|| self.last_level().path())
    }

    /// Returns the kinds of the cache's levels, the fastest first.
    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Returns the kind of the cache's last level, which has the authoritative entries.
    pub(crate) fn last_kind(&self) -> Kind {
        *self.kinds.last().expect("a URL has a level")
    }

    /// Whether other handles and processes can open the cache's last level.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.last_kind(), Kind::File | Kind::Redis | Kind::Memcached)
    }

    /// Whether the cache's entries survive after all processes have closed the cache.
    pub(crate) fn outlives_its_users(&self) -> bool {
        self.is_shared() || self.last_level().option("persist").is_some()
    }

    /// Whether the cache serves requests before it has loaded its snapshot (saved entries).
    pub(crate) fn loads_later(&self) -> bool {
        self.last_level().option("persist_load") == Some("background")
    }

    /// Whether any level of the cache defers writes to the level below (write-back).
    pub(crate) fn is_write_back(&self) -> bool {
        self.url.levels().iter().any(|level| level.option("write") == Some("back"))
    }

    /// Returns the longest time for which upper levels may serve a value that another process has
    /// changed in the last level; zero for one level.
    pub(crate) fn stale(&self) -> Duration {
        let upper = &self.url.levels()[..self.kinds.len() - 1];
        upper
            .iter()
            .map(|level| duration(level, "stale").unwrap_or(TierOptions::DEFAULT_STALE))
            .sum()
    }

    /// Returns the TTL of entries that are written to the cache without one.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        duration(self.last_level(), "ttl")
    }

    /// Returns the cache's URL with a namespace in its last level.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Result<CacheUrl> {
        ensure!(
            self.is_shared(),
            "only caches that several programs share have namespaces with other content; this \
             one is {}",
            self.url
        );
        let (last, upper) = self.url.levels().split_last().expect("a URL has a level");
        let last = last.clone().with_option("namespace", namespace)?;
        Ok(CacheUrl::new([upper, &[last]].concat())?)
    }

    fn last_level(&self) -> &Level {
        self.url.levels().last().expect("a URL has a level")
    }
}

/// Returns the text of a URL without its passwords, for messages.
pub(crate) fn shown(text: &str) -> String {
    // With a path in its place, so that the text can be parsed.
    match text.replace(DIRECTORY, "/dir").parse::<CacheUrl>() {
        Ok(url) if url.redacted() != url => url.redacted().to_string(),
        _ => text.to_owned(),
    }
}

/// Creates a temporary directory for a test.
pub(crate) fn new_directory() -> Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("haypile-stress-").tempdir();
    directory.context("cannot create a temporary directory")
}

/// Returns the last level of a URL as a separate URL.
pub(crate) fn last_of(url: &CacheUrl) -> CacheUrl {
    url.levels().last().expect("a URL has a level").clone().into()
}

/// Opens a cache with this clock, and with a hash seed that makes evictions repeatable.
pub(crate) fn open(
    url: &CacheUrl,
    clock: Option<Arc<dyn Clock>>,
    hash_seed: u64,
) -> Result<Arc<dyn Store>> {
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    haypile::file::hooks::set_hash_seed(Some(hash_seed));
    registry(clock, hash_seed).open_url(url).with_context(|| format!("cannot open {url}"))
}

fn registry(clock: Option<Arc<dyn Clock>>, hash_seed: u64) -> Registry {
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    SeededMemory::register(&mut registry, hash_seed);
    match clock {
        Some(clock) => registry.with_clock(clock),
        None => registry,
    }
}

fn kind_of(level: &Level) -> Result<Kind> {
    Ok(match level.scheme() {
        "none" => Kind::Nothing,
        "memory" => Kind::Memory,
        "file" => Kind::File,
        "redis" | "redis+unix" | "redis+cluster" => Kind::Redis,
        "memcached" => Kind::Memcached,
        other => anyhow::bail!(
            "caches of the scheme '{other}' cannot be tested (known: none, memory, file, redis, \
             redis+unix, redis+cluster, memcached)"
        ),
    })
}

fn duration(level: &Level, option: &str) -> Option<Duration> {
    let text = level.option(option)?;
    Some(humantime::parse_duration(text).expect("the registry has checked it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_knows_its_levels_and_removes_its_directory() {
        let target =
            Target::new("memory:stale=5s+memory:write=back+file:{dir}/x,ttl=1m,size=1MiB").unwrap();
        assert_eq!(target.kinds(), [Kind::Memory, Kind::Memory, Kind::File]);
        assert_eq!(target.stale(), Duration::from_secs(6));
        assert_eq!(target.ttl(), Some(Duration::from_mins(1)));
        assert!(target.is_write_back() && target.is_shared());
        let other = target.in_namespace("a").unwrap();
        assert_eq!(last_of(&other).levels()[0].option("namespace"), Some("a"));
        let file = target.file().unwrap().to_owned();
        drop(open(target.url(), None, 1).unwrap());
        assert!(file.exists());
        drop(target);
        assert!(!file.parent().unwrap().exists());
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("file:{dir}/x"), "file:{dir}/x");
        let text = shown("memory:+redis://ann:secret@localhost/0");
        assert!(!text.contains("secret") && text.contains("ann"), "{text}");
    }

    #[test]
    fn a_url_that_is_wrong_is_an_error() {
        assert!(Target::new("memory:size=1").is_err());
        assert!(Target::new("nothing:").is_err());
        assert!(Target::new("memory:").unwrap().in_namespace("a").is_err());
    }
}
