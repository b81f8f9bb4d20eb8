//! The engine's own caches as subjects, named by their URLs.

use std::env;
use std::path::Path;
use std::sync::Arc;

use haypile::url::{CacheUrl, Level};
use haypile::{Durability, Error, OpenError, Registry, SetOptions, Store};

use super::error::{Cause, SubjectError};
use super::table::{Kind, Open};
use super::{Found, Room, Subject, SubjectSpec, Worker, file};

/// The schemes that an experiment gives its capacity to when their URL states no size.
const SIZED: [&str; 2] = ["memory", "file"];

const OPEN: Open = |spec, room, _| {
    let directory = env::current_dir().map_err(SubjectError::open(spec))?;
    let url = complete(spec, room, &directory)?;
    Ok(Box::new(StoreSubject::open(url, room.found).map_err(SubjectError::open(spec))?))
};

/// Any size and any directory: to find out whether the rest of a name is right.
const SOMEWHERE: (Room, &str) = (
    Room { capacity_bytes: 1 << 30, capacity_entries: 1 << 20, processes: 1, found: Found::Cache },
    "/",
);

/// Whether the engine knows all that the name says. Nothing is opened.
pub(super) fn check(spec: &SubjectSpec) -> Result<(), SubjectError> {
    let (room, directory) = SOMEWHERE;
    let url = complete(spec, &room, Path::new(directory))?;
    Registry::new().resolve(&url).map_err(SubjectError::open(spec))?;
    Ok(())
}

const fn kind(name: &'static str, usage: &'static str, help: &'static str) -> Kind {
    let (language, version) = ("rust", env!("CARGO_PKG_VERSION"));
    Kind { name, usage, help, language, version, hidden: false, shared: false, open: OPEN }
}

const KINDS: [Kind; 3] = [
    kind("memory", "memory:OPTIONS", "in the process; any URL of that kind, without its size"),
    Kind {
        shared: true,
        ..kind("file", "file:OPTIONS", "in a file that processes share; without its path and size")
    },
    Kind {
        // Processes that share it would find as much as each finds alone.
        shared: true,
        ..kind("none", "none", "never holds anything: the baseline of every experiment")
    },
];

/// The kinds that the engine opens.
pub(super) fn kinds() -> Vec<Kind> {
    let registry = Registry::new();
    let is_there = |kind: &Kind| registry.schemes().any(|scheme| scheme.name == kind.name);
    KINDS.into_iter().filter(is_there).collect()
}

/// The URL that the name of a subject stands for: what it leaves to the experiment, its size and
/// the place of its file, is filled in where it is one level.
pub(crate) fn complete(
    spec: &SubjectSpec,
    room: &Room,
    directory: &Path,
) -> Result<CacheUrl, SubjectError> {
    let name = spec.as_str();
    let text = if name.contains(':') { name.to_owned() } else { format!("{name}:") };
    let url: CacheUrl = text.parse().map_err(SubjectError::open(spec))?;
    let [level] = url.levels() else { return Ok(url) };
    if file::is_placed(level) {
        let wrong = "a file that is measured lies in the working directory of its runners, which \
                     --directory says; write file, or file: and options";
        return Err(SubjectError::Spec { subject: spec.to_string(), wrong: wrong.to_owned() });
    }
    let level = sized(level.clone(), room).and_then(|level| file::placed(level, directory));
    Ok(CacheUrl::from(level.map_err(SubjectError::open(spec))?))
}

fn sized(level: Level, room: &Room) -> Result<Level, OpenError> {
    if !SIZED.contains(&level.scheme()) || level.option("size").is_some() {
        return Ok(level);
    }
    let bytes = match room.capacity_bytes {
        bytes if file::is_kept_by(&level) => bytes.max(file::MIN_BYTES),
        bytes => bytes,
    };
    Ok(level.with_option("size", haypile::ByteSize(bytes).to_string())?)
}

/// A store of the engine.
#[derive(Debug)]
pub struct StoreSubject {
    registry: Registry,
    url: CacheUrl,
    store: Arc<dyn Store>,
}

impl StoreSubject {
    /// Opens a cache by its URL. A file of an earlier job is removed before, unless it is the cache
    /// that was found.
    ///
    /// # Errors
    ///
    /// That the file cannot be removed, and what [`Registry::open_url`] says.
    pub fn open(url: CacheUrl, found: Found) -> Result<Self, Cause> {
        if found == Found::Nothing {
            remove_file(&url)?;
        }
        let registry = Registry::new();
        let store = registry.open_url(&url)?;
        Ok(Self { registry, url, store })
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
        let worker = |_| {
            let options = SetOptions::set();
            Box::new(StoreWorker { store: &*self.store, options }) as Box<dyn Worker + Send + '_>
        };
        Ok((0..threads).map(worker).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.store.close().map_err(SubjectError::open(&self.url))?;
        remove_file(&self.url).map_err(SubjectError::open(&self.url))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(text: &str) -> Result<String, SubjectError> {
        let spec = text.parse().unwrap();
        Ok(complete(&spec, &Room::new(1 << 20, 1000), Path::new("/place"))?.to_string())
    }

    #[test]
    fn what_a_name_leaves_out_is_the_experiment_s() {
        for (text, url) in [
            ("memory", "memory://?size=1MiB"),
            ("memory:policy=lru", "memory://?policy=lru&size=1MiB"),
            ("memory:size=2MiB", "memory://?size=2MiB"),
            ("file", "file:///place/cache.haypile?size=1MiB"),
            ("file:entry_size=1KiB", "file:///place/cache.haypile?entry_size=1KiB&size=1MiB"),
            ("file://?size=2MiB", "file:///place/cache.haypile?size=2MiB"),
            ("none", "none://"),
            ("memory:+file:/x", "memory:// -> file:///x"),
        ] {
            assert_eq!(completed(text).unwrap(), url, "{text}");
        }
    }

    #[test]
    fn a_file_somewhere_else_is_refused() {
        for text in ["file:/tmp/x", "file:///tmp/x?size=1MiB", "file:server"] {
            let message = completed(text).unwrap_err().to_string();
            assert!(message.contains("which --directory says"), "{message}");
        }
    }
}
