//! `TraceInfo` of traces with known answers.

use haypile_sim::Trace;
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::info::TraceInfo;
use haypile_sim::trace::{BuildOptions, Key, Op, Request, Sink, TraceBuilder};
use proptest::prelude::*;
use serde_json::json;

fn build<'a>(requests: impl IntoIterator<Item = Request<'a>>) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for request in requests {
        builder.push(request).unwrap();
    }
    builder.finish().unwrap()
}

fn numbers(keys: &[u64]) -> Trace {
    build(keys.iter().map(|&key| Request::read(Key::Number(key))))
}

#[test]
fn a_trace_made_by_hand() {
    let request = |key, bytes, op, time_us| Request {
        key: Key::Text(key),
        size_bytes: bytes,
        op,
        time_us: Some(time_us),
        ttl_us: None,
        cost_ns: None,
    };
    let trace = build([
        request(b"a", Some(100), Op::Read, 1_000_000),
        request(b"bb", Some(200), Op::Read, 1_500_000),
        request(b"a", Some(100), Op::Read, 2_000_000), // 1 key since
        request(b"a", Some(150), Op::Write, 1_900_000), // 0
        request(b"c", Some(70_000), Op::Read, 3_000_000),
        request(b"bb", Some(200), Op::Read, 4_000_000), // 2: a, c
        request(b"a", None, Op::Delete, 5_000_000),     // 2: c, bb
        request(b"d", Some(10), Op::Read, 5_000_000),
    ]);
    let info = serde_json::to_value(TraceInfo::of(&trace, 3)).unwrap();
    let zipf = info["skew"]["zipf"].clone();
    let expected = json!({
        "requests": 8, "reads": 6, "writes": 1, "deletes": 1, "keys": 4, "key_text_bytes": 5,
        "sizes": {
            "requested_bytes": 70_760,
            "distinct_bytes": 70_360,
            "by_request": {
                // 10, 100, 100, 150, 200, 200, 70,000
                "min_bytes": 10, "median_bytes": 150, "mean_bytes": 70_760.0 / 7.0,
                "p90_bytes": 70_000, "p99_bytes": 70_000, "max_bytes": 70_000,
            },
            "by_key": {
                // 10, 150, 200, 70,000
                "min_bytes": 10, "median_bytes": 150, "mean_bytes": 17_590.0,
                "p90_bytes": 70_000, "p99_bytes": 70_000, "max_bytes": 70_000,
            },
            "keys_that_change": 1,
        },
        "one_hits": { "keys": 2, "share_of_keys": 0.5, "share_of_requests": 0.25 },
        "skew": { "top_1_percent": 0.5, "top_10_percent": 0.5, "zipf": zipf },
        "reuse": {
            "first_requests": 4,
            "median": 1,
            "histogram": [
                { "from": 0, "to": 0, "requests": 1 },
                { "from": 1, "to": 1, "requests": 1 },
                { "from": 2, "to": 3, "requests": 1 },
            ],
        },
        "working_set": [
            { "first_request": 0, "requests": 3, "keys": 2, "bytes": 300, "new_keys": 2 },
            { "first_request": 3, "requests": 3, "keys": 3, "bytes": 70_350, "new_keys": 1 },
            // The deletion counts with the last known size.
            { "first_request": 6, "requests": 2, "keys": 2, "bytes": 160, "new_keys": 1 },
        ],
        "time": {
            "first_us": 1_000_000, "last_us": 5_000_000, "duration_us": 4_000_000,
            "requests_per_second": 2.0, "out_of_order": 1,
        },
    });
    assert_eq!(info, expected);
}

#[test]
fn what_is_not_there_is_not_told() {
    let info = TraceInfo::of(&numbers(&[1, 2, 3]), 10);
    assert_eq!((info.sizes, info.time, info.skew.zipf), (None, None, None));
    assert_eq!((info.reuse.median, info.reuse.histogram.len()), (None, 0));
    assert_eq!(info.working_set.len(), 3);
    assert!((info.one_hits.share_of_requests - 1.0).abs() < 1e-12);

    let info = TraceInfo::of(&numbers(&[]), 10);
    assert_eq!((info.requests, info.keys, info.working_set.len()), (0, 0, 0));
    assert!(info.skew.top_1_percent.abs() < 1e-12);

    let info = TraceInfo::of(&numbers(&[1]), 0);
    assert!(info.working_set.is_empty());

    let delete = Request { op: Op::Delete, size_bytes: Some(5), ..Request::read(Key::Number(1)) };
    let sizes = TraceInfo::of(&build([delete]), 1).sizes.unwrap();
    assert_eq!((sizes.requested_bytes, sizes.by_request, sizes.by_key), (0, None, None));
}

#[test]
fn a_line_is_fitted_exactly() {
    // 36, 18, 12 and 9 requests: 36 / rank.
    let keys = [vec![1; 36], vec![2; 18], vec![3; 12], vec![4; 9]].concat();
    let zipf = TraceInfo::of(&numbers(&keys), 1).skew.zipf.unwrap();
    assert!((zipf.exponent - 1.0).abs() < 1e-9, "{zipf:?}");
    assert!((zipf.r_squared - 1.0).abs() < 1e-9, "{zipf:?}");
}

#[test]
fn a_generated_exponent_is_found() {
    // With this many requests per key, chance hardly bends the tail.
    let spec = Spec::new("zipf:keys=200,exponent=0.8".parse().unwrap(), 200_000);
    let info = TraceInfo::of(&build(spec.generator().unwrap()), 4);
    let zipf = info.skew.zipf.unwrap();
    assert!((zipf.exponent - 0.8).abs() < 0.02 && zipf.r_squared > 0.99, "{zipf:?}");
}

#[test]
fn a_loop_has_one_distance() {
    let spec = Spec::new("loop:keys=100".parse().unwrap(), 1000);
    let info = TraceInfo::of(&build(spec.generator().unwrap()), 10);
    assert_eq!(info.reuse.median, Some(99));
    let counts: Vec<u64> = info.reuse.histogram.iter().map(|class| class.requests).collect();
    assert_eq!(counts, [0, 0, 0, 0, 0, 0, 0, 900]);
    let new: Vec<u64> = info.working_set.iter().map(|window| window.new_keys).collect();
    assert_eq!(new, [100, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert!(info.working_set.iter().all(|window| window.keys == 100));
}

fn nearest_rank(sorted: &[u32], percent: usize) -> u32 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

proptest! {
    #[test]
    fn quantiles_are_those_of_a_sorted_list(
        sizes in prop::collection::vec(
            prop_oneof![0_u32..20, 0_u32..200_000, any::<u32>()], 1..300),
    ) {
        let requests = sizes.iter().map(|&bytes| Request {
            size_bytes: Some(u64::from(bytes)),
            ..Request::read(Key::Number(u64::from(bytes % 7)))
        });
        let info = TraceInfo::of(&build(requests), 1);
        let summary = info.sizes.unwrap().by_request.unwrap();
        let mut sorted = sizes;
        sorted.sort_unstable();
        prop_assert_eq!(summary.min_bytes, sorted[0]);
        prop_assert_eq!(summary.median_bytes, nearest_rank(&sorted, 50));
        prop_assert_eq!(summary.p90_bytes, nearest_rank(&sorted, 90));
        prop_assert_eq!(summary.p99_bytes, nearest_rank(&sorted, 99));
        prop_assert_eq!(summary.max_bytes, sorted[sorted.len() - 1]);
    }
}
