//! `record=` records the operations on a cache, and changes nothing else.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::record::{RecordOptions, RecordingState, RecordingStore};
use haypile::url::CacheUrl;
use haypile::{
    Clock, Cursor, Durability, Error, Hit, LevelStats, Limits, ManualClock, NoneStore, Page,
    Registry, Reservation, SetOptions, Stats, Store, SystemClock, Ttl, Version, Written,
};
use haypile_policy::recording::{
    BLOCK_HEADER_BYTES, Block, BlockHeader, End, FileHeader, HEADER_BYTES, Kind, RecordReader,
    hash_key,
};
use tempfile::TempDir;

/// A file's record of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Operation {
    kind: Kind,
    effect: bool,
    key: Vec<u8>,
    size_bytes: Option<u64>,
    ttl_us: Option<u64>,
    time_ns: u64,
}

/// Returns the operations of a file in order, and its end.
fn read(path: &Path) -> (FileHeader, Vec<Operation>, Option<End>) {
    let bytes = fs::read(path).unwrap();
    let header = FileHeader::from_bytes(bytes.first_chunk().unwrap()).unwrap();
    let mut rest = &bytes[HEADER_BYTES..];
    let mut operations = Vec::new();
    let mut end = None;
    while let Some(head) = rest.first_chunk::<BLOCK_HEADER_BYTES>() {
        let block = BlockHeader::from_bytes(head).unwrap();
        let Some(payload) = rest[BLOCK_HEADER_BYTES..].get(..block.payload_bytes()) else { break };
        assert!(BlockHeader::is_sound(head, payload));
        match block.block {
            Block::Records { records, .. } => {
                let mut reader = RecordReader::new(records, block.first_ns, header.hashed_keys);
                while let Some(record) = reader.next(payload).unwrap() {
                    operations.push(Operation {
                        kind: record.kind,
                        effect: record.effect,
                        key: payload[record.key].to_vec(),
                        size_bytes: record.size_bytes,
                        ttl_us: record.ttl_us,
                        time_ns: record.time_ns,
                    });
                }
            }
            Block::End(reason) => end = Some(reason),
        }
        rest = &rest[BLOCK_HEADER_BYTES + payload.len()..];
    }
    (header, operations, end)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns a recorded cache of 4 KiB on a clock that stands still.
fn recorded(dir: &TempDir) -> (RecordingStore, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let inner = MemoryBuilder::new(4 << 10).clock(Arc::clone(&shared)).store().unwrap();
    let options = RecordOptions::new(dir.path().join("app.rec"));
    (RecordingStore::new(inner, options, shared).unwrap(), clock)
}

#[test]
fn every_operation_is_written_as_it_was() {
    let dir = TempDir::new().unwrap();
    let (store, clock) = recorded(&dir);
    let minute = Duration::from_mins(1);
    let mut expected = Vec::new();
    let mut say = |kind, effect, key: &[u8], size_bytes, ttl_us| {
        let time_ns = clock.now_ns();
        clock.advance(Duration::from_nanos(70));
        let key = key.to_vec();
        expected.push(Operation { kind, effect, key, size_bytes, ttl_us, time_ns });
    };

    assert_eq!(store.get(b"a").unwrap(), None);
    say(Kind::Miss, true, b"a", None, None);
    let _ = store.set(b"a", b"12", &SetOptions::set().with_ttl(minute)).unwrap();
    say(Kind::Set, true, b"a", Some(2), Some(60_000_000));
    assert!(store.get_into(b"a", &mut Vec::new()).unwrap().is_some());
    say(Kind::Hit, true, b"a", Some(2), None);
    assert_eq!(&*store.get_pinned(b"a").unwrap().unwrap(), b"12");
    say(Kind::Hit, true, b"a", Some(2), None);
    let version = store.get_many(&[b"a"]).unwrap()[0].as_ref().unwrap().1.version.unwrap();
    say(Kind::Hit, true, b"a", Some(2), None);
    let _ = store.set(b"a", b"x", &SetOptions::add()).unwrap();
    say(Kind::Add, false, b"a", Some(1), None);
    let _ = store.set(b"b", b"x", &SetOptions::replace().with_ttl(None)).unwrap();
    say(Kind::Replace, false, b"b", Some(1), Some(0));
    let _ = store.set(b"a", b"99", &SetOptions::cas(version)).unwrap();
    say(Kind::Cas, true, b"a", Some(2), None);
    // A simulation would delete the entry, which stays.
    assert!(!store.delete_version(b"a", version).unwrap());
    assert!(!store.compare_and_delete(b"a", b"12").unwrap());
    assert_eq!(store.incr(b"a", 1).unwrap(), Some(100));
    say(Kind::Incr, true, b"a", Some(3), None);
    assert_eq!(store.decr(b"b", 1).unwrap(), None);
    say(Kind::Decr, false, b"b", None, None);
    assert!(store.touch(b"a", Ttl::After(Duration::from_nanos(1_001))).unwrap());
    say(Kind::Touch, true, b"a", None, Some(2));
    assert!(store.delete(b"a").unwrap());
    say(Kind::Delete, true, b"a", None, None);
    assert!(!store.delete_many(&[b"a"])[0].as_ref().unwrap());
    say(Kind::Delete, false, b"a", None, None);
    let results = store.set_many(&[(b"c", b"value", SetOptions::set())]);
    assert!(results[0].as_ref().unwrap().is_stored());
    say(Kind::Set, true, b"c", Some(5), None);
    let version = store.get_into(b"c", &mut Vec::new()).unwrap().unwrap().version.unwrap();
    say(Kind::Hit, true, b"c", Some(5), None);
    assert!(store.delete_version(b"c", version).unwrap());
    say(Kind::Delete, true, b"c", None, None);
    let _ = store.set(b"c", b"value", &SetOptions::set()).unwrap();
    say(Kind::Set, true, b"c", Some(5), None);
    assert!(store.compare_and_delete(b"c", b"value").unwrap());
    say(Kind::Delete, true, b"c", None, None);
    let mut reservation = store.reserve(b"d", 7, &SetOptions::set()).unwrap();
    reservation.buffer().fill(1);
    let _ = reservation.commit().unwrap();
    say(Kind::Set, true, b"d", Some(7), None);
    drop(store.reserve(b"e", 7, &SetOptions::set()).unwrap());
    let huge = vec![0; 5 << 10];
    let refused = store.set(b"f", &huge, &SetOptions::set());
    assert!(matches!(refused, Err(Error::ValueTooLarge { .. })));
    say(Kind::Set, false, b"f", Some(5 << 10), None);
    assert!(store.reserve(b"f", 6 << 10, &SetOptions::set()).is_err());
    say(Kind::Set, false, b"f", Some(6 << 10), None);
    store.clear().unwrap();
    say(Kind::Clear, true, b"", None, None);
    // None of these uses an entry, or succeeded at all.
    assert!(!store.contains(b"c").unwrap());
    assert!(store.get(&vec![0; 70_000]).is_err());
    assert!(store.set(b"c", b"", &SetOptions::set().with_ttl(Duration::ZERO)).is_err());
    store.close().unwrap();
    assert!(store.get(b"c").is_err());

    assert_eq!(store.state(), RecordingState::Closed);
    assert_eq!(files(dir.path()), [store.path()]);
    let (header, operations, end) = read(&store.path());
    assert_eq!(operations, expected);
    assert_eq!(end, Some(End::Closed));
    assert_eq!(header.process, std::process::id());
    assert_eq!(store.written_bytes(), fs::metadata(store.path()).unwrap().len());
}

#[test]
fn no_value_is_in_the_file_and_hashed_keys_are_not_either() {
    let dir = TempDir::new().unwrap();
    let url = format!("memory:size=1MiB,record={}/app.rec,record_keys=hash", dir.path().display());
    let store = Registry::new().open(&url).unwrap();
    for _ in 0..3 {
        let _ = store.set(b"a secret key", b"a secret value", &SetOptions::set()).unwrap();
    }
    drop(store);
    let [path] = &files(dir.path())[..] else { panic!("one file") };
    let bytes = fs::read(path).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"secret"));
    let (header, operations, _) = read(path);
    assert!(header.hashed_keys);
    assert_eq!(operations.len(), 3);
    // XXH3-64 with the seed 0: the same in every process, permanently.
    assert!(operations.iter().all(|operation| operation.key == hash_key(b"a secret key")));
    assert_eq!(hash_key(b""), 0x2d06_8005_38d3_94c2_u64.to_le_bytes());
}

