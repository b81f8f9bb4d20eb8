//! The one file of a cache that processes share. A subject names no path: its runners find the file
//! under the same name in their working directory.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use haypile::OpenError;
use haypile::url::Level;

use crate::meter::{Residency, drop_from_memory};

/// The scheme of such caches.
const SCHEME: &str = "file";

/// The name of the file.
const NAME: &str = "cache.haypile";

/// The smallest size of a cache file, in bytes. A subject with less capacity has more room than it
/// was given.
pub(super) const MIN_BYTES: u64 = 1 << 20;

/// Whether a level of a cache (one of several chained caches) keeps its entries in a file.
pub(super) fn is_kept_by(level: &Level) -> bool {
    level.scheme() == SCHEME
}

/// Whether a level of a cache states the path of its file, which subjects may not do.
pub(super) fn is_placed(level: &Level) -> bool {
    is_kept_by(level) && !(level.server().is_empty() && level.path().as_os_str().is_empty())
}

/// Returns the level of a cache with the path of its file in a directory; unchanged if the level
/// does not keep a file.
pub(super) fn placed(level: Level, directory: &Path) -> Result<Level, OpenError> {
    if !is_kept_by(&level) {
        return Ok(level);
    }
    Ok(level.with_path(directory.join(NAME))?)
}

/// Drops the file of a cache's level from the page cache, and returns the part that is still there;
/// `None` if the level does not keep a file.
pub(super) fn cool(level: &Level) -> io::Result<Option<Residency>> {
    if !is_kept_by(level) {
        return Ok(None);
    }
    let path = level.path();
    drop_from_memory(path)?;
    Residency::of(path).map(Some)
}

/// Removes the file in which a cache's level keeps its entries, if there is one.
pub(super) fn remove(level: &Level) -> io::Result<()> {
    if !is_kept_by(level) {
        return Ok(());
    }
    match fs::remove_file(level.path()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_in_the_working_directory_and_another_cache_has_none() {
        let place = tempfile::tempdir().unwrap();
        let file = placed(Level::new("file").unwrap(), place.path()).unwrap();
        assert_eq!(file.path(), place.path().join("cache.haypile"));
        assert!(is_placed(&file));
        let memory = Level::new("memory").unwrap();
        assert_eq!(placed(memory.clone(), place.path()).unwrap(), memory);
        assert!(!is_placed(&memory.with_path("/x").unwrap()));
    }

    #[test]
    fn the_file_is_removed_where_it_is_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let file = placed(Level::new("file").unwrap(), place.path()).unwrap();
        fs::write(file.path(), "old").unwrap();
        let other = place.path().join("other");
        fs::write(&other, "kept").unwrap();
        for _ in 0..2 {
            remove(&file).unwrap();
            assert!(!fs::exists(file.path()).unwrap());
        }
        let memory = Level::new("memory").unwrap().with_path(other.to_str().unwrap()).unwrap();
        remove(&memory).unwrap();
        assert!(fs::exists(other).unwrap());
    }
}
