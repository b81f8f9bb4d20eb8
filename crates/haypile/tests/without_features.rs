//! A build without a method of compression: `cargo test -p haypile --no-default-features --test without_features`.

#![cfg(not(all(feature = "lz4", feature = "zstd")))]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use haypile::compress::{CompressedStore, Compression};
use haypile::memory::MemoryBuilder;
use haypile::{Cache, SetOptions};

/// A stored form of a thousand bytes, as far as this build reads it.
#[cfg(not(feature = "lz4"))]
const LZ4: &[u8] = b"\xF9hp\xF9\x01\xE8\x07____a block of LZ4";
#[cfg(not(feature = "zstd"))]
const ZSTD: &[u8] = b"\xF9hp\xF9\x02\xE8\x07____a frame of Zstandard";

#[test]
fn a_value_of_an_absent_method_is_an_error_that_names_the_feature() {
    let inner = MemoryBuilder::new(1 << 20).store().unwrap();
    let cache =
        Cache::new(Arc::new(CompressedStore::new(Arc::clone(&inner), Compression::Lz4, 256)));
    #[cfg(not(feature = "lz4"))]
    check(&cache, LZ4, "lz4");
    #[cfg(not(feature = "zstd"))]
    check(&cache, ZSTD, "zstd");
}

fn check(cache: &Cache, stored: &[u8], feature: &str) {
    // The decorated store would wrap it.
    let other = MemoryBuilder::new(1 << 20).store().unwrap();
    let _ = other.set(b"key", stored, &SetOptions::set()).unwrap();
    let store = CompressedStore::new(other, Compression::Lz4, 256);
    let reader = Cache::new(Arc::new(store));
    for error in [reader.get("key").unwrap_err(), reader.get_pinned("key").unwrap_err()] {
        assert!(error.to_string().contains(&format!("feature '{feature}'")), "{error}");
    }
    // The value stays, for a program that can read it; new ones are stored as they are.
    assert!(reader.contains("key").unwrap());
    cache.set("new", vec![b'a'; 1_000]).unwrap();
    assert_eq!(cache.get("new").unwrap().unwrap(), vec![b'a'; 1_000]);
}

#[test]
fn a_url_that_asks_for_an_absent_method_is_refused() {
    for method in ["lz4", "zstd"] {
        let opened = Cache::open(&format!("memory:compress={method}"));
        let is_here = if method == "lz4" { cfg!(feature = "lz4") } else { cfg!(feature = "zstd") };
        match opened {
            Ok(_) => assert!(is_here),
            Err(error) => {
                assert!(error.to_string().contains(&format!("feature '{method}'")), "{error}")
            }
        }
    }
}