#[test]
fn a_url_with_a_recording_reads_back() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a b,c.rec");
    let text = format!(
        "memory:record_keys=hash,record_max=2048KiB,record={},ttl=60s,policy=lru",
        path.display().to_string().replace(' ', "%20").replace(',', "%2C")
    );
    let registry = Registry::new();
    let store = registry.open(&text).unwrap();
    let url = registry.parse(&store.describe()).unwrap();
    assert_eq!(url.to_string(), store.describe());
    let level = &url.levels()[0];
    assert_eq!(level.option("record").unwrap(), path.to_str().unwrap());
    assert_eq!(level.option("record_max"), Some("2MiB"));
    assert_eq!(level.option("record_keys"), Some("hash"));
    assert_eq!(level.option("size"), Some("64MiB"), "defaults are written out");
    assert_eq!(registry.parse(&url.short().to_string()).unwrap(), url);
}

#[test]
fn threads_lose_nothing_and_keep_their_order() {
    let dir = TempDir::new().unwrap();
    let options = RecordOptions::new(dir.path().join("app.rec"));
    let clock = Arc::new(SystemClock::new());
    let store = RecordingStore::new(Arc::new(NoneStore::new()), options, clock).unwrap();
    thread::scope(|scope| {
        for thread in 0..4_u32 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..20_000_u32 {
                    let key = format!("thread {thread} number {number}");
                    assert_eq!(store.get(key.as_bytes()).unwrap(), None);
                    if number % 5_000 == 0 {
                        store.flush(Durability::Visible).unwrap();
                    }
                }
            });
        }
    });
    store.close().unwrap();
    let (_, operations, _) = read(&store.path());
    assert_eq!(operations.len(), 80_000);
    let mut next: HashMap<Vec<u8>, (u32, u64)> = HashMap::new();
    for operation in operations {
        let text = String::from_utf8(operation.key).unwrap();
        let (thread, number) = text.split_once(" number ").unwrap();
        let (expected, time_ns) = next.entry(thread.into()).or_default();
        assert_eq!(number.parse::<u32>().unwrap(), *expected);
        assert!(operation.time_ns >= *time_ns);
        (*expected, *time_ns) = (*expected + 1, operation.time_ns);
    }
}

