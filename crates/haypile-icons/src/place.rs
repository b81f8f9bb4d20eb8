//! The file of a user's cache.

use std::env;
use std::error::Error;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use haypile::url::{CacheUrl, Level};
use haypile::{Cache, OpenError};

/// The size of a user's cache: some ten thousand icons of 32 by 32 pixels.
const SIZE: &str = "64MiB";
/// The size of an entry for which the cache's own index is made. The default, 256 bytes, makes one that is eight times
/// as large, and readers that use all of it have all of it in memory.
const ENTRY_SIZE: &str = "2KiB";

/// The longest wait for another process that replaces the file.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The pause between two attempts to be the process that replaces it.
const PAUSE: Duration = Duration::from_millis(5);

/// An opened cache of icons, with its URL, and the reason if its file was unusable and was replaced by an empty one.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenedCache {
    /// The open cache of icons.
    pub cache: Cache,
    /// The URL of the cache of icons.
    pub url: CacheUrl,
    /// The reason why the existing cache file could not be used, if it was replaced by an empty one.
    pub replaced: Option<String>,
}

/// The error of an icon cache that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// No folder can hold the cache's file.
    #[error("no folder for the icon cache can be used: {0}")]
    Folder(#[from] io::Error),
    /// The file cannot be opened, made or replaced.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Opens this user's cache of icons, in the file of [`cache_url`]. A file that is truncated,
/// damaged, of an older format or not a cache is replaced by an empty one, because icons can be
/// rendered again.
///
/// # Errors
///
/// [`CacheError`]. The file of a newer program is one that cannot be opened.
pub fn open_cache() -> Result<OpenedCache, CacheError> {
    Ok(open(cache_url()?.levels()[0].clone())?)
}

/// Opens the cache of icons in the file of this path, as [`open_cache`] does with the user's own.
///
/// # Errors
///
/// [`CacheError`].
pub fn open_cache_at(path: &Path) -> Result<OpenedCache, CacheError> {
    Ok(open(cache_url_at(path)?.levels()[0].clone())?)
}

/// Opens the icon cache that a level of a URL names, and replaces its file if it cannot be used.
pub(crate) fn open(level: Level) -> Result<OpenedCache, OpenError> {
    let url = CacheUrl::from(level.clone());
    let opened = |cache, replaced| OpenedCache { cache, url: url.clone(), replaced };
    let open = || Cache::open(&url.to_string());
    let unusable = match open() {
        Err(error) if error.is_unusable_file() => error,
        other => return Ok(opened(other?, None)),
    };
    // Of several processes that find it so, one replaces it, and the others open the new file.
    let Some(_alone) = lock_folder(level.path()) else { return Err(unusable) };
    match open() {
        Err(error) if error.is_unusable_file() => {}
        other => return Ok(opened(other?, None)),
    }
    let replacing = CacheUrl::from(level.with_option("recreate", "yes")?);
    Ok(opened(Cache::open(&replacing.to_string())?, Some(reason(&unusable))))
}

/// Locks the folder of a file against other processes that replace it; `None` if one has it for too long.
fn lock_folder(path: &Path) -> Option<File> {
    let folder = File::open(path.parent()?).ok()?;
    let begin = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LONGEST_WAIT => thread::sleep(PAUSE),
            Err(_) => return None,
        }
    }
}

/// Returns the reason of an error, without the advice that follows it: this program has taken it.
fn reason(error: &OpenError) -> String {
    let mut last: &dyn Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    text.split_once("; ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

impl OpenedCache {
    /// Returns the opened cache of icons, and logs a warning if its file was replaced.
    pub(crate) fn warned(self) -> Cache {
        if let Some(reason) = &self.replaced {
            let path = self.url.levels()[0].path().display();
            log::warn!("{path} was replaced by an empty cache of icons: {reason}");
        }
        self.cache
    }
}

/// Returns the URL of this user's cache of icons: `icons.haypile` in `$XDG_CACHE_HOME` or
/// `~/.cache`; if that is missing or on a network file system, in a folder of the user in
/// `/var/tmp`.
///
/// # Errors
///
/// No folder is usable: what exists belongs to another user, or others may write it.
pub fn cache_url() -> io::Result<CacheUrl> {
    cache_url_at(&folder()?.join("icons.haypile"))
}

/// Returns the URL of a cache of icons in the file of this path, with settings that suit the size of icons.
///
/// # Errors
///
pub fn cache_url_at(path: &Path) -> io::Result<CacheUrl> {
    let path = std::path::absolute(path)?;
    let level = Level::new("file").and_then(|level| level.with_path(path));
    let level = level.and_then(|level| level.with_option("size", SIZE));
    let level = level.and_then(|level| level.with_option("entry_size", ENTRY_SIZE));
    Ok(level.map_err(io::Error::other)?.into())
}

fn folder() -> io::Result<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = || Some(absolute("HOME")?.join(".cache"));
    if let Some(cache) = absolute("XDG_CACHE_HOME").or_else(home) {
        let folder = cache.join("haypile");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        if made.is_ok() && is_own(&folder).is_ok() && !is_network(&folder) {
            return Ok(folder);
        }
    }
    let user = rustix::process::geteuid().as_raw();
    let folder = PathBuf::from(format!("/var/tmp/haypile-{user}"));
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => is_own(&folder)?,
    }
    Ok(folder)
}

/// Whether a folder is this user's alone: in `/var/tmp` somebody else may have made it first.
fn is_own(folder: &Path) -> io::Result<()> {
    let metadata = folder.symlink_metadata()?;
    let shown = folder.display();
    if !metadata.is_dir() {
        return Err(io::Error::other(format!("{shown} is not a folder")));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        let text = format!("{shown} belongs to another user, or others may write it");
        return Err(io::Error::other(text));
    }
    Ok(())
}

/// NFS, CIFS, SMB2, 9p, AFS, Ceph, FUSE: statfs(2).
fn is_network(folder: &Path) -> bool {
    const KINDS: [u32; 7] =
        [0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x5346_414F, 0x00C3_6400, 0x6573_5546];
    #[cfg(target_os = "linux")]
    if let Ok(stat) = rustix::fs::statfs(folder) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a 32-bit number"
        )]
        return KINDS.contains(&(stat.f_type as u32));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_path_whatever_it_is_called() {
        for path in ["/a,size=1/b", "/a+b %41?#/c", "/p%2fq/d", "/x -> memory:/e"] {
            let url = cache_url_at(Path::new(path)).unwrap().to_string();
            let parsed: CacheUrl = url.parse().unwrap();
            assert_eq!(
                (parsed.levels().len(), parsed.levels()[0].path()),
                (1, Path::new(path)),
                "{url}"
            );
        }
    }
}
