//! The file of a user's cache.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use haypile::url::{CacheUrl, Level};

/// The size of a user's cache: some ten thousand icons of 32 by 32 pixels.
const SIZE: &str = "64MiB";
/// The size of an entry for which the cache's own index is made. The default, 256 bytes, makes one that is eight times
/// as large, and readers that use all of it have all of it in memory.
const ENTRY_SIZE: &str = "2KiB";

/// The URL of this user's cache of icons: `icons.haypile` in `$XDG_CACHE_HOME` or `~/.cache`; where that
/// is on a network file system or is missing, in a folder of the user's own in `/var/tmp`.
///
/// # Errors
///
/// No folder is usable: what exists belongs to another user, or others may write it.
pub fn cache_url() -> io::Result<CacheUrl> {
    cache_url_at(&folder()?.join("icons.haypile"))
}

/// The URL of a cache of icons in this file, made for entries of their size.
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