#[test]
fn a_repeated_key_takes_a_few_bytes() {
    let dir = TempDir::new().unwrap();
    let options = RecordOptions::new(dir.path().join("app.rec"));
    let store =
        RecordingStore::new(Arc::new(NoneStore::new()), options, Arc::new(ManualClock::new()))
            .unwrap();
    for number in 0..100_000_u32 {
        let key = format!("a key of thirty-six bytes {:010}", number % 100);
        let _ = store.get(key.as_bytes());
    }
    store.close().unwrap();
    let bytes_per_operation = store.written_bytes() / 100_000;
    assert!(bytes_per_operation < 6, "{bytes_per_operation}");
}

/// Children run this program again, with one test and a directory.
mod child {
    use super::*;

    const DIR: &str = "HAYPILE_TEST_RECORDING_DIR";

    fn run(shell: &str, test: &str, dir: &Path) -> std::process::Output {
        std::process::Command::new("sh")
            .args(["-c", &format!("{shell} exec \"$0\" --exact {test} --ignored")])
            .arg(std::env::current_exe().unwrap())
            .env(DIR, dir)
            .output()
            .unwrap()
    }

    /// Returns the path to record to; `None` unless a test below has started this process.
    fn dir() -> Option<PathBuf> {
        std::env::var_os(DIR).map(PathBuf::from)
    }

    #[test]
    #[ignore = "a part of another test"]
    fn is_killed() {
        let Some(dir) = dir() else { return };
        let options = RecordOptions::new(dir.join("app.rec"));
        let clock = Arc::new(SystemClock::new());
        let store = RecordingStore::new(Arc::new(NoneStore::new()), options, clock).unwrap();
        for number in 0..50_000_u32 {
            let _ = store.get(format!("a key with some length {number}").as_bytes());
        }
        std::process::Command::new("sh")
            .args(["-c", &format!("kill -9 {}", std::process::id())])
            .status()
            .unwrap();
        unreachable!("killed");
    }

    #[cfg(unix)]
    #[test]
    fn a_killed_process_leaves_whole_blocks() {
        use std::os::unix::process::ExitStatusExt;
        let dir = TempDir::new().unwrap();
        let output = run("", "recording::child::is_killed", dir.path());
        assert_eq!(output.status.signal(), Some(9));
        let [path] = &files(dir.path())[..] else { panic!("one file") };
        let (_, operations, end) = read(path);
        assert_eq!(end, None);
        // All but the operations in the last, unfinished block.
        assert!(operations.len() > 40_000 && operations.len() < 50_000, "{}", operations.len());
        for (number, operation) in operations.iter().enumerate() {
            assert_eq!(operation.key, format!("a key with some length {number}").as_bytes());
        }
    }

    #[test]
    #[ignore = "a part of another test"]
    fn records_something() {
        let Some(dir) = dir() else { return };
        let url = format!("memory:size=1MiB,record={}/app.rec", dir.display());
        let _ = Registry::new().open(&url).unwrap().get(b"a secret key").unwrap();
    }

    /// The umask belongs to the process, so each is tried in a process of its own.
    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_and_write_a_recording() {
        use std::os::unix::fs::PermissionsExt;
        for umask in ["000", "022", "077"] {
            let dir = TempDir::new().unwrap();
            let output =
                run(&format!("umask {umask};"), "recording::child::records_something", dir.path());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            let [path] = &files(dir.path())[..] else { panic!("one file") };
            let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{mode:o} under umask {umask}");
        }
    }

