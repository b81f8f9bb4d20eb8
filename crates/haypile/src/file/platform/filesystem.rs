//! Which file systems can hold a file that processes share by mapping.

use std::fs::File;

/// The kind of file system that a cache file is on: local, a network file system, or one whose data
/// a program provides (FUSE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum FileSystem {
    Local,
    Network(&'static str),
    /// A file system whose data is where some program decides.
    Unknown(&'static str),
}

/// Magic numbers of `statfs(2)`, and what they are called.
const NETWORK: [(i64, &str); 20] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB2"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x7375_7245, "Coda"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0xAAD7_AAEA, "PanFS"),
    (0x786F_4256, "a shared folder of VirtualBox"),
    (0xBACB_ACBC, "a shared folder of VMware"),
    (0x7C7C_6673, "a shared folder of Parallels"),
    (0x564C, "NCP"),
];
const FUSE: i64 = 0x6573_5546;
const TMPFS: i64 = 0x0102_1994;
const BTRFS: i64 = 0x9123_683E;
const ZFS: i64 = 0x2FC1_2FC1;

/// The free space that a cache needs on a file system that takes room for pages as they are written:
/// as much as the cache is large, within these bounds.
const LEAST_NEEDED_BYTES: u64 = 64 << 20;
const MOST_NEEDED_BYTES: u64 = 1 << 30;

/// Returns the file system that a file is on, as far as its type identifies it.
pub(in crate::file) fn of(file: &File) -> FileSystem {
    kind(file).map_or(FileSystem::Local, by_kind)
}

/// Returns whether a file is on a file system that keeps its files in memory.
pub(in crate::file) fn is_memory(file: &File) -> bool {
    kind(file) == Some(TMPFS)
}

/// Returns whether a file is on a file system that writes changed blocks to other places (copy on
/// write), unless told not to.
pub(in crate::file) fn copies_on_write(file: &File) -> bool {
    kind(file) == Some(BTRFS)
}

/// Returns whether zeros written to a file take room on its file system. On a file system that
/// compresses all data they do not, and no call can reserve room.
pub(in crate::file) fn keeps_zeros(file: &File) -> bool {
    kind(file) != Some(ZFS)
}

/// The free space of a file system on which writes to mapped pages take new room, even for an
/// allocated file. Without room, the kernel neither writes the page nor returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct FreeSpace {
    pub(in crate::file) free_bytes: u64,
}

impl FreeSpace {
    /// Returns the free space in bytes that the file system of a cache file of this size needs.
    pub(in crate::file) fn needed_bytes(file_bytes: u64) -> u64 {
        file_bytes.clamp(LEAST_NEEDED_BYTES, MOST_NEEDED_BYTES)
    }

    /// Returns whether too little space is free on the file system for writes to a mapped cache
    /// file of this size.
    pub(in crate::file) fn is_low(self, file_bytes: u64) -> bool {
        self.free_bytes < Self::needed_bytes(file_bytes)
    }
}

/// Returns the free space of the file system of a file, if writes to its mapped pages can run out
/// of it; otherwise `None`.
pub(in crate::file) fn free_space(file: &File) -> Option<FreeSpace> {
    #[cfg(feature = "test-hooks")]
    if let Some(free_bytes) = crate::file::hooks::free_bytes() {
        return Some(FreeSpace { free_bytes });
    }
    if !copies_on_write(file) {
        return None;
    }
    let found = rustix::fs::fstatvfs(file).ok()?;
    let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
    Some(FreeSpace { free_bytes })
}

fn by_kind(kind: i64) -> FileSystem {
    if kind == FUSE {
        return FileSystem::Unknown("FUSE");
    }
    let found = NETWORK.iter().find(|(magic, _)| *magic == kind);
    found.map_or(FileSystem::Local, |(_, name)| FileSystem::Network(name))
}

#[expect(clippy::allow_attributes, reason = "the type differs between platforms")]
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the type differs")]
fn kind(file: &File) -> Option<i64> {
    // Sign extension of 32-bit numbers differs as well.
    Some(rustix::fs::fstatfs(file).ok()?.f_type as i64 & 0xFFFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_and_local_ones_pass() {
        assert_eq!(by_kind(0x6969), FileSystem::Network("NFS"));
        assert_eq!(by_kind(0xFE53_4D42), FileSystem::Network("SMB2"));
        assert_eq!(by_kind(FUSE), FileSystem::Unknown("FUSE"));
        for local in [0xEF53, TMPFS, 0x5846_5342, BTRFS] {
            assert_eq!(by_kind(local), FileSystem::Local);
        }
        assert_eq!(of(&tempfile::tempfile().expect("a file")), FileSystem::Local);
    }
}
