//! Which file systems can hold a file that processes share by mapping.

use std::fs::File;

/// Magic numbers of `statfs(2)`, and what they are called.
const NETWORK: [(i64, &str); 11] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB2"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x7375_7245, "Coda"),
];

/// The name of the network file system that a file is on, if it is on one.
pub(super) fn network(file: &File) -> Option<&'static str> {
    name(rustix::fs::fstatfs(file).ok()?.f_type)
}

#[expect(clippy::allow_attributes, reason = "the type differs between platforms")]
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the type differs")]
fn name(kind: rustix::fs::FsWord) -> Option<&'static str> {
    // Sign extension of 32-bit numbers differs as well.
    let kind = kind as i64 & 0xFFFF_FFFF;
    NETWORK.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_and_local_ones_pass() {
        assert_eq!(name(0x6969), Some("NFS"));
        assert_eq!(name(0xFE53_4D42), Some("SMB2"));
        for local in [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E] {
            assert_eq!(name(local), None);
        }
        assert_eq!(network(&tempfile::tempfile().expect("a file")), None);
    }
}