    #[test]
    #[ignore = "a part of another test"]
    fn has_a_full_disk() {
        let Some(dir) = dir() else { return };
        let options = RecordOptions::new(dir.join("app.rec"));
        let inner = MemoryBuilder::new(1 << 20).store().unwrap();
        let store = RecordingStore::new(inner, options, Arc::new(SystemClock::new())).unwrap();
        for number in 0..100_000_u32 {
            let key = format!("a key with some length {number}");
            let _ = store.set(key.as_bytes(), b"value", &SetOptions::set()).unwrap();
            assert_eq!(store.get(key.as_bytes()).unwrap().unwrap(), b"value");
        }
        let RecordingState::Failed { error } = store.state() else { panic!("{store:?}") };
        assert!(error.contains("app.rec"), "{error}");
        store.flush(Durability::Visible).unwrap();
        store.close().unwrap();
        assert!(matches!(store.state(), RecordingState::Failed { .. }));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_ends_the_recording_and_not_the_cache() {
        let dir = TempDir::new().unwrap();
        // 1,000 blocks of 512 bytes are the limit on a file.
        let output =
            run("trap '' XFSZ; ulimit -f 1000;", "recording::child::has_a_full_disk", dir.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let [path] = &files(dir.path())[..] else { panic!("one file") };
        // The half-written end is truncated.
        let (_, operations, end) = read(path);
        assert!(operations.len() > 10_000, "{}", operations.len());
        assert_eq!(end, None);
        assert!(fs::metadata(path).unwrap().len() <= 512_000);
    }
}

/// Two levels, each with its own records.
#[derive(Debug)]
struct TwoLevels(NoneStore);

impl Store for TwoLevels {
    fn url(&self) -> CacheUrl {
        "front:// -> back://".parse().unwrap()
    }

    fn stats_by_level(&self) -> Result<Vec<LevelStats>, Error> {
        let level = |name: &str| Ok(LevelStats::new(name.parse().unwrap(), self.stats()?));
        ["front://", "back://"].into_iter().map(level).collect()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>, Error> {
        self.0.get_into(key, buffer)
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written, Error> {
        self.0.set(key, value, options)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>, Error> {
        self.0.reserve(key, value_bytes, options)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.0.delete(key)
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool, Error> {
        self.0.touch(key, ttl)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>, Error> {
        self.0.incr(key, delta)
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>, Error> {
        self.0.decr(key, delta)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        self.0.contains(key)
    }

    fn clear(&self) -> Result<(), Error> {
        self.0.clear()
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page, Error> {
        self.0.keys(from, limit)
    }

    fn len(&self) -> Result<u64, Error> {
        self.0.len()
    }

    fn bytes(&self) -> Result<u64, Error> {
        self.0.bytes()
    }

    fn stats(&self) -> Result<Stats, Error> {
        self.0.stats()
    }

    fn flush(&self, durability: Durability) -> Result<(), Error> {
        self.0.flush(durability)
    }

    fn close(&self) -> Result<(), Error> {
        self.0.close()
    }
}

#[test]
fn a_deletion_that_the_store_cannot_do_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Store> = Arc::new(TwoLevels(NoneStore::new()));
    let options = RecordOptions::new(folder.path().join("trace"));
    let store = RecordingStore::new(inner, options, Arc::new(ManualClock::new())).unwrap();
    let result = store.delete_version(b"key", Version::from_raw(1));
    assert!(matches!(result, Err(Error::Unsupported { operation: "delete_version", .. })));
    store.close().unwrap();
    assert_eq!(read(&store.path()).1, []);
}

#[test]
fn the_levels_of_a_recorded_store_stay_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Store> = Arc::new(TwoLevels(NoneStore::new()));
    let options = RecordOptions::new(folder.path().join("trace"));
    let store = RecordingStore::new(inner, options, Arc::new(SystemClock::new())).unwrap();
    let levels = store.stats_by_level().unwrap();
    assert_eq!(
        levels.iter().map(|level| level.url.to_string()).collect::<Vec<_>>(),
        ["front://", "back://"]
    );
}

#[test]
fn the_name_follows_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let url =
        format!("memory:size=1MiB,compress=lz4,record={}", folder.path().join("trace").display());
    let store = Registry::new().open(&url).unwrap();
    let before = store.describe();
    store.resize(2 << 20).unwrap();
    assert_eq!(store.describe(), before.replace("size=1MiB", "size=2MiB"));
    let error = store.set(b"key", &vec![0; 3 << 20], &SetOptions::set()).unwrap_err();
    assert!(error.to_string().contains("size=2MiB"), "{error}");
}
