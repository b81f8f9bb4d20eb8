//! Damaged files: an error, or only genuine entries.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use haypile::memory::snapshot::{Damage, SnapshotError, SnapshotReader};
use proptest::prelude::*;

use crate::support::{Entry, image, limited, now, salvage, write_private};

fn small(range: std::ops::Range<u32>) -> Vec<Entry> {
    let entry = |at: u32| {
        let mut entry = Entry::new(format!("key {at}"), vec![at.to_le_bytes()[0]; at as usize]);
        entry.expires =
            at.is_multiple_of(3).then(|| now() + Duration::from_secs(u64::from(at) + 1));
        entry.written = now() - Duration::from_secs(u64::from(at));
        entry
    };
    range.map(entry).collect()
}

/// Returns three blocks: a large value between small ones.
fn entries() -> Vec<Entry> {
    let large = Entry::new("large", vec![7; 1 << 20]);
    [small(0..10), vec![large], small(10..20)].concat()
}

/// Checks that a damaged image yields a part of the written entries, in the order of reading.
fn check(image: &[u8], entries: &[Entry]) -> bool {
    let Ok((back, errors)) = salvage(image) else { return false };
    let mut written = entries.iter().rev();
    for entry in &back {
        assert!(written.any(|written| written == entry), "{:?} was never written", entry.key);
    }
    assert!(errors > 0 || back.len() == entries.len(), "entries are missing without a word");
    errors == 0
}

/// Every byte of small images, and some of those of three blocks: both ends, and one in many
/// between.
fn cases() -> [(Vec<Entry>, usize); 2] {
    [(small(0..12), 1), (entries(), 20_011)]
}

fn offsets(image: &[u8], step: usize) -> impl Iterator<Item = usize> {
    let end = image.len();
    (0..end).filter(move |at| at % step == 0 || (step > 1 && at + 160 > end && at % 3 == 0))
}

#[test]
fn every_changed_byte_is_found() {
    for (entries, step) in cases() {
        let mut image = image(&entries);
        assert!(check(&image, &entries));
        for at in offsets(&image.clone(), step) {
            for change in [1, 0x80, 0xff] {
                image[at] ^= change;
                assert!(!check(&image, &entries), "byte {at} of {} changed unseen", image.len());
                image[at] ^= change;
            }
        }
    }
}

#[test]
fn every_truncation_is_found() {
    for (entries, step) in cases() {
        let image = image(&entries);
        for bytes in offsets(&image, step) {
            assert!(salvage(&image[..bytes]).is_err(), "{bytes} bytes of {}", image.len());
        }
        assert!(salvage(&[&image[..], b"\0"].concat()).is_err(), "a byte more");
    }
}

#[test]
fn other_blocks_survive_a_damaged_one() {
    let entries = entries();
    let mut image = image(&entries);
    let at = image.len() / 2;
    image[at] ^= 1;
    let (back, errors) = salvage(&image).unwrap();
    assert_eq!(errors, 1);
    let small: Vec<Entry> = entries.into_iter().rev().filter(|e| e.key != b"large").collect();
    assert_eq!(back, small);
}

#[test]
fn a_newer_version_is_named() {
    let mut image = image(&entries());
    image[8] = 3;
    let error = salvage(&image).unwrap_err();
    assert!(matches!(error, SnapshotError::UnknownVersion { major: 3, minor: 0, .. }));
    assert!(error.to_string().contains("version 3.0"), "{error}");
}

#[test]
fn an_unknown_minor_version_is_read() {
    // Only its checksum tells a changed minor version from a damaged one; with an empty name of the
    // store, it is that of the header's bytes.
    let mut image = image(&[Entry::new("a", "b")]);
    image[10] = 1;
    sign_header(&mut image);
    assert_eq!(salvage(&image).unwrap(), (vec![Entry::new("a", "b")], 0));
}

/// Major version 1 is the same without groups.
#[test]
fn the_version_before_groups_is_read() {
    let entries = entries();
    let mut image = image(&entries);
    image[8] = 1;
    sign_header(&mut image);
    let (mut back, errors) = salvage(&image).unwrap();
    back.reverse();
    assert_eq!(errors, 0);
    assert!(back == entries, "{} of {} entries", back.len(), entries.len());
}

