//! Stamps: they tell a file whose pages are as processes left them from one that a loss of power or
//! a copy has put together.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, StatxFlags, statx};
use xxhash_rust::xxh3::xxh3_64;

use crate::call::Call;
use crate::file::format::stamp::SURE;
use crate::file::platform::random::random;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Returns a boot stamp: a number for this boot and this file, from its device, its inode and its
/// time of creation. The first process that opens a file after a boot stores it in the header; all
/// others use the stored one.
///
/// Where the system does not tell the boot, it is another number each time. That is safe: all that
/// is in the file is verified then.
pub(in crate::file) fn of(file: &File) -> io::Result<u64> {
    let metadata = file.metadata().call("statx")?;
    let boot = boot_id().unwrap_or_else(random);
    // An inode's number is soon used again. By the system call, for not every C library has it.
    let birth = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok();
    let birth = birth.filter(|found| found.stx_mask & StatxFlags::BTIME.bits() != 0);
    let (seconds, nanos) = birth.map_or((0, 0), |found| {
        (found.stx_btime.tv_sec.cast_unsigned(), u64::from(found.stx_btime.tv_nsec))
    });
    let numbers = [boot, metadata.dev(), metadata.ino(), seconds, nanos];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Ok(xxh3_64(&bytes) | SURE)
}

/// Returns the boot, as a number; `None` where the system does not tell it.
fn boot_id() -> Option<u64> {
    #[cfg(feature = "test-hooks")]
    if let Some(text) = crate::file::hooks::boot_id() {
        return (!text.is_empty()).then(|| xxh3_64(text.as_bytes()));
    }
    let boot = std::fs::read(BOOT_ID).ok().filter(|boot| !boot.is_empty())?;
    Some(xxh3_64(&boot))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file::format::stamp::doubtful;

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
        assert_ne!(doubtful(before), before);
    }
}
