//! Recordings of caches are read as traces, and simulating one gives what the cache did.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::record::{RecordOptions, RecordingStore};
use haypile::{Clock, ManualClock, NoneStore, Registry, SetOptions, Stats, Store};
use haypile_sim::simulate::{Accounting, Contender, Options, simulate};
use haypile_sim::trace::format::{Format, ReadOptions, ReadReport, read};
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{BuildOptions, Key, Op, Request, TraceBuilder, TraceError};
use haypile_sim::{Trace, trace};
use proptest::prelude::*;
use tempfile::TempDir;

/// A request as a test writes it down.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked(Op, Vec<u8>, Option<u64>, u64);

fn requests(paths: &[PathBuf]) -> Result<(Vec<Asked>, ReadReport), TraceError> {
    let mut asked = Vec::new();
    let mut sink = |request: Request<'_>| {
        let Key::Text(key) = request.key else { panic!("keys are texts") };
        let time_us = request.time_us.expect("recordings have times");
        asked.push(Asked(request.op, key.to_vec(), request.size_bytes, time_us));
        Ok(())
    };
    let report = read(paths, &ReadOptions::default(), &mut sink)?;
    Ok((asked, report))
}

fn trace_of(paths: &[PathBuf]) -> (Trace, ReadReport) {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    let report = read(paths, &ReadOptions::default(), &mut builder).unwrap();
    (builder.finish().unwrap(), report)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

struct Recorded {
    store: RecordingStore,
    clock: Arc<ManualClock>,
    dir: TempDir,
}

impl Recorded {
    fn new(inner: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) -> Self {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::new());
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let options = RecordOptions::new(dir.path().join("app.rec"));
        let store = RecordingStore::new(inner(Arc::clone(&shared)), options, shared).unwrap();
        Self { store, clock, dir }
    }

    fn memory(bytes: u64) -> Self {
        Self::new(|clock| MemoryBuilder::new(bytes).clock(clock).store().unwrap())
    }

    fn set(&self, key: &[u8], value_bytes: usize) {
        let _ = self.store.set(key, &vec![0; value_bytes], &SetOptions::set());
        self.clock.advance(Duration::from_micros(1));
    }

    fn get(&self, key: &[u8]) -> bool {
        let found = self.store.get(key).unwrap().is_some();
        self.clock.advance(Duration::from_micros(1));
        found
    }

    fn requests(self) -> Vec<Asked> {
        self.store.close().unwrap();
        let (asked, report) = requests(&files(self.dir.path())).unwrap();
        assert_eq!(report.notes, [""; 0]);
        asked
    }
}

fn asked(op: Op, key: &[u8], size_bytes: Option<u64>, time_us: u64) -> Asked {
    Asked(op, key.to_vec(), size_bytes, time_us)
}

#[test]
fn a_write_after_a_miss_is_its_fill_and_others_are_writes() {
    let cache = Recorded::memory(1 << 20);
    assert!(!cache.get(b"a")); // 0
    assert!(!cache.get(b"b")); // 1: waits behind nothing, but for its own write
    cache.set(b"b", 20); // 2: fills 1
    cache.set(b"a", 10); // 3: fills 0
    assert!(cache.get(b"a")); // 4
    cache.set(b"a", 11); // 5: a write
    assert!(!cache.get(b"c")); // 6: never filled
    cache.store.delete(b"d").unwrap();
    cache.clock.advance(Duration::from_secs(1));
    assert_eq!(
        cache.requests(),
        [
            asked(Op::Read, b"a", Some(10), 0),
            asked(Op::Read, b"b", Some(20), 1),
            asked(Op::Read, b"a", Some(10), 4),
            asked(Op::Write, b"a", Some(11), 5),
            asked(Op::Read, b"c", None, 6),
            asked(Op::Delete, b"d", None, 7),
        ]
    );
}

/// A miss costs the time until its own write; what never was computed has no cost of its own.
#[test]
fn a_miss_costs_what_its_computation_took() {
    let cache = Recorded::memory(1 << 20);
    cache.get(b"a");
    cache.get(b"b");
    cache.clock.advance(Duration::from_micros(498));
    cache.set(b"b", 20);
    cache.clock.advance(Duration::from_millis(1));
    cache.set(b"a", 10);
    cache.get(b"a");
    cache.get(b"c");
    cache.store.close().unwrap();
    let (trace, _) = trace_of(&files(cache.dir.path()));
    let costs: Vec<u64> = trace.costs_ns().unwrap().iter().map(|cost| cost.get()).collect();
    assert_eq!(costs, [1_501_000, 499_000, 1_501_000, 0]);
}

