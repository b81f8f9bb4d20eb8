//! Real traces, if they are installed: in `shared/traces` next to the checkout, or under
//! `HAYPILE_SHARED`. The counts were published with them.

use std::collections::{HashMap, HashSet};
use std::env;
use std::path::{Path, PathBuf};

use crate::support::options;
use haypile_sim::trace::format::{Format, ReadOptions, ReadReport, read};
use haypile_sim::trace::{Key, Op, Request};

/// A trace, or `None` and a line that says that the test is skipped.
fn shared(name: &str) -> Option<PathBuf> {
    let folder = env::var_os("HAYPILE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = folder.join("traces").join(name);
    let found = path.exists();
    if !found {
        eprintln!("skipped: there is no {}", path.display());
    }
    found.then_some(path)
}

/// Totals of a trace.
#[derive(Debug, Default)]
struct Totals {
    keys: Vec<u64>,
    sizes: Vec<Option<u64>>,
    times: Vec<Option<u64>>,
    writes: usize,
}

impl Totals {
    fn distinct(&self) -> usize {
        self.keys.iter().collect::<HashSet<_>>().len()
    }
}

fn totals(path: &Path, options: &ReadOptions) -> (ReadReport, Totals) {
    let mut totals = Totals::default();
    let mut sink = |request: Request<'_>| {
        let Key::Number(number) = request.key else { panic!("all keys are numbers") };
        totals.keys.push(number);
        totals.sizes.push(request.size_bytes);
        totals.times.push(request.time_us);
        totals.writes += usize::from(request.op == Op::Write);
        Ok(())
    };
    let report = read(&[path], options, &mut sink).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.requests, totals.keys.len() as u64);
    (report, totals)
}

/// Reads a trace and checks its format and counts.
fn check(
    name: &str,
    format: Format,
    options: &ReadOptions,
    requests: usize,
    keys: usize,
) -> Option<Totals> {
    let (report, totals) = totals(&shared(name)?, options);
    let found = (report.format, totals.keys.len(), totals.distinct());
    assert_eq!(found, (format, requests, keys), "{name}");
    Some(totals)
}

#[test]
fn headerless_integers() {
    for (name, format, requests, keys) in [
        ("web07.trace.xz", Format::I32Be, 76_118, 20_484),
        ("web12.trace.xz", Format::I32Be, 95_607, 13_756),
        ("orm-busy.trace.xz", Format::I32Be, 5_000_000, 76_349),
        ("w106.trace.xz", Format::U32Le, 5_292_456, 275_171),
    ] {
        check(name, format, &options(format), requests, keys);
        let Some(path) = shared(name) else { continue };
        let guess = read(&[path], &ReadOptions::default(), &mut |_: Request<'_>| Ok(()));
        let text = guess.expect_err("integers are never guessed").to_string();
        assert!(text.contains("state one of u32le, i32be"), "{text}");
    }
}

#[test]
fn arc() {
    let recognised = ReadOptions::default();
    check("OLTP.lis.zst", Format::Arc, &recognised, 914_145, 186_880);
    check("P3.lis.zst", Format::Arc, &recognised, 3_912_296, 762_543);
}

#[test]
fn lirs() {
    for (name, requests, keys) in [
        ("lirs-2_pools.trace.gz", 100_000, 9_939),
        ("lirs-cpp.trace.gz", 9_047, 1_223),
        ("lirs-cs.trace.gz", 6_781, 1_409),
        ("lirs-gli.trace.gz", 6_015, 2_529),
        ("lirs-multi1.trace.gz", 15_858, 2_606),
        ("lirs-multi2.trace.gz", 26_311, 5_684),
        ("lirs-ps.trace.gz", 10_448, 3_083),
        ("lirs-sprite.trace.gz", 133_996, 7_075),
    ] {
        check(name, Format::Lirs, &ReadOptions::default(), requests, keys);
    }
}

#[test]
fn one_trace_in_three_encodings() {
    let recognised = ReadOptions::default();
    let read = |name, format| check(name, format, &recognised, 113_872, 48_974);
    let mut expected_sizes = Vec::new();
    let (Some(csv), Some(vscsi), Some(oracle)) = (
        read("cloudPhysicsIO.csv.zst", Format::Csv),
        read("cloudPhysicsIO.vscsi.zst", Format::Vscsi),
        read("cloudPhysicsIO.oracleGeneral.bin.zst", Format::OracleGeneral),
    ) else {
        return;
    };
    assert!(csv.keys == vscsi.keys && csv.keys == oracle.keys, "the same keys in the same order");
    assert!(csv.sizes == vscsi.sizes, "the same sizes");
    // Whoever made this oracleGeneral file gave every request the size its key first had.
    let mut first = HashMap::new();
    for (&key, &size) in vscsi.keys.iter().zip(&vscsi.sizes) {
        let first = *first.entry(key).or_insert(size);
        expected_sizes.push(first);
    }
    assert!(oracle.sizes == expected_sizes, "the first sizes");
    assert!(csv.times == oracle.times, "the same times, in seconds");
    let whole_seconds = |times: &[Option<u64>]| -> Vec<_> {
        times.iter().map(|time| time.map(|us| us / 1_000_000)).collect()
    };
    assert_eq!(whole_seconds(&vscsi.times), whole_seconds(&csv.times));
    assert_eq!((csv.writes, vscsi.writes, oracle.writes), (66_898, 66_898, 0));
}

#[test]
fn time_key_and_size() {
    let recognised = ReadOptions::default();
    let name = "adapt-size.trace.xz";
    let totals = check(name, Format::Csv, &recognised, 66_987, 36_815);
    let mut asked = options(Format::Csv);
    asked.csv.set_columns("time=1,key=2,size=3").expect("columns");
    let same = check(name, Format::Csv, &asked, 66_987, 36_815);
    if let (Some(totals), Some(same)) = (totals, same) {
        assert_eq!(totals.sizes.iter().flatten().sum::<u64>(), 485_457_552);
        assert!(totals.keys == same.keys && totals.sizes == same.sizes);
        assert!(totals.times == same.times);
    }
}

#[test]
fn addresses() {
    let recognised = ReadOptions::default();
    let name = "address-mcf.trace.gz";
    let totals = check(name, Format::Address, &recognised, 727_230, 719_685);
    assert!(totals.is_none_or(|totals| totals.writes == 721_258));
}
