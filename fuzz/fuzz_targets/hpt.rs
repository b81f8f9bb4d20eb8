//! Whatever bytes claim to be an `.hpt` file: they are refused, or everything they tell can be told.

#![no_main]

use haypile_sim::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|image: Vec<u8>| {
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
    assert_eq!(trace.next_use_within(0).expect("a temporary file").len(), requests);
});
