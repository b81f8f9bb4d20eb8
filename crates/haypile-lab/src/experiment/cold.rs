//! Files that are dropped from memory before a measurement, and the proof that they were.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::ValueEnum;
use haypile_measure::meter::{Residency, drop_from_memory};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustix::fs::{Advice, fadvise};

/// A way to make files cold, that is, to drop them from the system's page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cold {
    /// Files that are named or were seen are dropped, as any user can.
    Fadvise,
    /// The kernel drops all of the machine's files, as root can.
    Drop,
}

/// The most files that are dropped.
const MAX_FILES: usize = 50_000;

/// Reads of which the latency is the median.
const LATENCY_READS: usize = 64;
/// The size of a read.
const LATENCY_READ_BYTES: usize = 4096;
/// The size of the file that is read.
const LATENCY_FILE_BYTES: u64 = 32 << 20;

/// The files to drop from the system's page cache before a measured start of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct ColdFiles {
    /// Files that a start was seen to use. Their residency decides whether a start is cold.
    used: BTreeSet<PathBuf>,
    /// Further files that the user named, of which no start may read any.
    named: BTreeSet<PathBuf>,
    /// Whether files were left out because there were too many.
    is_cut: bool,
}

impl ColdFiles {
    /// Adds files that a measured start of the program used to those that are dropped from the page
    /// cache; they take precedence over files that the user named.
    pub(super) fn add_used<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) {
        for path in paths {
            let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
            if let Some(path) = fs::canonicalize(path).ok().filter(|_| is_file) {
                if self.used.len() >= MAX_FILES && !self.used.contains(&path) {
                    self.is_cut = true;
                    return;
                }
                self.used.insert(path);
            }
        }
    }

    /// Adds these files, and all files below these folders, to the files that are dropped from the
    /// page cache. Links to files count as their targets.
    pub(super) fn add(&mut self, paths: &[PathBuf]) {
        let mut left: Vec<PathBuf> = paths.to_vec();
        while let Some(path) = left.pop() {
            // What cannot be read cannot be dropped: it stays as it is.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_file() {
                if self.named.len() >= MAX_FILES {
                    self.is_cut = true;
                    return;
                }
                self.named.extend(fs::canonicalize(&path));
            } else if metadata.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                // A link to a folder may lead in a circle.
                let is_plain = |entry: &fs::DirEntry| {
                    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                    !is_link || entry.path().is_file()
                };
                left.extend(entries.filter(is_plain).map(|entry| entry.path()));
            }
        }
    }

    /// Returns a warning if there are more files to drop from the page cache than the limit of
    /// 50,000, so that some stay in memory; `None` if all are dropped.
    pub(super) fn left_out(&self) -> Option<String> {
        let named = self.named.difference(&self.used).count();
        let room = MAX_FILES.saturating_sub(self.used.len());
        (self.is_cut || named > room).then(|| {
            format!(
                "--cold drops {MAX_FILES} files: the {} that starts were seen to use, and of those that are named \
                 (--cold-path, --cache) the first {}; others stay in memory, as far as they are there",
                self.used.len(),
                named.min(room)
            )
        })
    }

    /// The files to drop, those that are used first.
    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.used.iter().chain(self.named.difference(&self.used)).take(MAX_FILES)
    }

    /// Drops the files from the page cache, and returns how much of those that the started program
    /// uses is still in memory. The kernel keeps pages that a process has mapped.
    ///
    /// # Errors
    ///
    /// Only root can drop all files of the machine.
    pub(super) fn drop(&self, how: Cold) -> anyhow::Result<Residency> {
        match how {
            Cold::Fadvise => {
                for file in self.all() {
                    // One that is gone in the meantime, or cannot be read, is not read either.
                    let _ = drop_from_memory(file);
                }
            }
            Cold::Drop => drop_everything()?,
        }
        Ok(self.residency())
    }

    /// Returns the path, the size and the modification time (seconds and nanoseconds) of each
    /// existing file that is dropped from the page cache.
    pub(super) fn metadata(&self) -> Vec<(PathBuf, u64, (i64, i64))> {
        let of = |path: &PathBuf| {
            let it = fs::metadata(path).ok()?;
            Some((path.clone(), it.len(), (it.mtime(), it.mtime_nsec())))
        };
        self.all().filter_map(of).collect()
    }

    /// Returns how many bytes of the files that the started program uses are in the page cache; of
    /// the files that the user named, if no file is known to be used.
    pub(super) fn residency(&self) -> Residency {
        let files = if self.used.is_empty() { &self.named } else { &self.used };
        let each = files.iter().filter_map(|file| Residency::of(file).ok());
        each.fold(Residency::default(), Residency::and)
    }
}

