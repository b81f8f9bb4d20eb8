//! Whatever bytes claim to be a snapshot: they are refused, or every block gives entries of its own
//! or one error, and all of it ends.
//!
//! `cargo +nightly fuzz run snapshot`

#![no_main]

use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, SystemTime};

use haypile::memory::snapshot::{ReadOptions, SnapshotReader};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

const HEADER_BYTES: usize = 64;
const HEAD_BYTES: usize = 24;
const BLOCK_INFO_BYTES: usize = 32;
const FOOTER_BYTES: usize = 56;

fuzz_target!(|image: Vec<u8>| {
    for max_bytes in [0, 500, u64::MAX] {
        look_at(&image, max_bytes);
        look_at(&of_blocks(&image), max_bytes);
        look_at(&resealed(image.clone()), max_bytes);
    }
});

fn look_at(image: &[u8], max_bytes: u64) {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
    let charge = |key_bytes: u64, value_bytes: u64| key_bytes.saturating_add(value_bytes);
    let options = ReadOptions { now, max_bytes, charge, allow_shared: false };
    let Ok(mut reader) =
        SnapshotReader::from_source(Cursor::new(image), Path::new("fuzz"), options)
    else {
        return;
    };
    let (mut charged, mut calls) = (0, 0);
    loop {
        calls += 1;
        assert!(calls <= image.len(), "each call uses up a head or a block");
        match reader.next_entry() {
            Ok(Some(entry)) => {
                assert!(entry.expires.is_none_or(|expires| expires > now));
                charged += (entry.key.len() + entry.value.len()) as u64;
            }
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert!(charged <= max_bytes);
}

/// The image with sound magics, lengths and checksums of header, table and footer: no fuzzer would
/// find these by chance, and would never get behind them. What the heads and the table say stays.
fn resealed(mut image: Vec<u8>) -> Vec<u8> {
    if image.len() < HEADER_BYTES + FOOTER_BYTES {
        return image;
    }
    let footer = image.len() - FOOTER_BYTES;
    let blocks = usize::from(image[footer + 8]) % ((footer - HEADER_BYTES) / BLOCK_INFO_BYTES + 1);
    let table = footer - blocks * BLOCK_INFO_BYTES;
    image[..8].copy_from_slice(b"\x89HPS\r\n\x1a\n");
    image[8..16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    let header_sum = xxh3_64(&image[..56]);
    image[56..64].copy_from_slice(&header_sum.to_le_bytes());
    let table_sum = xxh3_64(&image[table..footer]);
    for (at, value) in [(0, table as u64), (8, blocks as u64), (32, table_sum)] {
        image[footer + at..footer + at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let footer_sum = xxh3_64(&image[footer..footer + 40]);
    image[footer + 40..footer + 48].copy_from_slice(&footer_sum.to_le_bytes());
    image[footer + 48..].copy_from_slice(b"HPS-END\n");
    image
}

/// A sound file with one block of these heads and this payload. The first byte says how many heads.
fn of_blocks(input: &[u8]) -> Vec<u8> {
    let Some((entries, body)) = input.split_first() else { return Vec::new() };
    let entries = usize::from(*entries) % (body.len() / HEAD_BYTES + 1);
    let (heads, payload) = body.split_at(entries * HEAD_BYTES);
    let mut image = vec![0; HEADER_BYTES];
    image.extend_from_slice(body);
    for value in [entries as u64, payload.len() as u64, xxh3_64(heads), xxh3_64(payload)] {
        image.extend_from_slice(&value.to_le_bytes());
    }
    let totals = [0, 1, entries as u64, payload.len() as u64, 0, 0, 0];
    image.extend(totals.into_iter().flat_map(u64::to_le_bytes));
    resealed(image)
}