#[test]
fn a_deletion_or_a_minute_ends_the_wait_for_a_fill() {
    let cache = Recorded::memory(1 << 20);
    cache.get(b"a"); // 0
    cache.store.delete(b"a").unwrap(); // 1
    cache.set(b"a", 10); // 1
    cache.get(b"b"); // 2
    cache.clock.advance(Duration::from_mins(1));
    cache.set(b"b", 20);
    assert_eq!(
        cache.requests(),
        [
            asked(Op::Read, b"a", None, 0),
            asked(Op::Delete, b"a", None, 1),
            asked(Op::Write, b"a", Some(10), 1),
            asked(Op::Read, b"b", None, 2),
            asked(Op::Write, b"b", Some(20), 60_000_003),
        ]
    );
}

#[test]
fn each_of_two_misses_has_its_own_fill() {
    let cache = Recorded::memory(1 << 20);
    cache.get(b"a");
    cache.get(b"a");
    cache.set(b"a", 10);
    let add = SetOptions::add();
    assert!(!cache.store.set(b"a", b"other", &add).unwrap().is_stored());
    cache.set(b"a", 30);
    assert_eq!(
        cache.requests(),
        [
            asked(Op::Read, b"a", Some(10), 0),
            asked(Op::Read, b"a", Some(10), 1),
            asked(Op::Write, b"a", Some(30), 3),
        ]
    );
}

#[test]
fn conditions_counters_and_clear() {
    let cache = Recorded::memory(2 << 10);
    let store = &cache.store;
    assert!(store.set(b"a", b"9", &SetOptions::add()).unwrap().is_stored());
    let _ = store.set(b"a", b"x", &SetOptions::add()).unwrap();
    let _ = store.set(b"b", b"x", &SetOptions::replace()).unwrap();
    assert_eq!(store.incr(b"a", 1).unwrap(), Some(10));
    assert_eq!(store.incr(b"b", 1).unwrap(), None);
    store.touch(b"a", None.into()).unwrap();
    assert!(store.set(b"c", &[0; 4 << 10], &SetOptions::set()).is_err());
    store.clear().unwrap();
    let _ = store.set(b"a", b"9", &SetOptions::set()).unwrap();
    assert_eq!(
        cache.requests(),
        [
            asked(Op::Write, b"a", Some(1), 0),
            asked(Op::Write, b"a", Some(2), 0),
            asked(Op::Write, b"c", Some(4 << 10), 0),
            asked(Op::Delete, b"a", None, 0),
            asked(Op::Delete, b"c", None, 0),
            asked(Op::Write, b"a", Some(1), 0),
        ]
    );
}

/// Drives a cache as a program does: get, and set what was not there.
fn cache_aside(store: &dyn Store, asked: &Trace) -> Stats {
    let value = vec![7; 1 << 20];
    let mut buffer = Vec::new();
    for (at, id) in asked.ids().iter().enumerate() {
        let key = match asked.key(id.get()) {
            // A hashed key has no less than eight bytes.
            Key::Number(number) => format!("key:{number:06}"),
            Key::Text(text) => String::from_utf8_lossy(text).into_owned(),
        };
        let key = key.as_bytes();
        let bytes = asked.sizes().unwrap()[at].get() as usize;
        match asked.ops().map_or(Op::Read, |ops| Op::from_number(ops[at])) {
            Op::Read => {
                if store.get_into(key, &mut buffer).unwrap().is_none() {
                    // A value that is too large for the cache is an error, and goes on.
                    let _ = store.set(key, &value[..bytes], &SetOptions::set());
                }
            }
            Op::Write => {
                let _ = store.set(key, &value[..bytes], &SetOptions::set());
            }
            Op::Delete => {
                store.delete(key).unwrap();
            }
        }
    }
    store.stats().unwrap()
}

fn zipf() -> Trace {
    let spec = Spec {
        mixture: "zipf:keys=5000,exponent=0.9@0.9+scan:keys=3000@0.1".parse().unwrap(),
        requests: 60_000,
        seed: 11,
        sizes: Some("lognormal:median=300,sigma=1.2,per=key".parse().unwrap()),
        writes: 0.05,
        deletes: 0.01,
    };
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for request in spec.generator().unwrap() {
        trace::Sink::push(&mut builder, request).unwrap();
    }
    builder.finish().unwrap()
}

#[track_caller]
fn assert_same(recording: &Trace, policy: &str, size_bytes: u64, stats: &Stats) {
    let contender: Contender = policy.parse().unwrap();
    let options = Options::new(Accounting::Engine);
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let outcome = simulate(recording, &contender, size_bytes, &options, go_on).unwrap().unwrap();
    assert_eq!(outcome.counts.hits, stats.hits, "{policy}");
    assert_eq!(outcome.counts.misses, stats.misses, "{policy}");
    assert_eq!(outcome.counts.evictions, stats.evictions, "{policy}");
    assert_eq!((outcome.used, outcome.entries), (stats.bytes, stats.entries), "{policy}");
}

