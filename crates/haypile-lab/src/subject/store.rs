//! The engine's own caches as subjects, named by their URLs.

use std::sync::Arc;

use haypile::url::{CacheUrl, Level};
use haypile::{Durability, Error, Registry, SetOptions, Store};

use super::error::{Cause, SubjectError};
use super::table::{Kind, Open};
use super::{Room, Subject, SubjectSpec, Worker};

/// The schemes that an experiment gives its capacity to when their URL states no size.
const SIZED: [&str; 1] = ["memory"];

const OPEN: Open = |spec, room, _| {
    Ok(Box::new(StoreSubject::open(&url(spec), room).map_err(SubjectError::open(spec))?))
};

/// Whether the engine knows all that the name says. Nothing is opened.
pub(super) fn check(spec: &SubjectSpec) -> Result<(), SubjectError> {
    Registry::new().parse(&url(spec)).map_err(SubjectError::open(spec))?;
    Ok(())
}

fn url(spec: &SubjectSpec) -> String {
    let name = spec.as_str();
    if name.contains(':') { name.to_owned() } else { format!("{name}:") }
}

const fn kind(name: &'static str, usage: &'static str, help: &'static str) -> Kind {
    let (language, version) = ("rust", env!("CARGO_PKG_VERSION"));
    Kind { name, usage, help, language, version, hidden: false, open: OPEN }
}

pub(super) const KINDS: [Kind; 2] = [
    kind("memory", "memory:OPTIONS", "in the process; any URL of that kind, without its size"),
    kind("none", "none", "never holds anything: the baseline of every experiment"),
];

/// A store of the engine.
#[derive(Debug)]
pub struct StoreSubject {
    registry: Registry,
    url: CacheUrl,
    store: Arc<dyn Store>,
}

impl StoreSubject {
    /// Opens a cache by its URL. If it is one level of a kind that has a size and does not state
    /// it, its size is the capacity of the experiment.
    ///
    /// # Errors
    ///
    /// What [`Registry::open`] says.
    pub fn open(url: &str, room: &Room) -> Result<Self, haypile::OpenError> {
        let registry = Registry::new();
        let url = sized(url.parse()?, room)?;
        let store = registry.open_url(&url)?;
        Ok(Self { registry, url, store })
    }
}

fn sized(url: CacheUrl, room: &Room) -> Result<CacheUrl, haypile::OpenError> {
    let [level] = url.levels() else { return Ok(url) };
    if !SIZED.contains(&level.scheme()) || level.option("size").is_some() {
        return Ok(url);
    }
    let size = haypile::ByteSize(room.capacity_bytes).to_string();
    let level: Level = level.clone().with_option("size", size)?;
    Ok(CacheUrl::from(level))
}

impl Subject for StoreSubject {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let worker = |_| {
            let options = SetOptions::set();
            Box::new(StoreWorker { store: &*self.store, options }) as Box<dyn Worker + Send + '_>
        };
        Ok((0..threads).map(worker).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.store.close().map_err(SubjectError::open(&self.url))?;
        let opened = self.registry.open_url(&self.url);
        self.store = opened.map_err(SubjectError::open(&self.url))?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Cause> {
        Ok(self.store.flush(Durability::Disk)?)
    }

    fn entries(&mut self) -> Option<u64> {
        self.store.len().ok()
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        let mut counts = Vec::new();
        counts.extend(self.store.limits().capacity_bytes.map(|bytes| ("capacity_bytes", bytes)));
        counts.extend(self.store.bytes().ok().map(|bytes| ("charged_bytes", bytes)));
        counts
    }
}

struct StoreWorker<'a> {
    store: &'a dyn Store,
    options: SetOptions,
}

impl Worker for StoreWorker<'_> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        Ok(self.store.get_into(key, buffer)?.is_some())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        match self.store.set(key, value, &self.options) {
            // Others leave out without a word what is too large for them; it is no failure here.
            Ok(_) | Err(Error::ValueTooLarge { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        Ok(self.store.delete(key)?)
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        for (position, value) in self.store.get_many(keys)?.iter().enumerate() {
            found(position, value.as_ref().map(|(value, _)| value.as_slice()));
        }
        Ok(())
    }
}
