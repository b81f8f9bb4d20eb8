//! Reading returns the written entries, in reverse order.

use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, SystemTime};

use haypile::memory::snapshot::{ReadOptions, SnapshotError, SnapshotReader, SnapshotWriter};
use proptest::prelude::*;

use crate::support::{Entry, entries, image, limited, now, options, read, salvage, write};

fn is_alive(entry: &Entry) -> bool {
    entry.expires.is_none_or(|expires| expires > now())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_has_not_expired_comes_back_least_used_first(entries in entries()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        let (summary, _) = write(&path, options(), &entries).unwrap();
        let alive: Vec<Entry> = entries.iter().filter(|entry| is_alive(entry)).cloned().collect();
        prop_assert_eq!(summary.entries, alive.len() as u64);
        prop_assert_eq!(summary.left_out, (entries.len() - alive.len()) as u64);
        prop_assert_eq!(summary.file_bytes, std::fs::metadata(&path).unwrap().len());
        let payload: usize = alive
            .iter()
            .map(|entry| entry.key.len() + entry.value.len() + entry.marks.len())
            .sum();
        prop_assert_eq!(summary.payload_bytes, payload as u64);

        let mut back = read(&path, u64::MAX).unwrap();
        back.reverse();
        prop_assert!(back == alive, "{} of {} entries", back.len(), alive.len());
    }

    /// Entries that were alive when the snapshot was made and have expired when it is read.
    #[test]
    fn what_has_expired_since_is_skipped(entries in entries(), later_ns in 0..12u64) {
        let later = now() + Duration::from_nanos(later_ns);
        let image = image(&entries);
        let alive = |entry: &&Entry| entry.expires.is_none_or(|expires| expires > later);
        let expected: Vec<&Entry> = entries.iter().filter(|e| is_alive(e)).filter(alive).collect();
        let options = ReadOptions { now: later, ..limited(u64::MAX) };
        let mut reader =
            SnapshotReader::from_source(Cursor::new(&image), Path::new("image"), options).unwrap();
        prop_assert_eq!(reader.remaining(), expected.len() as u64);
        for expected in expected.into_iter().rev() {
            prop_assert_eq!(reader.next_entry().unwrap(), Some(expected.lent()));
        }
        prop_assert_eq!(reader.next_entry().unwrap(), None);
        prop_assert_eq!(reader.remaining(), 0);
    }
}

#[test]
fn an_empty_snapshot_has_no_entries() {
    assert_eq!(salvage(&image(&[])).unwrap(), (Vec::new(), 0));
}

#[test]
fn a_snapshot_says_what_it_is_of_and_when_it_was_made() {
    let image = image(&[Entry::new("key", "value")]);
    let reader =
        SnapshotReader::from_source(Cursor::new(image), Path::new("i"), limited(u64::MAX)).unwrap();
    assert_eq!(reader.store(), "memory://?size=1MiB");
    assert_eq!(reader.created(), now());
    assert_eq!(reader.remaining(), 1);
}

#[test]
fn times_beyond_what_the_format_holds_are_brought_within() {
    let far = now() + Duration::from_secs(1 << 40);
    let before_epoch = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40);
    let mut entry = Entry::new("key", "value");
    (entry.expires, entry.written) = (Some(far), far);
    let back = salvage(&image(std::slice::from_ref(&entry))).unwrap().0.remove(0);
    let last = SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::MAX);
    assert_eq!((back.expires, back.written), (Some(last), now()));

    (entry.expires, entry.written) = (None, before_epoch);
    let back = salvage(&image(std::slice::from_ref(&entry))).unwrap().0.remove(0);
    let first = now() - Duration::from_secs(u64::from(u32::MAX));
    assert_eq!(back.written, first);

    entry.expires = Some(before_epoch);
    assert_eq!(salvage(&image(&[entry])).unwrap().0, []);
}

#[test]
fn a_name_of_a_store_is_cut_between_characters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let mut options = options();
    options.store = "x".to_owned() + &"\u{e9}".repeat(40_000);
    write(&path, options, &[]).unwrap();
    let reader = SnapshotReader::open(&path, limited(0)).unwrap();
    assert_eq!(reader.store().len(), 65_535);
}

#[test]
fn a_key_that_is_too_long_is_refused_and_the_rest_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let mut writer = SnapshotWriter::create(&path, options()).unwrap();
    writer.push(Entry::new("one", "1").lent()).unwrap();
    let error = writer.push(Entry::new(vec![0; 65_536], "2").lent()).unwrap_err();
    assert!(matches!(error, SnapshotError::KeyTooLong { key_bytes: 65_536 }));
    writer.push(Entry::new("three", "3").lent()).unwrap();
    writer.finish().unwrap();
    let keys: Vec<_> = read(&path, u64::MAX).unwrap().into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [b"three".to_vec(), b"one".to_vec()]);
}

/// The same entries yield the same bytes, which never change, because later versions have to read
/// them.
#[test]
fn the_bytes_are_those_that_were_published() {
    let mut second = Entry::new("b", "22");
    second.expires = Some(now() + Duration::from_nanos(1));
    second.written = now() - Duration::from_secs(7);
    second.uses = 0;
    second.marks = b"8 bytes.".to_vec();
    let image = image(&[Entry::new("a", "1"), second]);
    assert_eq!(image.len(), 64 + 19 + 2 * 24 + 13 + 32 + 56);
    assert_eq!(&image[..16], b"\x89HPS\r\n\x1a\n\x02\0\0\0\x13\0\0\0");
    assert_eq!(image[16..24], 1_800_000_000_000_000_000u64.to_le_bytes());
    let block = &image[83..];
    assert_eq!(block[..8], [1, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(block[8..24], [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(block[24..32], [1, 0, 0, 1, 7, 0, 0, 0]);
    assert_eq!(block[32..40], 1_800_000_000_000_000_001u64.to_le_bytes());
    assert_eq!(&block[48..61], b"a1b228 bytes.");
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&image), 0x2318_d70b_1251_4d53);
}