#[test]
fn a_recorded_program_has_the_hits_that_a_simulation_of_its_recording_has() {
    let asked = zipf();
    for policy in ["s3fifo", "lru", "fifo", "sieve", "slru", "arc"] {
        for keys in ["plain", "hash"] {
            let dir = TempDir::new().unwrap();
            let url = format!(
                "memory:size=512KiB,policy={policy},record={}/app.rec,record_keys={keys}",
                dir.path().display()
            );
            let store = Registry::new().open(&url).unwrap();
            let stats = cache_aside(&*store, &asked);
            drop(store);
            let (recording, report) = trace_of(&files(dir.path()));
            assert!(stats.evictions > 1_000, "the test is about a cache that is full");
            assert_same(&recording, policy, 512 << 10, &stats);
            let summary = report.recording.unwrap();
            assert_eq!((summary.hits, summary.misses), (stats.hits, stats.misses));
            assert_eq!(summary.hashed_keys, keys == "hash");
            assert_eq!((summary.files, summary.unfinished), (1, 0));
        }
    }
}

#[test]
fn the_files_of_several_processes_are_merged_by_time() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new());
    let open = |name: &str| {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let options = RecordOptions::new(dir.path().join(name));
        RecordingStore::new(Arc::new(NoneStore::new()), options, clock).unwrap()
    };
    // The second begins later: its times count from a later origin.
    let first = open("app.rec");
    clock.advance(Duration::from_secs(5));
    let second = open("app.rec");
    let mut expected = Vec::new();
    for number in 0..20_000_u64 {
        clock.advance(Duration::from_nanos(number * 7 % 1_000));
        let key = number.to_string();
        let store = if number * number % 7 < 3 { &first } else { &second };
        assert_eq!(store.get(key.as_bytes()).unwrap(), None);
        expected.push(key.into_bytes());
        clock.advance(Duration::from_nanos(1));
    }
    drop((first, second));
    let mut paths = files(dir.path());
    assert_eq!(paths.len(), 2);
    for _ in 0..2 {
        let (asked, report) = requests(&paths).unwrap();
        assert!(asked.iter().map(|asked| &asked.1).eq(&expected));
        assert!(asked.is_sorted_by_key(|asked| asked.3));
        assert_eq!(report.recording.unwrap().files, 2);
        paths.reverse();
    }
}

/// The bytes of a recording of 30,000 reads, in several blocks.
fn several_blocks() -> Vec<u8> {
    let cache = Recorded::new(|_| Arc::new(NoneStore::new()));
    for number in 0..30_000_u32 {
        cache.get(format!("a key with some length {number}").as_bytes());
    }
    cache.store.close().unwrap();
    fs::read(cache.store.path()).unwrap()
}

fn read_bytes(dir: &TempDir, bytes: &[u8]) -> Result<(Vec<Asked>, ReadReport), TraceError> {
    let path = dir.path().join("app.rec.1");
    fs::write(&path, bytes).unwrap();
    requests(&[path])
}

#[test]
fn a_torn_file_is_read_up_to_its_last_whole_block() {
    let bytes = several_blocks();
    let dir = TempDir::new().unwrap();
    let (whole, report) = read_bytes(&dir, &bytes).unwrap();
    assert_eq!((whole.len(), report.notes.len()), (30_000, 0));
    for kept in [bytes.len() - 1, bytes.len() - 41, bytes.len() / 2, 100_000] {
        let (asked, report) = read_bytes(&dir, &bytes[..kept]).unwrap();
        assert!(!asked.is_empty() && asked.len() <= 30_000);
        assert_eq!(asked, whole[..asked.len()]);
        let [note] = &report.notes[..] else { panic!("{:?}", report.notes) };
        assert!(note.contains("app.rec.1: ends inside a block"), "{note}");
        assert_eq!(report.recording.unwrap().unfinished, 1);
    }
    // As if killed between two blocks: nothing is wrong, and nothing says that it was the end.
    let (asked, report) = read_bytes(&dir, &bytes[..bytes.len() - 40]).unwrap();
    assert_eq!((asked.len(), report.notes.len()), (30_000, 0));
    assert_eq!(report.recording.unwrap().unfinished, 1);
}

#[test]
fn a_damaged_block_ends_what_is_read_of_a_file() {
    let bytes = several_blocks();
    let dir = TempDir::new().unwrap();
    let (whole, _) = read_bytes(&dir, &bytes).unwrap();
    for at in [bytes.len() / 2, bytes.len() - 1_000] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let (asked, report) = read_bytes(&dir, &damaged).unwrap();
        assert_eq!(asked, whole[..asked.len()]);
        assert!(asked.len() < 30_000);
        assert!(report.notes[0].contains("checksum"), "{:?}", report.notes);
    }
    let garbage = [&bytes[..64], &[0x55; 1_000][..]].concat();
    let error = read_bytes(&dir, &garbage).unwrap_err();
    assert!(matches!(error, TraceError::NoRequests { format: Format::Recording, .. }), "{error}");
}

