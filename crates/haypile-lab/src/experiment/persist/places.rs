//! The files that runners find on disk and leave there.

use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::path::{Path, PathBuf};

use haypile_measure::measure::{Case, Contender, Surroundings, no_place};
use haypile_measure::result::Identity;
use tempfile::TempDir;

use super::case::PersistPart;
use super::files::{copy_all, size_of_all};

/// The length of the part of a path that comes from the name of a subject.
const NAME_CHARS: usize = 80;

/// Working directories for the parts of the experiment `persist`, such as writing and opening. A
/// part that writes begins with an empty directory, whose contents are kept; a part that opens gets
/// a copy of them, because a cache may write to the file that it opens.
#[derive(Debug)]
pub struct Places {
    root: TempDir,
    cold: bool,
}

impl Places {
    /// Creates the working directories of the experiment `persist` on the disk to be measured. If
    /// `cold`, files are not in the system's page cache when they are opened.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn new(directory: &Path, cold: bool) -> io::Result<Self> {
        Ok(Self { root: TempDir::with_prefix_in("haypile-persist-", directory)?, cold })
    }

    fn of(&self, contender: &Contender, what: &str) -> PathBuf {
        let (name, program) = (contender.subject.as_str(), contender.runner.label.as_str());
        let name = Identity { name, program }.to_string();
        let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
        let shown: String = name.chars().take(NAME_CHARS).map(plain).collect();
        // The names of two can look alike then, and what one has written is not the other's.
        let number = BuildHasherDefault::<DefaultHasher>::default().hash_one(&name);
        self.root.path().join(format!("{shown}-{number:016x}")).join(what)
    }

    fn written(&self, contender: &Contender) -> PathBuf {
        self.of(contender, "written")
    }

    /// Where a runner works whose files nobody opens after it.
    fn passing(&self, contender: &Contender) -> PathBuf {
        self.of(contender, "passing")
    }
}

impl Surroundings for Places {
    fn before(&self, case: &Case, contender: &Contender) -> io::Result<PathBuf> {
        let part = part(case)?;
        let written = self.written(contender);
        if part.writes() {
            empty(&written)?;
            return Ok(written);
        }
        let passing = self.passing(contender);
        empty(&passing)?;
        if part.opens() {
            copy_all(&written, &passing, self.cold)?;
        }
        Ok(passing)
    }

    fn after(&self, case: &Case, contender: &Contender) -> Result<Vec<(String, u64)>, String> {
        self.left(case, contender).map_err(|error| no_place(&error))
    }

    fn kept(&self) -> io::Result<TempDir> {
        TempDir::with_prefix_in("kept-", self.root.path())
    }
}

impl Places {
    /// Returns the extent of what a runner left that writes or opens.
    fn left(&self, case: &Case, contender: &Contender) -> io::Result<Vec<(String, u64)>> {
        let part = part(case)?;
        if !part.writes() {
            fs::remove_dir_all(self.passing(contender))?;
        }
        if !part.writes() && !part.opens() {
            return Ok(Vec::new());
        }
        let size = size_of_all(&self.written(contender))?;
        Ok(vec![
            ("file_bytes".to_owned(), size.file_bytes),
            ("disk_bytes".to_owned(), size.disk_bytes),
        ])
    }
}

fn part(case: &Case) -> io::Result<PersistPart> {
    PersistPart::of_case(case)
        .ok_or_else(|| io::Error::other(format!("{} is not a part of persist", case.name)))
}

/// Makes a directory, or empties it.
fn empty(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(directory)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haypile_measure::measure::Runner;

    use super::*;

    #[test]
    fn contenders_whose_names_look_alike_have_their_own_places() {
        let directory = tempfile::tempdir().unwrap();
        let places = Places::new(directory.path(), false).unwrap();
        let contender = |subject: &str, label: &str| Contender {
            subject: subject.parse().unwrap(),
            runner: Arc::new(Runner::haypile("haypile", label)),
        };
        let long = format!("memory:persist=snapshot,namespace={}", "n".repeat(NAME_CHARS));
        let all = [
            contender(&long, "haypile"),
            contender(&long, "against"),
            contender("memory:policy=lru", "haypile"),
            contender("memory:policy:lru", "haypile"),
        ];
        let mut written: Vec<_> = all.iter().map(|contender| places.written(contender)).collect();
        written.sort();
        written.dedup();
        assert_eq!(written.len(), all.len());
        assert_eq!(places.written(&all[0]), places.written(&all[0]));
    }
}
