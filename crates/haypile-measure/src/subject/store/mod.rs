//! The engine's own caches as subjects, named by their URLs.

mod file;
mod name;
mod worker;

use std::env;
use std::path::Path;

use haypile::url::CacheUrl;
use haypile::{Cache, Durability, Registry, SetOptions, Store};

use super::error::{Cause, SubjectError};
use super::server::{self, Server};
use super::table::{Kind, Open};
use super::{Found, Room, Subject, SubjectSpec, Worker};
use crate::meter::Residency;
pub use name::complete;
use worker::StoreWorker;

const OPEN: Open = |spec, room, _| {
    let directory = env::current_dir().map_err(SubjectError::open(spec))?;
    let url = complete(spec, room, &directory)?;
    if room.processes > 1 && url.levels().last().is_some_and(|level| level.scheme() == "memory") {
        let (subject, processes) = (spec.redacted(), room.processes);
        return Err(SubjectError::Processes { subject, processes });
    }
    let opened = StoreSubject::open(&url, room, &directory);
    Ok(Box::new(opened.map_err(SubjectError::open(spec))?))
};

/// The cache in the place of one that is closed.
const NOTHING: &str = "none://";

/// The engine's schemes, and those of servers.
fn registry() -> Registry {
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    registry
}

/// Any size and any directory: to find out whether the rest of a name is right.
const SOMEWHERE: (Room, &str) = (
    Room {
        capacity_bytes: 1 << 30,
        capacity_entries: 1 << 20,
        processes: 1,
        found: Found::Cache,
        origin: None,
    },
    "/",
);

/// Checks the whole name and options of a subject (cache under test) without opening it.
pub(super) fn check(spec: &SubjectSpec) -> Result<(), SubjectError> {
    let (room, directory) = SOMEWHERE;
    let url = complete(spec, &room, Path::new(directory))?;
    let levels = url.levels().iter().map(server::assumed).collect::<Result<_, _>>();
    let levels = levels.and_then(|levels| Ok(CacheUrl::new(levels)?));
    registry()
        .resolve(&levels.map_err(SubjectError::open(spec))?)
        .map_err(SubjectError::open(spec))?;
    Ok(())
}

/// Returns a text that names a program which a subject needs and which is not installed, with the
/// command to install it; `None` if nothing is missing.
pub(super) fn missing(spec: &SubjectSpec) -> Option<String> {
    let (room, directory) = SOMEWHERE;
    let url = complete(spec, &room, Path::new(directory)).ok()?;
    url.levels().iter().find_map(|level| server::program(level)?.err())
}

const fn kind(name: &'static str, usage: &'static str, help: &'static str) -> Kind {
    let (language, version) = ("rust", env!("CARGO_PKG_VERSION"));
    // Whether processes can share it is for the last of its levels to say.
    Kind { name, usage, help, language, version, hidden: false, shared: true, open: OPEN, check }
}

const KINDS: [Kind; 5] = [
    kind("memory", "memory:OPTIONS", "in the process; any URL of that kind, without its size"),
    kind("file", "file:OPTIONS", "in a file that processes share; without its path and size"),
    kind("memcached", "memcached", "a memcached of its own on a socket; //127.0.0.1:0 for TCP"),
    kind("redis", "redis", "a Redis or Valkey of its own on a socket; //127.0.0.1:0 for TCP"),
    kind("none", "none", "never holds anything: the baseline of every experiment"),
];

/// Returns the kinds of subjects that are caches of this engine: memory, file, memcached and so on.
pub(super) fn kinds() -> Vec<Kind> {
    let registry = registry();
    let is_there = |kind: &Kind| registry.schemes().any(|scheme| scheme.name == kind.name);
    KINDS.into_iter().filter(is_there).collect()
}

/// The running servers that a cache under test needs, which end when this is dropped.
#[derive(Debug)]
pub struct Servers {
    _running: Vec<Server>,
}

impl Servers {
    /// Starts empty servers for a subject's cache, for processes that open it with [`Found::Cache`]
    /// in the same directory. A subject may need none.
    ///
    /// # Errors
    ///
    /// [`SubjectError`] where the name is wrong or a server cannot be started.
    pub fn start(spec: &SubjectSpec, room: &Room, directory: &Path) -> Result<Self, SubjectError> {
        let url = complete(spec, room, directory)?;
        let own = url.levels().iter().filter(|level| server::is_own(level));
        let running = own.map(|level| Server::of(level, room, directory));
        let running = running.collect::<Result<_, _>>().map_err(SubjectError::open(spec))?;
        Ok(Self { _running: running })
    }
}

/// A subject (cache under test) that is a store of this engine.
#[derive(Debug)]
pub struct StoreSubject {
    registry: Registry,
    url: CacheUrl,
    cache: Cache,
    /// Servers that were started for the store. They end after the store.
    servers: Vec<Server>,
}