#[test]
fn headers_that_are_wrong_are_errors_that_say_why() {
    let bytes = several_blocks();
    let dir = TempDir::new().unwrap();
    let error = |at: usize, value| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        read_bytes(&dir, &bytes).unwrap_err().to_string()
    };
    let newer = error(8, 2);
    assert!(newer.contains("app.rec.1: the recording has format version 2.0"), "{newer}");
    assert!(newer.contains("this program reads version 1"), "{newer}");
    assert!(error(20, 0xee).contains("header of the recording is damaged"));
    let path = dir.path().join("garbage");
    fs::write(&path, [b'x'; 200]).unwrap();
    let options = ReadOptions { format: Some(Format::Recording), ..ReadOptions::default() };
    let garbage = read(&[&path], &options, &mut |_: Request<'_>| Ok(())).unwrap_err();
    assert!(
        garbage.to_string().contains("the file is not a recording of cache operations"),
        "{garbage}"
    );
    let cut = read_bytes(&dir, &bytes[..30]).unwrap_err();
    assert!(matches!(cut, TraceError::NoRequests { .. }), "{cut}");
    assert!(cut.to_string().contains("app.rec.1: ends inside its header"), "{cut}");
    assert!(matches!(read_bytes(&dir, b""), Err(TraceError::Empty { .. })));
}

#[test]
fn a_file_that_is_cut_in_its_first_block_says_so() {
    let bytes = several_blocks();
    let dir = TempDir::new().unwrap();
    for kept in [65, 64 + 40, 1_000] {
        let cut = read_bytes(&dir, &bytes[..kept]).unwrap_err();
        assert!(matches!(cut, TraceError::NoRequests { .. }), "{cut}");
        let cut = cut.to_string();
        assert!(cut.contains("app.rec.1 contains no request when read as"), "{cut}");
        assert!(cut.contains("app.rec.1: ends inside a block"), "{cut}");
    }
    // Between its header and its first block nothing is cut.
    let nothing = read_bytes(&dir, &bytes[..64]).unwrap_err().to_string();
    assert!(!nothing.contains("ends inside"), "{nothing}");
}

#[test]
fn a_file_that_is_nothing_yet_does_not_spoil_the_others() {
    let dir = TempDir::new().unwrap();
    let bytes = several_blocks();
    let paths = [("app.rec.1", &bytes[..]), ("app.rec.2", &bytes[..20]), ("app.rec.3", b"")];
    let paths = paths.map(|(name, bytes)| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    });
    let (asked, report) = requests(&paths).unwrap();
    assert_eq!(asked.len(), 30_000);
    assert_eq!(report.notes.len(), 2);
    let summary = report.recording.unwrap();
    assert_eq!((summary.files, summary.unfinished), (3, 2));
}

#[test]
fn a_full_recording_says_so() {
    let dir = TempDir::new().unwrap();
    let options = RecordOptions::new(dir.path().join("app.rec")).max_bytes(1 << 20);
    let clock = Arc::new(ManualClock::new());
    let store = RecordingStore::new(Arc::new(NoneStore::new()), options, clock).unwrap();
    for number in 0..60_000_u32 {
        let _ = store.get(format!("a key with some length {number}").as_bytes());
    }
    let (asked, report) = requests(&files(dir.path())).unwrap();
    assert!(asked.len() > 20_000 && asked.len() < 60_000);
    assert!(report.notes[0].contains("reached its record_max"), "{:?}", report.notes);
    assert_eq!(report.recording.unwrap().full, 1);
}

#[test]
fn a_compressed_recording_is_read_as_well() {
    let dir = TempDir::new().unwrap();
    let packed = zstd::encode_all(&several_blocks()[..], 1).unwrap();
    let (asked, _) = read_bytes(&dir, &packed).unwrap();
    assert_eq!(asked.len(), 30_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_file_is_a_panic(
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        cut in any::<prop::sample::Index>(),
    ) {
        let cache = Recorded::memory(64 << 10);
        for number in 0..300_u32 {
            cache.get(&number.to_le_bytes()[..2]);
            cache.set(&(number * 7 % 300).to_le_bytes()[..2], 100);
        }
        cache.store.close().unwrap();
        let mut image = fs::read(cache.store.path()).unwrap();
        let at = at.index(image.len());
        let end = (at + bytes.len()).min(image.len());
        image[at..end].copy_from_slice(&bytes[..end - at]);
        image.truncate(cut.index(image.len()).max(image.len() / 2));
        let _ = read_bytes(&cache.dir, &image);
    }
}