fn drop_everything() -> anyhow::Result<()> {
    rustix::fs::sync();
    let path = Path::new("/proc/sys/vm/drop_caches");
    let file = File::options().write(true).open(path).and_then(|mut file| file.write_all(b"3\n"));
    match file {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            bail!("--cold=drop needs root, because it writes to {}: {error}", path.display())
        }
        written => written.with_context(|| path.display().to_string()),
    }
}

/// Measures the median time of reading 4 KiB at random from a file in this folder that is not in
/// memory, which differs from disk to disk. Returns `None` if the folder's files stay in memory.
///
/// # Errors
///
/// The folder cannot be written.
pub(super) fn read_latency(folder: &Path) -> io::Result<Option<Duration>> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let block = vec![0x5a; 1 << 20];
    for _ in 0..LATENCY_FILE_BYTES >> 20 {
        file.write_all(&block)?;
    }
    drop_from_memory(file.path())?;
    if !Residency::of(file.path())?.is_cold() {
        return Ok(None);
    }
    // Without it, the system reads more than was asked for.
    fadvise(file.as_file(), 0, None, Advice::Random)?;
    let mut random = ChaCha8Rng::from_seed([7; 32]);
    let mut buffer = [0; LATENCY_READ_BYTES];
    let mut times = Vec::with_capacity(LATENCY_READS);
    for _ in 0..LATENCY_READS {
        let page = random.next_u64() % (LATENCY_FILE_BYTES / LATENCY_READ_BYTES as u64);
        let begin = Instant::now();
        file.as_file().read_exact_at(&mut buffer, page * LATENCY_READ_BYTES as u64)?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(Some(times[LATENCY_READS / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_and_circles_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/b/one"), [1; 10]).unwrap();
        fs::write(path("two"), [2; 20]).unwrap();
        std::os::unix::fs::symlink(folder.path(), path("a/circle")).unwrap();
        std::os::unix::fs::symlink(path("two"), path("a/link")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", path("a/dangling")).unwrap();
        let mut files = ColdFiles::default();
        files.add(&[path("a"), path("missing")]);
        assert_eq!(files.all().count(), 2);
        assert_eq!(files.residency().file_bytes, 30);
    }

    #[test]
    fn used_files_have_the_first_places_and_decide_what_is_cold() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("many")).unwrap();
        for number in 0..MAX_FILES + 1_000 {
            fs::write(path(&format!("many/{number}")), "x").unwrap();
        }
        fs::write(path("used"), vec![1; 10_000]).unwrap();
        let mut files = ColdFiles::default();
        files.add(&[path("many")]);
        files.add_used([path("used").as_path(), path("gone").as_path()]);
        assert_eq!(files.all().next(), Some(&fs::canonicalize(path("used")).unwrap()));
        assert_eq!(files.all().count(), MAX_FILES);
        assert_eq!(files.residency().file_bytes, 10_000, "what nobody reads says nothing");
        let text = files.left_out().unwrap();
        assert!(text.contains("the 1 that starts") && text.contains("the first 49999"), "{text}");
    }
}
