//! Where runners work: what a subject keeps on disk lies there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::measure::{Case, Contender, Surroundings};

/// An empty directory for each sample, which its processes share. Nothing of it is left.
#[derive(Debug)]
pub struct Places {
    root: TempDir,
}

impl Places {
    /// Places in a directory, on the file system that is to be measured.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self { root: TempDir::with_prefix_in("haypile-micro-", directory)? })
    }

    /// There is one at a time.
    fn place(&self) -> PathBuf {
        self.root.path().join("place")
    }
}

impl Surroundings for Places {
    fn before(&self, _case: &Case, _contender: &Contender) -> io::Result<PathBuf> {
        let place = self.place();
        fs::create_dir(&place)?;
        Ok(place)
    }

    fn after(&self, _case: &Case, _contender: &Contender) -> io::Result<Vec<(String, u64)>> {
        fs::remove_dir_all(self.place())?;
        Ok(Vec::new())
    }
}
