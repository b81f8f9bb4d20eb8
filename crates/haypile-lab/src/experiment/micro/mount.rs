//! The file system of a directory, on which the results of files depend.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the kind of the file system that a directory is on, in Linux's words: `ext4`, `tmpfs`.
/// `None` where the system does not state it.
pub fn file_system(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    kind(&fs::read_to_string("/proc/self/mountinfo").ok()?, &directory)
}

/// Of the mounts above a directory the nearest, and of several at one place the last. The lines are
/// those of `proc_pid_mountinfo(5)`.
fn kind(mounts: &str, directory: &Path) -> Option<String> {
    let above = mounts.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let point = unescaped(mount.split(' ').nth(4)?);
        let kind = source.split(' ').next()?;
        directory.starts_with(&point).then(|| (point.components().count(), kind))
    });
    above.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind.to_owned())
}

/// Blanks and the like in a path are written as three octal digits.
fn unescaped(path: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let whole =
        escapes.iter().fold(path.to_owned(), |path, (escape, char)| path.replace(escape, char));
    whole.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_counts_and_of_several_the_last() {
        let mounts = "\
            22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
            23 22 0:21 / /dev rw,nosuid shared:2 master:3 - devtmpfs devtmpfs rw\n\
            24 23 0:22 / /dev/shm rw - tmpfs tmpfs rw\n\
            25 22 0:23 / /mnt/a\\040b rw - xfs /dev/vdb rw\n\
            26 22 0:24 / /mnt rw - btrfs /dev/vdc rw\n\
            27 22 0:25 / /mnt rw - nfs4 server:/x rw\n\
            nonsense\n";
        for (directory, expected) in [
            ("/", "ext4"),
            ("/tmp/x", "ext4"),
            ("/dev/shm", "tmpfs"),
            ("/dev/shm/deep/er", "tmpfs"),
            ("/dev/shmx", "devtmpfs"),
            ("/mnt/a b/c", "xfs"),
            ("/mnt/c", "nfs4"),
        ] {
            assert_eq!(
                kind(mounts, Path::new(directory)).as_deref(),
                Some(expected),
                "{directory}"
            );
        }
        assert_eq!(kind("", Path::new("/tmp")), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn every_directory_is_on_one() {
        assert!(file_system(Path::new("/")).is_some());
        assert_eq!(file_system(Path::new("/nowhere/at/all")), None);
    }
}
