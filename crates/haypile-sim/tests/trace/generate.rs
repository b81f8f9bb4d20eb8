//! Generated traces: the promised output, and the distributions they claim to have.

use std::fmt::Write;

use haypile_sim::Trace;
use haypile_sim::trace::generate::{Mixture, SizePer, Sizes, Spec, SpecError};
use haypile_sim::trace::{BuildOptions, Key, Op, Request, TraceBuilder, TraceError};
use xxhash_rust::xxh3::xxh3_64;

fn spec(mixture: &str, requests: u64) -> Spec {
    Spec::new(mixture.parse().unwrap(), requests)
}

fn number(request: &Request<'_>) -> u64 {
    match request.key {
        Key::Number(number) => number,
        Key::Text(text) => panic!("{text:?}"),
    }
}

fn keys(spec: &Spec) -> Vec<u64> {
    spec.generator().unwrap().map(|request| number(&request)).collect()
}

fn build(spec: &Spec) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    spec.generator().unwrap().run(&mut builder).unwrap();
    builder.finish().unwrap()
}

/// The fingerprint of a trace's requests, as text that does not depend on our own formats.
fn fingerprint(spec: &Spec) -> u64 {
    let mut text = String::new();
    for request in spec.generator().unwrap() {
        let (key, op) = (number(&request), request.op as u8);
        writeln!(text, "{key} {op} {}", request.size_bytes.unwrap_or(0)).unwrap();
    }
    xxh3_64(text.as_bytes())
}

/// The promise of `generate`: these values never change. If this test fails, the change is wrong,
/// not the test.
#[test]
fn the_output_is_pinned() {
    let zipf = Spec { seed: 1, ..spec("zipf:keys=1000000,exponent=0.99", 12) };
    assert_eq!(keys(&zipf), GOLDEN_ZIPF);

    // The assumptions about a recorded trace are part of the promise.
    let base = build(&zipf).assume_writes(0.5, 9).unwrap();
    let base = base.assume_sizes(&"normal:mean=100,sd=9,per=request".parse().unwrap(), 9).unwrap();
    assert_eq!(base.ops().unwrap(), [0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0]);
    let sizes: Vec<u32> = base.sizes().unwrap().iter().map(|size| size.get()).collect();
    assert_eq!(sizes, [101, 91, 101, 98, 92, 103, 87, 108, 117, 98, 106, 121]);

    for (mixture, sizes, expected) in GOLDEN {
        let sizes = sizes.map(|sizes| sizes.parse().unwrap());
        let spec = Spec { seed: 42, sizes, writes: 0.2, deletes: 0.05, ..spec(mixture, 10_000) };
        assert_eq!(fingerprint(&spec), expected, "{mixture} {sizes:?}");
    }
}

const GOLDEN_ZIPF: [u64; 12] =
    [87, 165, 0, 41589, 347_092, 599, 2082, 45882, 9, 673_137, 377, 47580];
const GOLDEN: [(&str, Option<&str>, u64); 10] = [
    ("zipf:keys=5000,exponent=0.99", None, 0x378d_9d2a_a6d2_c622),
    ("zipf:keys=5000,exponent=1", None, 0x9ee6_1592_16a2_9175),
    ("zipf:keys=281474976710656,exponent=1.5", Some("fixed:bytes=4KiB"), 0x2de7_22e3_ee1a_ceaa),
    ("uniform:keys=5000", Some("uniform:min=100,max=2000"), 0x1e8b_f205_d38d_5000),
    (
        "scan:keys=5000,length=70",
        Some("uniform:min=100,max=2000,per=request"),
        0x92bc_5510_201e_ed61,
    ),
    ("loop:keys=3000", Some("normal:mean=10000,sd=512"), 0x8dff_31cb_5af7_9249),
    (
        "hotspot:keys=5000,hot=100,every=1000",
        Some("normal:mean=10000,sd=512,per=request"),
        0x8d64_6e7e_ca88_54a8,
    ),
    (
        "zipf:keys=2000,exponent=0.8@3+scan:keys=900",
        Some("lognormal:median=4096,sigma=1.5"),
        0xaaf3_1519_b294_d3a3,
    ),
    (
        "uniform:keys=100+loop:keys=50,from=50",
        Some("lognormal:median=9,sigma=2,per=request"),
        0xd2dd_ede0_e451_e5ba,
    ),
    ("uniform:keys=300", Some("pareto:min=100,shape=1.2"), 0x3a5e_1dd6_ccc6_cc5d),
];