impl StoreSubject {
    /// Opens a cache of this engine as a subject, by its URL. A file of an earlier job is removed
    /// first, unless it is the cache to be opened; a level that needs a server and names none gets
    /// its own.
    ///
    /// # Errors
    ///
    /// That the file cannot be removed, that the server cannot be started, and what
    /// [`Registry::open_url`] says.
    pub fn open(url: &CacheUrl, room: &Room, directory: &Path) -> Result<Self, Cause> {
        let (mut levels, mut servers) = (Vec::new(), Vec::new());
        for level in url.levels() {
            if server::is_own(level) {
                let server = Server::of(level, room, directory)?;
                levels.push(server.written(level)?);
                servers.push(server);
            } else {
                levels.push(level.clone());
            }
        }
        let url = CacheUrl::new(levels)?;
        if room.found == Found::Nothing {
            remove_file(&url)?;
        }
        let registry = registry();
        let cache = Cache::new(registry.open_url(&url)?);
        Ok(Self { registry, url, cache, servers })
    }

    fn store(&self) -> &dyn Store {
        &**self.cache.store()
    }

    /// Flushes the last level of the subject's cache to disk, if it keeps entries there; does
    /// nothing for memory without a snapshot.
    ///
    /// # Errors
    ///
    /// [`haypile::Error`] of the store.
    pub fn flush_last_level(&self) -> haypile::Result<()> {
        let last = self.url.levels().last().map(haypile::url::Level::scheme);
        let is_volatile = last.is_none_or(|scheme| ["memory", "none"].contains(&scheme));
        let durability = if is_volatile { Durability::Visible } else { Durability::Disk };
        self.store().flush(durability)
    }

    /// Whether the cache is the baseline `none`, which never stores anything.
    pub(crate) fn keeps_nothing(&self) -> bool {
        self.url.levels().iter().all(|level| level.scheme() == "none")
    }

    /// Returns the subject's cache, which [`fresh`](Subject::fresh) and [`cool`](Subject::cool)
    /// replace.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    fn open_anew(&mut self) -> Result<(), Cause> {
        self.store().close()?;
        remove_file(&self.url)?;
        self.cache = Cache::new(self.registry.open_url(&self.url)?);
        // A server keeps what it has.
        if !self.servers.is_empty() {
            self.store().clear()?;
        }
        Ok(())
    }
}

fn remove_file(url: &CacheUrl) -> Result<(), Cause> {
    for level in url.levels() {
        file::remove(level)?;
    }
    Ok(())
}

impl Subject for StoreSubject {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let this = &*self;
        let worker = |_| {
            let (store, cache, options) = (this.store(), &this.cache, SetOptions::set());
            Box::new(StoreWorker { store, cache, options }) as Box<dyn Worker + Send + '_>
        };
        Ok((0..threads).map(worker).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.open_anew().map_err(SubjectError::open(&self.url))
    }

    fn clear(&mut self) -> Result<(), Cause> {
        Ok(self.store().clear()?)
    }

    fn flush(&mut self) -> Result<(), Cause> {
        Ok(self.store().flush(Durability::Disk)?)
    }

    fn cool(&mut self) -> Result<Residency, Cause> {
        self.store().flush(Durability::Disk)?;
        self.store().close()?;
        // Nothing may map the file while the system drops it.
        self.cache = Cache::new(self.registry.open_url(&NOTHING.parse()?)?);
        let mut cooled = None;
        for level in self.url.levels() {
            if let Some(residency) = file::cool(level)? {
                cooled = Some(cooled.map_or(residency, |other: Residency| other.and(residency)));
            }
        }
        self.cache = Cache::new(self.registry.open_url(&self.url)?);
        cooled.ok_or_else(|| "this cache has no files that could be dropped from memory".into())
    }

    fn server_pid(&self) -> Option<u32> {
        self.servers.first().map(Server::pid)
    }

    fn check(&mut self) -> Result<(), Cause> {
        let unreachable = self.store().stats()?.unreachable;
        if unreachable == 0 {
            return Ok(());
        }
        let warnings = self.store().warnings().join("; ");
        Err(format!("{unreachable} operations were not answered by the server: {warnings}").into())
    }

    fn entries(&mut self) -> Option<u64> {
        self.store().len().ok()
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        let mut counts = Vec::new();
        counts.extend(self.store().limits().capacity_bytes.map(|bytes| ("capacity_bytes", bytes)));
        counts.extend(self.store().bytes().ok().map(|bytes| ("charged_bytes", bytes)));
        if let Some(loading) = self.store().stats().ok().and_then(|stats| stats.loading) {
            counts.push(("load_read_ns", loading.read_ns));
            counts.push(("load_check_ns", loading.check_ns));
            counts.push(("load_insert_ns", loading.insert_ns));
        }
        if self.keeps_nothing() {
            counts.push(("keeps_nothing", 1));
        }
        counts
    }
}
