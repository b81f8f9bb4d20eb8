//! Whatever bytes claim to be an `.hpt` file: they are refused, or everything they tell can be told,
//! and simulated.
//!
//! `cargo +nightly fuzz run hpt`

#![no_main]

use std::ops::ControlFlow;

use haypile_sim::Trace;
use haypile_sim::curve::LruCurve;
use haypile_sim::simulate::{
    Accounting, Contender, Options, SimulateError, SizeRule, TtlRule, Windows, simulate,
};
use haypile_sim::trace::info::TraceInfo;
use haypile_sim::trace::{
    BuildOptions, Key, Op, Request, Sampling, Sink, TraceBuilder, TraceError,
};
use libfuzzer_sys::arbitrary::{self, Unstructured};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|image: Vec<u8>| {
    // Ends early only where there is nothing left to try.
    let _ = look_at_damaged(&mut Unstructured::new(&image));
    look_at(image.clone());
    look_at(resealed(image));
});

/// A sound image of a few requests, then with some bytes changed.
fn look_at_damaged(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let sampling = input
        .arbitrary::<Option<u8>>()?
        .map(|rate| Sampling::new((f64::from(rate) + 1.0) / 257.0, 1).expect("between 0 and 1"));
    let mut builder = TraceBuilder::new(BuildOptions {
        next_use: input.arbitrary()?,
        sampling,
        ..BuildOptions::default()
    });
    for _ in 0..input.int_in_range(1..=20)? {
        let text;
        let key = if input.arbitrary()? {
            text = input.arbitrary::<[u8; 3]>()?;
            Key::Text(&text[..usize::from(text[0] % 4)])
        } else {
            Key::Number(u64::from(input.arbitrary::<u8>()?))
        };
        let op = *input.choose(&[Op::Read, Op::Write, Op::Delete])?;
        let size_bytes = input.arbitrary::<Option<u32>>()?.map(u64::from);
        let (time_us, ttl_us, cost_ns) =
            (input.arbitrary()?, input.arbitrary()?, input.arbitrary()?);
        let request = Request { key, size_bytes, op, time_us, ttl_us, cost_ns };
        builder.push(request).expect("there is room for it");
    }
    let trace = builder.finish().expect("there is a request");
    look_at(trace.image().to_vec());
    let mut image = trace.image().to_vec();
    while !input.is_empty() {
        let at = input.choose_index(image.len())?;
        image[at] = input.arbitrary()?;
    }
    look_at(resealed(image));
    Ok(())
}

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
    // Only what needs the column of next uses compares it with the requests.
    let has_next_use = match trace.compute_next_use() {
        Ok(column) => column.len() == requests,
        Err(TraceError::NextUse { .. }) => false,
        Err(error) => panic!("{error}"),
    };
    let info = TraceInfo::of(&trace, 3);
    assert_eq!((info.requests, info.keys), (requests as u64, u64::from(trace.keys())));
    let written = trace.write_oracle_general(&mut std::io::sink());
    let is_deletion = |op: &u8| Op::from_number(*op) == Op::Delete;
    match written {
        // The format has none of them.
        Err(TraceError::OnlyDeletes) => {
            assert!(trace.ops().map_or(requests == 0, |ops| ops.iter().all(is_deletion)));
        }
        written => assert_eq!(written.is_ok(), has_next_use, "{written:?}"),
    }
    for accounting in Accounting::ALL {
        if accounting == Accounting::Objects || trace.sizes().is_some() {
            for sizes in [SizeRule::First, SizeRule::Changed, SizeRule::Last] {
                let windows = Windows::whole_days(&trace, 0)
                    .map_or(Windows::Equal(2), |days| Windows::Days(days.count().min(5)));
                let options = Options { sizes, windows, ..Options::new(accounting) };
                run(&trace, &options, has_next_use);
            }
        }
    }
}

fn run(trace: &Trace, options: &Options, has_next_use: bool) {
    let mut goes_on = |_| ControlFlow::Continue(());
    let never = Options { ttl: TtlRule::Never, ..*options };
    let curve = LruCurve::measure(trace, &never, &mut goes_on);
    // Images here are too small for a sample of any use.
    if trace.sample_of().is_some() {
        assert!(matches!(curve, Err(SimulateError::SmallSample { .. })));
        return;
    }
    curve.expect("there are sizes where they are needed").expect("nobody ends it");
    // Of what expires there is no optimum, and of times that a file may lack nothing is asked here.
    let has_next_use = has_next_use && !options.ttl.applies_to(trace);
    let contenders = if has_next_use { "lru,s3fifo,lirs,belady" } else { "lru,s3fifo,lirs" };
    for contender in Contender::parse_list(contenders).expect("they exist") {
        let outcome = simulate(trace, &contender, 5_000, options, &mut goes_on)
            .expect("there are sizes where they are needed")
            .expect("nobody ends it");
        let counts = outcome.counts;
        assert!(counts.cold_misses <= counts.misses);
        assert!(counts.reads() + counts.deletes <= trace.requests() as u64);
    }
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
