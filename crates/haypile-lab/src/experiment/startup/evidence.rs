//! Evidence that a cache was written and read: its files before and after a start.

use std::path::PathBuf;

use haypile_measure::meter::Residency;

use crate::experiment::cold::{Cold, ColdFiles};

/// The files of the measured cache, whose reading or change shows that a started program used the
/// cache.
#[derive(Debug)]
pub(super) struct Evidence {
    paths: Vec<PathBuf>,
}

/// The result of a check whether a started program read its cache's files: read, unread, empty, or
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A start read the cache.
    Read,
    /// The cache has files, and no start read any of them.
    Unread,
    /// The cache has no files, or empty ones.
    Empty,
    /// The cache's files stay in memory, so that reading leaves no trace.
    Unknown,
}

/// The state of a cache's files: path, size and modification time of each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CacheState(Vec<(PathBuf, u64, (i64, i64))>);

impl CacheState {
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, bytes, _)| bytes).sum()
    }
}

impl Evidence {
    pub(super) fn new(paths: &[PathBuf]) -> Option<Self> {
        (!paths.is_empty()).then(|| Self { paths: paths.to_vec() })
    }

    fn files(&self) -> ColdFiles {
        let mut files = ColdFiles::default();
        files.add(&self.paths);
        files
    }

    /// Returns the state of the cache's files (paths, sizes and times), which is another one after
    /// a command has changed any of them.
    pub(super) fn state(&self) -> CacheState {
        CacheState(self.files().metadata())
    }

    /// Drops the cache's files from memory before a start; returns the files, and how much of them
    /// is still in memory.
    pub(super) fn before(&self) -> anyhow::Result<(ColdFiles, Residency)> {
        let files = self.files();
        let residency = files.drop(Cold::Fadvise)?;
        Ok((files, residency))
    }

    /// Returns whether the started program has read the cache's files: those that it read are in
    /// memory again.
    pub(super) fn after((files, before): &(ColdFiles, Residency)) -> Use {
        if before.file_bytes == 0 {
            return Use::Empty;
        }
        if before.resident_bytes > 0 {
            return if before.resident_bytes < before.file_bytes
                && files.residency().resident_bytes > before.resident_bytes
            {
                Use::Read
            } else {
                Use::Unknown
            };
        }
        if files.residency().resident_bytes > 0 { Use::Read } else { Use::Unread }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_change_of_any_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        fs::write(&path, [1; 10]).unwrap();
        let evidence = Evidence::new(&[folder.path().to_owned()]).unwrap();
        let before = evidence.state();
        assert_eq!((before.bytes(), &evidence.state()), (10, &before));
        let other = std::time::SystemTime::UNIX_EPOCH;
        fs::File::options().write(true).open(&path).unwrap().set_modified(other).unwrap();
        assert_ne!(evidence.state(), before);
        fs::remove_file(&path).unwrap();
        assert_eq!(evidence.state().bytes(), 0);
    }

    #[test]
    fn a_cache_that_is_read_leaves_a_trace_and_one_that_is_not_leaves_none() {
        // A folder on a disk, if the tests have one: in a file system in memory nothing can be told.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("cache");
        let evidence = Evidence::new(&[folder.path().to_owned()]).unwrap();
        assert_eq!(Evidence::after(&evidence.before().unwrap()), Use::Empty);
        fs::write(&path, vec![1; 100_000]).unwrap();
        let before = evidence.before().unwrap();
        let unread = Evidence::after(&before);
        fs::read(&path).unwrap();
        let read = Evidence::after(&before);
        if before.1.resident_bytes == 0 {
            assert_eq!((unread, read), (Use::Unread, Use::Read));
        } else {
            assert_eq!((unread, read), (Use::Unknown, Use::Unknown));
        }
    }
}