/// Pearson's statistic; its mean is the number of classes - 1.
fn chi_square(counts: &[u64], expected: impl Fn(usize) -> f64) -> f64 {
    let parts = counts.iter().enumerate().map(|(n, &count)| {
        let expected = expected(n);
        (count as f64 - expected).powi(2) / expected
    });
    parts.sum()
}

fn count(keys: &[u64], classes: usize) -> Vec<u64> {
    let mut counts = vec![0; classes];
    for &key in keys {
        counts[usize::try_from(key).unwrap()] += 1;
    }
    counts
}

/// Six standard deviations of the statistic: beyond chance, and the seed is fixed anyway.
fn assert_fits(counts: &[u64], expected: impl Fn(usize) -> f64) {
    let freedom = counts.len() as f64 - 1.0;
    let statistic = chi_square(counts, expected);
    let distance = (statistic - freedom) / (2.0 * freedom).sqrt();
    assert!(distance.abs() < 6.0, "{statistic} for {freedom}");
}

#[test]
fn zipf_is_exact() {
    for exponent in [0.0, 0.5, 0.99, 1.0, 1.000_000_001, 2.0] {
        let ranks = if exponent > 1.5 { 20 } else { 200 };
        let n = 200_000;
        let keys = keys(&spec(&format!("zipf:keys={ranks},exponent={exponent}"), n));
        let weight = |rank: usize| (rank as f64).powf(-exponent);
        let sum: f64 = (1..=ranks).map(weight).sum();
        assert_fits(&count(&keys, ranks), |key| n as f64 * weight(key + 1) / sum);
    }
    assert_eq!(keys(&spec("zipf:keys=1,exponent=0.99", 3)), [0, 0, 0]);
}

#[test]
fn uniform_is_uniform() {
    let keys = keys(&spec("uniform:keys=100", 50_000));
    assert_fits(&count(&keys, 100), |_| 500.0);
}

