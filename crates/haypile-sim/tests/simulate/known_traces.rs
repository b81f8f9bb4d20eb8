//! Real traces whose answers other programs have computed, if they lie next to the checkout.
//!
//! The directory is `../shared` next to the workspace, or the one that `HAYPILE_SHARED` names.

use std::fs::{self, File};
use std::path::Path;

use haypile_sim::Trace;
use haypile_sim::reuse::StackDistances;
use haypile_sim::trace::info::TraceInfo;
use haypile_sim::trace::{BuildOptions, Key, Request, Sink, TraceBuilder};

use crate::support::simulation::shared_traces;

/// Reads libCacheSim's oracleGeneral with plain means: a reader of ours has its own tests.
fn cloud_physics(traces: &Path) -> (Trace, Vec<i64>) {
    let file = File::open(traces.join("cloudPhysicsIO.oracleGeneral.bin.zst")).unwrap();
    let bytes = zstd::decode_all(file).unwrap();
    let mut builder =
        TraceBuilder::new(BuildOptions { memory_bytes: 300_000, ..BuildOptions::default() });
    let mut next = Vec::new();
    for record in bytes.chunks_exact(24) {
        let seconds = u32::from_le_bytes(record[..4].try_into().unwrap());
        let size = u32::from_le_bytes(record[12..16].try_into().unwrap());
        builder
            .push(Request {
                size_bytes: Some(size.into()),
                time_us: Some(u64::from(seconds) * 1_000_000),
                ..Request::read(Key::Number(u64::from_le_bytes(record[4..12].try_into().unwrap())))
            })
            .unwrap();
        next.push(i64::from_le_bytes(record[16..].try_into().unwrap()));
    }
    (builder.finish().unwrap(), next)
}

#[test]
fn stack_distances_give_the_known_misses_of_lru() {
    let Some(traces) = shared_traces() else { return };
    let (trace, _) = cloud_physics(&traces);
    let mut distances = StackDistances::with_keys(trace.keys());
    let distances: Vec<_> = trace.ids().iter().map(|id| distances.access(id.get())).collect();
    let mut compared = 0;
    for line in fs::read_to_string(traces.join("known-answers.csv")).unwrap().lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let ["cloudPhysicsIO", "LRU", size, "objects", requests, misses, ..] = fields[..] else {
            continue;
        };
        assert_eq!(trace.requests(), requests.parse::<usize>().unwrap());
        let size: u64 = size.parse().unwrap();
        let beyond = distances.iter().filter(|distance| distance.is_none_or(|d| d >= size));
        assert_eq!(beyond.count(), misses.parse::<usize>().unwrap(), "{line}");
        compared += 1;
    }
    assert!(compared >= 4, "{compared}");
}

#[test]
fn next_uses_are_those_of_the_file() {
    let Some(traces) = shared_traces() else { return };
    let (trace, expected) = cloud_physics(&traces);
    let next = trace.next_use_within(1 << 16).unwrap();
    for (n, (next, expected)) in next.iter().zip(expected).enumerate() {
        // The file counts from 1.
        let expected = if expected < 0 { i64::from(u32::MAX) } else { expected - 1 };
        assert_eq!(i64::from(next.get()), expected, "request {n}");
    }
}

#[test]
fn info_of_a_real_trace() {
    let Some(traces) = shared_traces() else { return };
    let info = TraceInfo::of(&cloud_physics(&traces).0, 10);
    assert_eq!((info.requests, info.keys, info.working_set.len()), (113_872, 48_974, 10));
    let new: u64 = info.working_set.iter().map(|window| window.new_keys).sum();
    assert_eq!(new, 48_974);
    let reused: u64 = info.reuse.histogram.iter().map(|class| class.requests).sum();
    assert_eq!(reused, 113_872 - 48_974);
}
