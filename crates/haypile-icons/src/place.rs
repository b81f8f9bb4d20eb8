//! The file of a user's cache.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The size of a user's cache: some ten thousand icons of 32 by 32 pixels.
const SIZE: &str = "64MiB";

/// The URL of this user's cache of icons: `icons.haypile` in `$XDG_CACHE_HOME` or `~/.cache`; where that
/// is on a network file system or is missing, in a folder of the user's own in `/var/tmp`.
///
/// # Errors
///
/// No folder is usable: what exists belongs to another user, or others may write it.
pub fn cache_url() -> io::Result<String> {
    let folder = folder()?;
    let path = folder.join("icons.haypile");
    match path.to_str() {
        Some(path) => Ok(format!("file:{path},size={SIZE}")),
        None => Err(io::Error::other(format!("{}: the path is not UTF-8", path.display()))),
    }
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