#[test]
fn orders_are_exact() {
    assert_eq!(keys(&spec("loop:keys=3", 7)), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(keys(&spec("scan:keys=3", 7)), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(keys(&spec("loop:keys=2,from=10", 3)), [10, 11, 10]);
    let runs = keys(&spec("scan:keys=50,length=10", 1000));
    for run in runs.chunks(10) {
        assert!(run.windows(2).all(|pair| (pair[0] + 1) % 50 == pair[1]), "{run:?}");
    }
    let starts = runs.iter().step_by(10).collect::<std::collections::BTreeSet<_>>();
    assert!(starts.len() > 30, "{starts:?}");
}

#[test]
fn the_hot_set_moves() {
    let keys = keys(&spec("hotspot:keys=1000,hot=100,every=5000,share=0.9", 55_000));
    for (period, keys) in keys.chunks(5000).enumerate() {
        let hot = (period as u64 * 100) % 1000;
        let hits = keys.iter().filter(|&&key| (hot..hot + 100).contains(&key)).count();
        // 0.9, and a tenth of the rest: 4,550 of 5,000, with a deviation of 20.
        assert!(hits.abs_diff(4550) < 120, "{period}: {hits}");
    }
}

#[test]
fn mixtures_keep_weights_and_key_ranges() {
    let mixed = keys(&spec("loop:keys=10@3 + loop:keys=5", 40_000));
    let (first, second): (Vec<u64>, Vec<u64>) = mixed.iter().partition(|&&key| key < 10);
    assert!(first.len().abs_diff(30_000) < 600, "{}", first.len());
    assert!(first.iter().zip((0..10).cycle()).all(|(&key, expected)| key == expected));
    assert!(second.iter().zip((10..15).cycle()).all(|(&key, expected)| key == expected));

    let shared = keys(&spec("loop:keys=10+uniform:keys=10,from=0", 1000));
    assert!(shared.iter().all(|&key| key < 10));
}

#[test]
fn seeds_matter_and_parts_do_not_disturb_each_other() {
    let base = spec("uniform:keys=1000000", 1000);
    let other = Spec { seed: 1, ..base.clone() };
    assert_eq!(keys(&base), keys(&base));
    assert_ne!(keys(&base), keys(&other));
    let with_more =
        Spec { sizes: Some("fixed:bytes=1".parse().unwrap()), writes: 0.5, ..base.clone() };
    assert_eq!(keys(&base), keys(&with_more));
}

#[test]
fn operations_have_their_shares() {
    let spec = Spec {
        writes: 0.3,
        deletes: 0.1,
        sizes: Some("fixed:bytes=10".parse().unwrap()),
        ..spec("uniform:keys=10", 100_000)
    };
    let mut counts = [0_usize; 3];
    for request in spec.generator().unwrap() {
        counts[request.op as usize] += 1;
        assert_eq!(request.size_bytes.is_none(), request.op == Op::Delete);
    }
    assert!(counts[0].abs_diff(60_000) < 900 && counts[1].abs_diff(30_000) < 900, "{counts:?}");
}

fn sizes(sizes: &str, requests: u64) -> Vec<f64> {
    let sizes: Sizes = sizes.parse().unwrap();
    assert_eq!(sizes.per, SizePer::Request);
    let spec = Spec { sizes: Some(sizes), ..spec("uniform:keys=10", requests) };
    spec.generator().unwrap().map(|request| request.size_bytes.unwrap() as f64).collect()
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt())
}

#[test]
fn sizes_have_their_distribution() {
    let n = 100_000;
    let (mean, sd) = mean_and_sd(&sizes("normal:mean=10000,sd=512,per=request", n));
    assert!((mean - 10_000.0).abs() < 8.0 && (sd - 512.0).abs() < 6.0, "{mean} {sd}");

    let uniform = sizes("uniform:min=1KB,max=2KB,per=request", n);
    let (mean, sd) = mean_and_sd(&uniform);
    assert!((mean - 1500.0).abs() < 5.0 && (sd - 289.0).abs() < 3.0, "{mean} {sd}");
    assert!(uniform.iter().all(|bytes| (1000.0..=2000.0).contains(bytes)));

    let logs: Vec<f64> = sizes("lognormal:median=100000,sigma=1.5,per=request", n)
        .into_iter()
        .map(f64::ln)
        .collect();
    let (mean, sd) = mean_and_sd(&logs);
    assert!((mean - 100_000_f64.ln()).abs() < 0.03 && (sd - 1.5).abs() < 0.02, "{mean} {sd}");

    let pareto = sizes("pareto:min=1000,shape=1.2,per=request", n);
    for factor in [2.0, 10.0, 100.0_f64] {
        let above = pareto.iter().filter(|&&bytes| bytes > 1000.0 * factor).count() as f64;
        let expected = n as f64 * factor.powf(-1.2);
        assert!((above - expected).abs() < 5.0 * expected.sqrt(), "{factor}: {above} {expected}");
    }
}

#[test]
fn sizes_stay_with_their_key_unless_told_otherwise() {
    let base = Spec {
        sizes: Some("lognormal:median=4096,sigma=1".parse().unwrap()),
        ..spec("uniform:keys=100", 2000)
    };
    let mut by_key = std::collections::HashMap::new();
    for request in base.generator().unwrap() {
        let known = *by_key.entry(number(&request)).or_insert(request.size_bytes);
        assert_eq!(known, request.size_bytes);
    }
    let distinct = by_key.values().collect::<std::collections::HashSet<_>>();
    assert!(distinct.len() > 90, "{}", distinct.len());
}

fn writes(ops: &[u8]) -> usize {
    // The numbers of the operations are part of the format.
    ops.iter().map(|&op| usize::from(op == 1)).sum()
}

#[test]
fn what_a_trace_lacks_is_assumed() {
    let trace = build(&spec("zipf:keys=500,exponent=0.9", 10_001));
    let sizes = "normal:mean=10000,sd=512,per=request".parse().unwrap();
    let with_sizes = trace.assume_sizes(&sizes, 7).unwrap();
    assert_eq!(with_sizes.ids(), trace.ids());
    let bytes: Vec<f64> =
        with_sizes.sizes().unwrap().iter().map(|size| f64::from(size.get())).collect();
    let (mean, sd) = mean_and_sd(&bytes);
    assert!((mean - 10_000.0).abs() < 25.0 && (sd - 512.0).abs() < 20.0, "{mean} {sd}");
    assert!(with_sizes.assume_sizes(&sizes, 7).unwrap().image() == with_sizes.image());
    assert!(with_sizes.assume_sizes(&sizes, 8).unwrap().image() != with_sizes.image());

    let written = with_sizes.assume_writes(0.3, 7).unwrap();
    let ops = written.ops().unwrap();
    assert_eq!(writes(ops), 3000);
    let early = writes(&ops[..5000]);
    assert!(early.abs_diff(1500) < 150, "{early}");
    assert_eq!(written.sizes(), with_sizes.sizes());
    let all = written.assume_writes(1.0, 7).unwrap();
    assert!(all.ops().unwrap().iter().all(|&op| op == Op::Write as u8));
    let none = trace.assume_writes(0.0, 7).unwrap();
    assert!(none.ops().unwrap().iter().all(|&op| op == Op::Read as u8));
    for share in [-0.1, 1.1, f64::NAN] {
        let error = trace.assume_writes(share, 7).unwrap_err();
        assert!(matches!(error, TraceError::Share { .. }), "{error}");
    }
}

#[test]
fn the_sink_can_stop() {
    let mut left = 3;
    let mut sink = |_: Request<'_>| {
        left -= 1;
        if left == 0 { Err(TraceError::Share { share: 2.0 }) } else { Ok(()) }
    };
    let endless = spec("uniform:keys=10", u64::MAX).generator().unwrap();
    endless.run(&mut sink).unwrap_err();
    assert_eq!(left, 0);
}

