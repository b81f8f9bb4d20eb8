//! The trace readers: a byte for the format, one for the options, and the bytes of a trace.
//!
//! `cargo +nightly fuzz run readers`

#![no_main]

#[path = "../../crates/haypile-sim/tests/support/hostile.rs"]
mod hostile;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let [format, option, bytes @ ..] = input {
        hostile::check(bytes, &hostile::options_of(*format, *option));
    }
});
