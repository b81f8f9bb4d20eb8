//! What runners find on disk and what they leave there.

use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

use super::case::Part;
use crate::measure::{Case, Contender, Surroundings};

/// How much of a path comes from the name of a subject.
const NAME_CHARS: usize = 80;

/// A directory for each contender. One that writes begins with an empty one, and what it leaves is
/// kept; one that opens gets links to these files, so that nothing that it writes changes them.
#[derive(Debug)]
pub struct Places {
    root: TempDir,
    cold: bool,
}

impl Places {
    /// Places in a directory, on the disk that is to be measured. If `cold`, files are not in the
    /// system's memory when they are opened.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn new(directory: &Path, cold: bool) -> io::Result<Self> {
        Ok(Self { root: TempDir::with_prefix_in("haypile-persist-", directory)?, cold })
    }

    fn of(&self, contender: &Contender, what: &str) -> PathBuf {
        let name = format!("{}@{}", contender.subject, contender.runner.label);
        let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
        let shown: String = name.chars().take(NAME_CHARS).map(plain).collect();
        // The names of two can look alike then, and what one has written is not the other's.
        let number = BuildHasherDefault::<DefaultHasher>::default().hash_one(&name);
        self.root.path().join(format!("{shown}-{number:016x}")).join(what)
    }

    fn written(&self, contender: &Contender) -> PathBuf {
        self.of(contender, "written")
    }

    fn opened(&self, contender: &Contender) -> PathBuf {
        self.of(contender, "opened")
    }
}

impl Surroundings for Places {
    fn before(&self, case: &Case, contender: &Contender) -> io::Result<PathBuf> {
        let written = self.written(contender);
        if Part::of_case(case).is_some_and(Part::writes) {
            empty(&written)?;
            return Ok(written);
        }
        let opened = self.opened(contender);
        empty(&opened)?;
        for entry in fs::read_dir(&written)? {
            let entry = entry?;
            let path = opened.join(entry.file_name());
            fs::hard_link(entry.path(), &path)?;
            if self.cold {
                forget(&path)?;
            }
        }
        Ok(opened)
    }

    fn after(&self, case: &Case, contender: &Contender) -> io::Result<Vec<(String, u64)>> {
        let mut file_bytes = 0;
        for entry in fs::read_dir(self.written(contender))? {
            file_bytes += entry?.metadata()?.len();
        }
        if !Part::of_case(case).is_some_and(Part::writes) {
            fs::remove_dir_all(self.opened(contender))?;
        }
        Ok(vec![("file_bytes".to_owned(), file_bytes)])
    }
}

/// Makes a directory, or empties it.
fn empty(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(directory)
}

/// Writes what of a file is still in memory, and drops it there.
fn forget(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::measure::Runner;

    #[test]
    fn contenders_whose_names_look_alike_have_their_own_places() {
        let directory = tempfile::tempdir().unwrap();
        let places = Places::new(directory.path(), false).unwrap();
        let contender = |subject: &str, label: &str| Contender {
            subject: subject.parse().unwrap(),
            runner: Arc::new(Runner::haypile("haypile", label)),
            server_pid: None,
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