#[test]
fn errors_list_what_is_allowed() {
    let error = |text: &str| text.parse::<Mixture>().unwrap_err().to_string();
    assert_eq!(
        error("zipfian:keys=10"),
        "unknown pattern 'zipfian' (known: zipf:keys=N,exponent=X[,from=N]  \
         uniform:keys=N[,from=N]  scan:keys=N[,length=N][,from=N]  loop:keys=N[,from=N]  \
         hotspot:keys=N,hot=N,every=N[,share=X][,from=N])"
    );
    assert_eq!(
        error("zipf:keys=10"),
        "'zipf' needs 'exponent=' (write zipf:keys=N,exponent=X[,from=N])"
    );
    assert_eq!(
        error("loop:keys=10,length=3"),
        "unknown field 'length' of 'loop' (write loop:keys=N[,from=N])"
    );
    assert_eq!(error("loop:keys=0"), "invalid 'keys=0': write a number from 1 to 281474976710656");
    assert_eq!(
        error("loop:keys=7@0"),
        "invalid '@weight=0': write a number above 0 and up to 1000000000"
    );
    for text in [
        "",
        "+",
        "zipf",
        "loop:keys=1+",
        "loop:keys=-1",
        "loop:keys",
        "zipf:keys=1,exponent=nan",
        "zipf:keys=1,exponent=inf",
        "hotspot:keys=5,hot=6,every=1",
        "hotspot:keys=5,hot=5,every=0",
        "scan:keys=5,length=0",
        "loop:keys=1@nan",
        "loop:keys=1,keys=2",
    ] {
        error(text);
    }
    for text in [
        "fixed",
        "fixed:bytes=0",
        "fixed:bytes=5GiB",
        "uniform:min=5,max=4",
        "normal:mean=1",
        "normal:mean=nan,sd=1",
        "pareto:min=1,shape=0",
        "fixed:bytes=1,per=day",
        "zipf:keys=1",
    ] {
        text.parse::<Sizes>().unwrap_err();
    }
    let wrong = |change: fn(&mut Spec)| {
        let mut spec = spec("loop:keys=1", 1);
        change(&mut spec);
        spec.generator().err().unwrap()
    };
    for error in [
        wrong(|spec| spec.writes = f64::NAN),
        wrong(|spec| (spec.writes, spec.deletes) = (0.6, 0.6)),
        wrong(|spec| spec.mixture.parts.clear()),
        wrong(|spec| spec.mixture.parts[0].from = Some(u64::MAX)),
        wrong(|spec| spec.mixture.parts[0].weight = f64::INFINITY),
    ] {
        assert!(matches!(error, SpecError::Value { .. }), "{error}");
    }
}
