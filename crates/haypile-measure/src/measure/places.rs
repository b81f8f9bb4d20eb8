//! Working directories of runners, in which subjects keep their files.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Case, Contender, Surroundings, no_place};

/// A source of empty working directories, one for each sample, which the sample's processes share.
/// Each is removed afterwards.
#[derive(Debug)]
pub struct Places {
    root: TempDir,
    /// Number of folders made so far. Each has a name of its own: processes that a killed runner
    /// has started may still write into the last one.
    made: Cell<u64>,
}

impl Places {
    /// Creates a source of working directories for samples within a directory, on the file system
    /// that is to be measured.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let root = TempDir::with_prefix_in("haypile-lab-", directory)?;
        Ok(Self { root, made: Cell::new(0) })
    }

    /// Creates the working directory for the next sample, which exists until `self` is dropped.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn next(&self) -> io::Result<PathBuf> {
        self.made.set(self.made.get() + 1);
        let place = self.place();
        fs::create_dir(&place)?;
        Ok(place)
    }

    /// There is one at a time.
    fn place(&self) -> PathBuf {
        self.root.path().join(self.made.get().to_string())
    }
}

impl Surroundings for Places {
    fn before(&self, _case: &Case, _contender: &Contender) -> io::Result<PathBuf> {
        self.next()
    }

    fn after(&self, _case: &Case, _contender: &Contender) -> Result<Vec<(String, u64)>, String> {
        fs::remove_dir_all(self.place()).map_err(|error| no_place(&error))?;
        Ok(Vec::new())
    }

    fn kept(&self) -> io::Result<TempDir> {
        TempDir::with_prefix_in("kept-", self.root.path())
    }
}