/// Makes the checksum of the header right.
fn sign_header(image: &mut [u8]) {
    let covered = [&image[..56], &image[64..64 + 19]].concat();
    let checksum = xxhash_rust::xxh3::xxh3_64(&covered);
    image[56..64].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn what_is_no_snapshot_is_no_snapshot() {
    let noise: Vec<u8> = (0..5_000u32).map(|at| ((at * at) >> 3).to_le_bytes()[0]).collect();
    for bytes in [&b""[..], b"\x89HPS", b"key=value\n", &[0; 4096], &noise] {
        assert!(matches!(salvage(bytes), Err(SnapshotError::NotASnapshot { .. })));
    }
    let start = &image(&[])[..63];
    let error = salvage(start).unwrap_err();
    assert!(matches!(error, SnapshotError::Damaged { what: Damage::End, .. }), "{error}");
}

/// A footer and a table with valid checksums that claim more than there is.
#[test]
fn lies_with_sound_checksums_are_found() {
    let sound = image(&[Entry::new("key", "value")]);
    let table = sound.len() - 56 - 32;
    for (at, lie) in [
        (table, u64::MAX),
        (table, 0),
        (table, 2),
        (table + 8, u64::MAX),
        (table + 8, 0),
        (table + 8, 1 << 40),
        (table + 32, 0),
        (table + 32, u64::MAX),
        (table + 32, 63),
        (table + 40, 0),
        (table + 40, 2),
        (table + 40, 1 << 59),
        (table + 40, u64::MAX),
        (table + 48, 0),
        (table + 56, 1 << 50),
    ] {
        let mut image = sound.clone();
        image[at..at + 8].copy_from_slice(&lie.to_le_bytes());
        reseal(&mut image);
        let error = salvage(&image).map(|back| back.1);
        assert!(!matches!(error, Ok(0)), "{lie} at {} of the table was believed", at - table);
    }
    // Heads that claim more than the block has.
    for (at, lie) in [(0, u64::from(u16::MAX)), (16, u64::MAX), (16, u64::MAX - 2), (16, 6)] {
        let mut image = sound.clone();
        image[83 + at..83 + at + 8].copy_from_slice(&lie.to_le_bytes());
        reseal(&mut image);
        assert_eq!(salvage(&image).unwrap(), (Vec::new(), 1), "{lie} at {at} was believed");
    }
}

/// Recomputes the checksums of an image of one block.
fn reseal(image: &mut [u8]) {
    use xxhash_rust::xxh3::xxh3_64;
    let table = image.len() - 56 - 32;
    let heads = xxh3_64(&image[83..83 + 24]);
    image[table + 16..table + 24].copy_from_slice(&heads.to_le_bytes());
    let checksum = xxh3_64(&image[table..table + 32]);
    image[table + 64..table + 72].copy_from_slice(&checksum.to_le_bytes());
    let checksum = xxh3_64(&image[table + 32..table + 72]);
    image[table + 72..table + 80].copy_from_slice(&checksum.to_le_bytes());
}

/// A source that claims to be long and is empty: allocations must not trust it.
struct Hollow {
    start: Vec<u8>,
    bytes: u64,
    at: u64,
}

impl Read for Hollow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        for (byte, at) in buffer.iter_mut().zip(self.at..) {
            *byte = usize::try_from(at).ok().and_then(|at| self.start.get(at)).map_or(0, |b| *b);
        }
        self.at += buffer.len() as u64;
        Ok(buffer.len())
    }
}

impl Seek for Hollow {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(by) => self.bytes.checked_add_signed(by).unwrap(),
            SeekFrom::Current(by) => self.at.checked_add_signed(by).unwrap(),
        };
        Ok(self.at)
    }
}

#[test]
fn an_enormous_sparse_file_is_refused_at_once() {
    let hollow = Hollow { start: image(&[]), bytes: 1 << 60, at: 0 };
    let error = SnapshotReader::from_source(hollow, Path::new("hollow"), limited(u64::MAX));
    assert!(matches!(error, Err(SnapshotError::Damaged { what: Damage::End, .. })));
}

/// A source that shrinks while it is read.
#[test]
fn a_file_that_shrinks_is_an_error_and_ends() {
    let image = image(&entries());
    let mut shrinking = image.clone();
    let options = limited(u64::MAX);
    let mut reader =
        SnapshotReader::from_source(Cursor::new(&mut shrinking), Path::new("i"), options).unwrap();
    assert!(reader.next_entry().unwrap().is_some());
    drop(reader);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    write_private(&path, &image);
    let mut reader = SnapshotReader::open(&path, options).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    for _ in 0..3 {
        reader.next_entry().unwrap_err();
    }
    assert!(reader.next_entry().unwrap().is_none());
}

proptest! {
    /// Several changes at once, at any position.
    #[test]
    fn damaged_images_give_nothing_false(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let entries: Vec<Entry> = (0..30u8).map(|at| Entry::new([at], [at; 40])).collect();
        let mut image = image(&entries);
        let original = image.clone();
        for (at, byte) in changes {
            let at = at.index(image.len());
            image[at] = byte;
        }
        if let Some(cut) = cut {
            image.truncate(cut.index(image.len()));
        }
        prop_assert_eq!(check(&image, &entries), image == original);
    }
}
