//! Any bytes as the stored form of a value: it is a value or a miss, and takes no more memory than
//! the store allows a value. And any bytes as a value come back as they were.

#![no_main]

use std::sync::{Arc, LazyLock};

use haypile::compress::{CompressedStore, Compression};
use haypile::{Registry, SetOptions, Store};
use libfuzzer_sys::fuzz_target;

struct Stores {
    inner: Arc<dyn Store>,
    lz4: CompressedStore,
    zstd: CompressedStore,
}

static STORES: LazyLock<Stores> = LazyLock::new(|| {
    let inner = Registry::new().open("memory:size=1MiB,policy=lru").expect("a memory store");
    let lz4 = CompressedStore::new(Arc::clone(&inner), Compression::Lz4, 64);
    let zstd = CompressedStore::new(Arc::clone(&inner), Compression::Zstd { level: 1 }, 64);
    Stores { inner, lz4, zstd }
});

const MARKER: [u8; 4] = [0xF9, b'h', b'p', 0xF9];

fuzz_target!(|bytes: &[u8]| {
    let Stores { inner, lz4, zstd } = &*STORES;
    let set = |store: &dyn Store, value: &[u8]| {
        let written = store.set(b"key", value, &SetOptions::set()).expect("it fits");
        assert!(written.is_stored());
    };
    if bytes.len() > 64 << 10 {
        return;
    }
    set(&**inner, &[&MARKER, bytes].concat());
    if let Some(value) = lz4.get(b"key").expect("no error") {
        assert!(value.len() as u64 <= inner.limits().max_value_bytes);
    }
    for store in [lz4, zstd] {
        set(store, bytes);
        assert_eq!(store.get(b"key").expect("no error").as_deref(), Some(bytes));
    }
});
