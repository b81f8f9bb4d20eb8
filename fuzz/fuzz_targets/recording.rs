//! Whatever claims to be a recording: its header and the checksums of its blocks are made sound, so
//! that the fuzzer gets behind them.
//!
//! `cargo +nightly fuzz run recording`

#![no_main]

use haypile_policy::recording::{BLOCK_HEADER_BYTES, Block, BlockHeader, FileHeader, HEADER_BYTES};
use haypile_sim::trace::format::{Format, ReadOptions, TraceReader};
use haypile_sim::trace::{Request, TraceError};
use libfuzzer_sys::fuzz_target;

/// Requests after which a sink has had enough.
const ENOUGH: u64 = 1 << 20;

fuzz_target!(|input: (bool, Vec<(u64, u64, u8, Vec<u8>)>, Vec<u8>)| {
    let (hashed_keys, blocks, rest) = input;
    look_at(&rest);
    let header = FileHeader { origin_unix_ns: 1 << 60, process: 1, hashed_keys };
    let mut bytes = header.to_bytes().to_vec();
    for (first_ns, floor_ns, records, payload) in blocks {
        let payload_bytes = u32::try_from(payload.len()).expect("an input is short");
        let block = Block::Records { payload_bytes, records: records.into(), stripe: 0 };
        bytes.extend(BlockHeader { block, first_ns, floor_ns }.to_bytes(&payload));
        bytes.extend(payload);
    }
    look_at(&bytes);
    bytes.extend(rest);
    look_at(&bytes);
    bytes.truncate(bytes.len().saturating_sub(BLOCK_HEADER_BYTES).max(HEADER_BYTES));
    look_at(&bytes);
});

fn look_at(bytes: &[u8]) {
    let options = ReadOptions { format: Some(Format::Recording), ..ReadOptions::default() };
    let mut count = 0;
    let mut sink = |_: Request<'_>| {
        count += 1;
        if count > ENOUGH { Err(TraceError::Interrupted) } else { Ok(()) }
    };
    let report =
        TraceReader::from_reader("t", bytes, &options).and_then(|reader| reader.read(&mut sink));
    match report {
        Ok(report) => assert!(report.requests == count && count > 0),
        Err(error) => assert!(error.to_string().len() < 2_000, "{error}"),
    }
}
