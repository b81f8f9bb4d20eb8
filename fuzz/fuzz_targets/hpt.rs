//! Whatever bytes claim to be an `.hpt` file: they are refused, or everything they tell can be told.

#![no_main]

use haypile_sim::Trace;
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|image: Vec<u8>| {
    look_at(image.clone());
    look_at(resealed(image));
});

fn look_at(image: Vec<u8>) {
    let Ok(trace) = Trace::from_image("fuzz.hpt", image) else { return };
    for id in trace.ids() {
        assert!(id.get() < trace.keys());
    }
    for id in 0..trace.keys() {
        let _ = trace.key(id);
        assert!(trace.key_bytes(id) <= 65_535);
    }
    let requests = trace.requests();
    assert!(trace.sizes().is_none_or(|column| column.len() == requests));
    assert!(trace.ops().is_none_or(|column| column.len() == requests));
    assert!(trace.times_us().is_none_or(|column| column.len() == requests));
    assert_eq!(trace.compute_next_use().expect("it fits into memory").len(), requests);
}

/// The image with a sound start, length and checksums: no fuzzer would find these by chance, and
/// would never get behind them.
fn resealed(mut image: Vec<u8>) -> Vec<u8> {
    if image.len() < 64 {
        return image;
    }
    image[..8].copy_from_slice(&haypile_sim::trace::hpt::MAGIC);
    image[8..16].copy_from_slice(&[1, 0, 0, 0, 1, 2, 3, 4]);
    let bytes = image.len() as u64;
    image[16..24].copy_from_slice(&bytes.to_le_bytes());
    let columns = usize::from(image[36]).min((image.len() - 64) / 32);
    image[36..40].copy_from_slice(&u32::try_from(columns).expect("a byte").to_le_bytes());
    for entry in (0..columns).map(|n| 64 + 32 * n) {
        let u64_at = |at: usize| {
            let bytes = image[at..at + 8].try_into().expect("eight bytes");
            usize::try_from(u64::from_le_bytes(bytes)).ok()
        };
        let range = u64_at(entry + 8)
            .zip(u64_at(entry + 16))
            .and_then(|(offset, bytes)| Some(offset..offset.checked_add(bytes)?));
        if let Some(column) = range.and_then(|range| image.get(range)) {
            let checksum = xxh3_64(column);
            image[entry + 24..entry + 32].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let checked = [&image[..56], &image[64..64 + 32 * columns]].concat();
    image[56..64].copy_from_slice(&xxh3_64(&checked).to_le_bytes());
    image
}
