//! What tells a file whose pages are as processes left them from one that a loss of power or a copy
//! has put together.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::xxh3_64;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A number for this boot and this file: its device, its inode and when that came to be. Never zero.
///
/// Where the system does not tell the boot, it is another one each time: then every value is verified.
pub(super) fn of(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    let boot = fs::read(BOOT_ID).ok().filter(|boot| !boot.is_empty());
    let boot = boot.map_or_else(|| RandomState::new().build_hasher().finish(), |id| xxh3_64(&id));
    // Where file systems know it: an inode's number is soon used again.
    let born = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let born = born.map_or(0, crate::clock::nanos);
    let numbers = [boot, metadata.dev(), metadata.ino(), born];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Ok(xxh3_64(&bytes).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_another_stamp_and_the_file_keeps_its_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("one");
        fs::write(&path, "x").expect("a file");
        let stamp = |name: &str| {
            of(&File::open(directory.path().join(name)).expect("a file")).expect("a stamp")
        };
        let before = stamp("one");
        fs::write(&path, "yy").expect("written");
        assert_eq!(stamp("one"), before);
        fs::copy(&path, directory.path().join("two")).expect("copied");
        assert_ne!(stamp("two"), before);
    }
}
