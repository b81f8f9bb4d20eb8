//! Files and folders as they were when they were read.
//!
//! A stamp that is equal means that nothing was changed, if it is old enough: file systems keep times
//! in steps, so that a change within the step of the reading leaves the same stamp. What is that young
//! is *racy*, and nothing that was made of it is kept (git's index has the same rule).

use std::ffi::CStr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat, stat};

/// The length in bytes of an encoded stamp (the identity and times of a file) in a value of the cache.
pub(crate) const STAMP_BYTES: usize = 40;

/// The step of times on local file systems, with room: the kernel's clock ticks every 1 to 10 ms.
const LOCAL_STEP: Duration = Duration::from_millis(40);
/// The step elsewhere: FAT counts in 2 s, and a server's clock may differ from ours.
const OTHER_STEP: Duration = Duration::from_secs(3);

/// A stamp of a file or folder: its identity, length and times, which show whether it was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    /// The length of a file; 0 for a folder, whose size means nothing.
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
}

/// The kind of object that a path names: file, folder or other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    Folder,
    File,
    Other,
}

impl Stamp {
    /// Returns the stamp (identity and times) of the file or folder of a path, following links; `None` if nothing
    /// accessible is there.
    pub(crate) fn of(path: &Path) -> Option<(Self, PathKind)> {
        stat(path).ok().map(|stat| Self::of_stat(&stat))
    }

    /// Returns the stamp (identity and times) of a file or folder, whose path ends with a zero byte, without copying
    /// the path.
    pub(crate) fn of_c_path(path: &CStr) -> Option<Self> {
        stat(path).ok().map(|stat| Self::of_stat(&stat).0)
    }

    // The types of the fields differ from platform to platform.
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        clippy::cast_lossless,
        clippy::unnecessary_cast
    )]
    fn of_stat(stat: &Stat) -> (Self, PathKind) {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => PathKind::Folder,
            FileType::RegularFile => PathKind::File,
            _ => PathKind::Other,
        };
        let ns = |seconds: i64, ns: u64| {
            let ns = i64::try_from(ns).unwrap_or(0);
            seconds.saturating_mul(1_000_000_000).saturating_add(ns)
        };
        let bytes =
            if kind == PathKind::Folder { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
        let stamp = Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            bytes,
            modified_ns: ns(
                i64::from(stat.st_mtime),
                u64::try_from(stat.st_mtime_nsec).unwrap_or(0),
            ),
            changed_ns: ns(
                i64::from(stat.st_ctime),
                u64::try_from(stat.st_ctime_nsec).unwrap_or(0),
            ),
        };
        (stamp, kind)
    }

    /// Whether the file is too recent for its stamp to show later changes: it was changed within the time resolution
    /// `step` of `now_ns`, or after it.
    pub(crate) fn is_racy(&self, now_ns: i64, step: Duration) -> bool {
        let step = i64::try_from(step.as_nanos()).unwrap_or(i64::MAX);
        self.modified_ns.max(self.changed_ns).saturating_add(step) >= now_ns
    }

    pub(crate) fn to_bytes(self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        let fields = [
            self.device.to_le_bytes(),
            self.inode.to_le_bytes(),
            self.bytes.to_le_bytes(),
            self.modified_ns.to_le_bytes(),
            self.changed_ns.to_le_bytes(),
        ];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field);
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; STAMP_BYTES]) -> Self {
        let field = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[8 * at..8 * at + 8]);
            field
        };
        Self {
            device: u64::from_le_bytes(field(0)),
            inode: u64::from_le_bytes(field(1)),
            bytes: u64::from_le_bytes(field(2)),
            modified_ns: i64::from_le_bytes(field(3)),
            changed_ns: i64::from_le_bytes(field(4)),
        }
    }
}

/// Returns the present time as file systems record it, in nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the time resolution of the file system that contains a path.
pub(crate) fn step(path: &Path) -> Duration {
    // ext2/3/4, XFS, btrfs, tmpfs, overlayfs, ZFS, f2fs, squashfs, bcachefs: statfs(2).
    const LOCAL: [u32; 9] = [
        0xEF53,
        0x5846_5342,
        0x9123_683E,
        0x0102_1994,
        0x794C_7630,
        0x2FC1_2FC1,
        0xF2F5_2010,
        0x7371_7368,
        0xCA45_1A4E,
    ];
    #[cfg(target_os = "linux")]
    if let Ok(stat) = rustix::fs::statfs(path) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a 32-bit number"
        )]
        let kind = stat.f_type as u32;
        if LOCAL.contains(&kind) {
            return LOCAL_STEP;
        }
    }
    OTHER_STEP
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_stamp_changes_with_the_file_and_survives_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(Stamp::of(&path), None);
        fs::write(&path, "one").unwrap();
        let (one, kind) = Stamp::of(&path).unwrap();
        assert_eq!(kind, PathKind::File);
        assert_eq!(Stamp::from_bytes(&one.to_bytes()), one);
        fs::write(&path, "longer").unwrap();
        assert_ne!(Stamp::of(&path).unwrap().0, one);
        let (of_folder, kind) = Stamp::of(folder.path()).unwrap();
        assert_eq!(kind, PathKind::Folder);
        let other = folder.path().join("other");
        fs::rename(&path, other).unwrap();
        // A rename changes the folder's times, if the clock has gone on since.
        assert!(of_folder.is_racy(now_ns(), Duration::from_mins(1)));
    }

    #[test]
    fn what_was_changed_within_a_step_is_racy() {
        let stamp = Stamp { modified_ns: 100, changed_ns: 1_000, ..Stamp::default() };
        let step = Duration::from_nanos(10);
        assert!(stamp.is_racy(500, step) && stamp.is_racy(1_010, step));
        assert!(!stamp.is_racy(1_011, step));
    }
}
