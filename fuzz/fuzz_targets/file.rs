//! A file of the file store, with any bytes in any places of it: every operation answers, in bounded time,
//! and no value is wrong.
//!
//! `cargo +nightly fuzz run file`

#![no_main]

#[path = "../../crates/haypile/tests/file/work.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod work;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use haypile::{OpenError, Registry, SetOptions, Store};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

use crate::work::Known;

/// The header as far as its checksum goes: patches to it would only be refused.
const SEALED_BYTES: usize = 128;
/// Before this, every word leads to something; behind it are segments. Files of one mebibyte have less.
const LEADING_BYTES: usize = 40 << 10;

/// A sound file, and what is in it.
struct Sample {
    directory: TempDir,
    bytes: Vec<u8>,
    known: Known,
}

static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("sample");
    let mut known = Known::default();
    let store = open(&path).expect("a store");
    for number in 0..200_u64 {
        let key = format!("key-{number}").into_bytes();
        let value = match number {
            0..20 => number.to_string().into_bytes(),
            20 => work::value(number, 100_000),
            _ => work::value(number, number as usize * 37 % 2_500),
        };
        let ttl = (number % 4 == 0).then_some(Duration::from_secs(1_000_000));
        let written = store.set(&key, &value, &SetOptions::set().with_ttl(ttl));
        assert!(written.expect("a write").is_stored());
        known.note(&key, value);
    }
    drop(store);
    let bytes = fs::read(&path).expect("its bytes");
    Sample { directory, bytes, known }
});

fn open(path: &Path) -> Result<Arc<dyn Store>, OpenError> {
    let url = format!("file://{}?size=1MiB&entry_size=4KiB", path.display());
    Registry::new().open(&url)
}

fuzz_target!(|patches: &[u8]| {
    let sample = &*SAMPLE;
    let mut bytes = sample.bytes.clone();
    // Each patch: a place, how many bytes, and these.
    let mut rest = patches;
    while let [low, middle, high, length, more @ ..] = rest {
        let place = usize::from(*low) | usize::from(*middle) << 8;
        let range = match high % 4 {
            // Words of what leads to values, mostly.
            0..3 => SEALED_BYTES..LEADING_BYTES,
            _ => SEALED_BYTES..bytes.len(),
        };
        let place = (place << (high >> 6)) % (range.end - range.start - 64) + range.start;
        let place = if high & 32 == 0 { place / 8 * 8 } else { place };
        let length = usize::from(length % 64).min(more.len());
        let (patch, after) = more.split_at(length);
        bytes[place..place + length].copy_from_slice(patch);
        rest = after;
    }
    // Another inode than the sample's: for the store, a file of another boot.
    let path: PathBuf = sample.directory.path().join("patched");
    fs::write(&path, &bytes).expect("written");
    let store = open(&path).expect("its header is sound");
    let _ = haypile::file::FileCheck::of(&path, |_| {}).expect("a report");
    let _ = haypile::file::FileStat::of(&path).expect("a report");
    let seed = patches.first().copied().unwrap_or(0);
    work::go_on(&*store, &mut sample.known.clone(), seed.into());
    drop(store);
    fs::remove_file(&path).expect("removed");
});
