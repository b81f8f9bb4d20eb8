//! Files that are not what they were: opening them is an error that says so, or everything works, with
//! misses where something was lost.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haypile::file::hooks;
use haypile::{OpenError, Registry, SetOptions, Store};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use crate::child;
use crate::places::Places;
use crate::work::{self, Known, LARGE};

/// The bytes that the checksum of the header covers, and the checksum.
const SEALED_BYTES: usize = 128;
/// The number of processes that have died, in the header.
const DEATHS: usize = 960;
/// Longer than any machine needs.
const LONG: Duration = Duration::from_mins(5);

fn open(path: &Path, options: &str) -> Result<Arc<dyn Store>, OpenError> {
    open_sized(path, "1MiB", options)
}

fn open_sized(path: &Path, size: &str, options: &str) -> Result<Arc<dyn Store>, OpenError> {
    let url = format!("file://{}?size={size}&entry_size=4KiB{options}", path.display());
    Registry::new().open(&url)
}

/// A file, closed by all, and what is in it.
struct Sample {
    directory: TempDir,
    bytes: Vec<u8>,
    known: Known,
    in_namespace: Known,
}

impl Sample {
    fn new() -> Self {
        Self::with("")
    }

    /// One that is opened with these options as well.
    fn with(options: &str) -> Self {
        Self::sized("1MiB", options)
    }

    fn sized(size: &str, options: &str) -> Self {
        println!("files have the seed {}", hooks::hash_seed());
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sample");
        let (mut known, mut in_namespace) = (Known::default(), Known::default());
        let put = |known: &mut Known, store: &dyn Store, number: u64, options: &SetOptions| {
            let key = format!("key-{number}-{}", "k".repeat(number as usize % 50)).into_bytes();
            let value = match number % 5 {
                0 => number.to_string().into_bytes(),
                _ => work::value(number, number as usize * 37 % 2_500),
            };
            assert!(store.set(&key, &value, options).expect("a write").is_stored());
            known.note(&key, value);
        };
        let store = open_sized(&path, size, options).expect("a store");
        for number in 0..260 {
            let ttl = (number % 4 == 0).then_some(Duration::from_secs(100 + number * 1_000));
            put(&mut known, &*store, number, &SetOptions::set().with_ttl(ttl));
        }
        let long = work::value(1_000, 100_000);
        assert!(store.set(b"long", &long, &SetOptions::set()).expect("a write").is_stored());
        known.note(b"long", long);
        for number in 0..40 {
            // Overwritten and deleted ones leave something behind.
            put(&mut known, &*store, number, &SetOptions::set());
        }
        let apart = open(&path, &format!("&namespace=apart{options}")).expect("a store");
        for number in 0..40 {
            put(&mut in_namespace, &*apart, number, &SetOptions::set());
        }
        work::read_all(&*store, &mut known);
        assert!(store.len().expect("a count") > 200, "some hundred entries");
        drop((store, apart));
        let bytes = fs::read(&path).expect("its bytes");
        Self { directory, bytes, known, in_namespace }
    }

    /// Fills the file with entries.
    fn fill(&mut self) {
        let path = self.path("sample");
        let store = open(&path, "").expect("a store");
        for number in 0..self.bytes.len() as u64 / 7_000 {
            let (key, value) =
                (format!("filler-{number}").into_bytes(), work::value(number, 6_500));
            assert!(store.set(&key, &value, &SetOptions::set()).expect("a write").is_stored());
            self.known.note(&key, value);
        }
        drop(store);
        self.bytes = fs::read(&path).expect("its bytes");
    }

    fn places(&self) -> Places {
        Places::of(&self.bytes)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Works with a copy that has been damaged.
    fn try_damaged(&self, what: &str, seed: u64, damage: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes.clone();
        damage(&mut bytes);
        // Never the inode of the sample: to this program it is a file of another boot.
        let path = self.path("damaged");
        fs::write(&path, &bytes).expect("written");
        println!("{what}");
        match open(&path, "") {
            Ok(store) => {
                let _ = haypile::file::FileCheck::of(&path, |_| {}).expect("a report");
                let stat = haypile::file::FileStat::of(&path).expect("a report");
                assert!(
                    stat.live_bytes <= stat.capacity_bytes && stat.entries <= stat.slots,
                    "{stat:?}"
                );
                let apart = open(&path, "&namespace=apart").expect("once more");
                work::read_all(&*apart, &mut self.in_namespace.clone());
                work::list(&*apart, &self.in_namespace);
                let _ = apart.len().expect("a count");
                let only_read = open(&path, "&mode=ro").expect("once more");
                work::read_all(&*only_read, &mut self.known.clone());
                drop((apart, only_read));
                work::go_on(&*store, &mut self.known.clone(), seed);
                drop(store);
                let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a report");
                let lasting: Vec<&String> =
                    check.damages.iter().filter(|damage| !damage.contains("counts")).collect();
                assert!(lasting.is_empty(), "{lasting:?}");
            }
            Err(error) => assert!(error.to_string().contains("damaged: "), "{error}"),
        }
        fs::remove_file(&path).expect("removed");
    }
}

/// The factor by which there is more to do than in a short run.
fn scale() -> usize {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<usize>().ok());
    cases.map_or(1, |cases| (cases / 256).clamp(1, 64))
}

#[test]
fn a_header_that_was_changed_is_refused() {
    let sample = Sample::new();
    for at in 0..SEALED_BYTES {
        let mut bytes = sample.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        let path = sample.path("refused");
        fs::write(&path, &bytes).expect("written");
        let error = open(&path, "").expect_err("a damaged header").to_string();
        assert!(error.contains("refused"), "{error}");
        // Nothing was overwritten.
        assert_eq!(fs::read(&path).expect("bytes"), bytes);
    }
}

#[test]
fn what_is_no_file_of_ours_is_refused_in_words() {
    let sample = Sample::new();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut garbage = vec![0; 1 << 20];
    random.fill_bytes(&mut garbage);
    let mut newer = sample.bytes.clone();
    newer[8] += 1;
    let mut other_order = sample.bytes.clone();
    other_order[12..16].reverse();
    let longer = [&sample.bytes[..], &[0; 4096]].concat();
    for (bytes, words) in [
        (vec![], "not a cache of Haypile"),
        (vec![0; 1 << 20], "not a cache of Haypile"),
        (garbage, "not a cache of Haypile"),
        (newer, "version 7"),
        (other_order, "another byte order"),
        (longer, "should have 1048576 bytes and has 1052672"),
    ] {
        let path = sample.path("refused");
        fs::write(&path, &bytes).expect("written");
        for mode in ["", "&mode=ro"] {
            let error = open(&path, mode).expect_err(words).to_string();
            assert!(error.contains(words) && error.contains("refused"), "{error}");
        }
        assert!(haypile::file::FileCheck::of(&path, |_| {}).is_err());
        assert_eq!(fs::read(&path).expect("bytes"), bytes, "nothing was overwritten");
        let recreated = open(&path, "&recreate=yes").expect("another file");
        assert_eq!(recreated.len().expect("a count"), 0);
        assert!(recreated.set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
    }
}

#[test]
fn a_file_that_was_cut_is_refused() {
    let sample = Sample::new();
    let length = sample.bytes.len();
    let lengths = (0..64).chain((64..length).step_by(19_997 / scale())).chain(length - 9..length);
    for length in lengths {
        let path = sample.path("cut");
        fs::write(&path, &sample.bytes[..length]).expect("written");
        assert!(open(&path, "").is_err(), "{length}");
        assert!(open(&path, "&mode=ro").is_err(), "{length}");
    }
}

#[test]
fn every_byte_of_what_leads_to_values_may_be_wrong() {
    let sample = Sample::new();
    let end = sample.places().segments_at;
    // Bytes that are far from each other, together: each once.
    let batches = 120 * scale();
    for batch in 0..batches {
        let mut random = ChaCha8Rng::seed_from_u64(batch as u64);
        sample.try_damaged(&format!("bytes {batch}"), batch as u64, |bytes| {
            for at in (SEALED_BYTES + batch..end).step_by(batches) {
                bytes[at] = if batch % 2 == 0 {
                    bytes[at] ^ 1 << random.random_range(0..8)
                } else {
                    random.random()
                };
            }
        });
    }
}

/// Of a run, recycling finds the first record only: the sweep must not believe slots to others.
#[test]
fn a_segment_that_damage_made_a_run_has_one_record() {
    let sample = Sample::new();
    for (segment, at) in sample.places().table.step_by(64).enumerate() {
        sample.try_damaged(&format!("run {segment}"), segment as u64, |bytes| {
            bytes[at + 9] = 2;
        });
    }
}

#[test]
fn every_word_of_what_leads_to_values_may_be_extreme() {
    let sample = Sample::new();
    let end = sample.places().segments_at;
    let batches = 40 * scale();
    let extremes = [0, 1, u64::MAX, 1 << 63, u64::from(u32::MAX), !0 << 32, 2];
    for batch in 0..batches {
        let mut random = ChaCha8Rng::seed_from_u64(batch as u64);
        sample.try_damaged(&format!("words {batch}"), batch as u64, |bytes| {
            for at in (SEALED_BYTES + 8 * batch..end).step_by(8 * batches) {
                let word: u64 = extremes[random.random_range(0..extremes.len())];
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        });
    }
}

#[test]
fn lines_that_lead_back_to_themselves_are_counted_once() {
    let sample = Sample::new();
    let mut bytes = sample.bytes.clone();
    let mut loops = 0;
    for (line, at) in (1_u32..).zip(sample.places().overflows.step_by(64)) {
        // Its upper half is the bucket that it belongs to, the lower one the line after it.
        if bytes[at + 4..at + 8] != [0; 4] && bytes[at + 8..at + 64] != [0; 56] {
            bytes[at..at + 4].copy_from_slice(&line.to_le_bytes());
            loops += 1;
        }
    }
    assert!(loops > 0, "some buckets go on in a line");
    // A death that nobody has counted after: slots are counted, and no sum is believed.
    bytes[DEATHS] += 1;
    let path = sample.path("damaged");
    fs::write(&path, &bytes).expect("written");
    let entries = |path: &Path| haypile::file::FileStat::of(path).expect("a report").entries;
    fs::write(sample.path("sound"), &sample.bytes).expect("written");
    let sound = entries(&sample.path("sound"));
    assert!(entries(&path) <= sound, "{} of {sound}", entries(&path));
    let store = open(&path, "").expect("a store");
    work::go_on(&*store, &mut sample.known.clone(), 0);
}

#[test]
fn whole_lines_and_pages_may_be_garbage_or_another_s() {
    let sample = Sample::new();
    let end = sample.places().segments_at;
    for round in 0..100 * scale() {
        let mut random = ChaCha8Rng::seed_from_u64(round as u64);
        sample.try_damaged(&format!("round {round}"), round as u64, |bytes| {
            let grain = if round % 2 == 0 { 64 } else { 4096 };
            for _ in 0..random.random_range(1..8) {
                let at = random.random_range(SEALED_BYTES / 64..end / 64) * 64 / grain * grain;
                let range = at.max(SEALED_BYTES)..(at + grain).min(end);
                if range.is_empty() {
                    continue;
                }
                match random.random_range(0..3) {
                    0 => bytes[range].fill(0),
                    1 => random.fill_bytes(&mut bytes[range]),
                    _ => {
                        let from = random.random_range(SEALED_BYTES..end - range.len());
                        bytes.copy_within(from / 8 * 8..from / 8 * 8 + range.len(), range.start);
                    }
                }
            }
        });
    }
}

/// Damage to what leads to values, in a file of hundreds of segments: writes fill a third of them
/// again, and none may be refused.
#[test]
fn writes_go_on_in_a_damaged_file_of_930_segments() {
    let mut sample = Sample::sized(LARGE, "");
    sample.fill();
    let end = sample.places().segments_at;
    for round in 0..3 {
        let mut random = ChaCha8Rng::seed_from_u64(round);
        let mut bytes = sample.bytes.clone();
        for at in (SEALED_BYTES + 8 * round as usize..end).step_by(8 * 40) {
            match round {
                0 => bytes[at] ^= 1 << random.random_range(0..8),
                1 => bytes[at..at + 8].fill(0),
                _ => random.fill_bytes(&mut bytes[at..at + 8]),
            }
        }
        let path = sample.path("damaged");
        fs::write(&path, &bytes).expect("written");
        let store = open(&path, "").expect("the header is sound");
        let mut known = sample.known.clone();
        work::read_all(&*store, &mut known);
        work::fill_a_third(&*store, &mut known, round);
        drop(store);
        fs::remove_file(&path).expect("removed");
    }
}

#[test]
fn records_may_be_garbage() {
    let sample = Sample::new();
    let Places { segments_at: start, segment_bytes, .. } = sample.places();
    for round in 0..80 * scale() {
        let mut random = ChaCha8Rng::seed_from_u64(round as u64);
        sample.try_damaged(&format!("round {round}"), round as u64, |bytes| {
            let length = bytes.len();
            for _ in 0..1 << (round % 12) {
                let at = random.random_range(start..length);
                bytes[at] ^= 1 << random.random_range(0..8);
            }
            if round % 10 == 0 {
                let at = start + segment_bytes * random.random_range(0..8);
                random.fill_bytes(&mut bytes[at..at + segment_bytes]);
            }
            if round % 10 == 5 {
                // Parts of one segment in the place of others', as a loss of power can leave them.
                for _ in 0..10 {
                    let page = |random: &mut ChaCha8Rng| start + random.random_range(0..100) * 4096;
                    let (from, to) = (page(&mut random), page(&mut random));
                    bytes.copy_within(from..from + 4096, to);
                }
            }
        });
    }
}

#[test]
fn with_verification_a_flipped_bit_is_found_in_a_file_that_is_in_use() {
    let sample = Sample::new();
    let path = sample.path("in-use");
    let store = open(&path, "&verify=always").expect("a store");
    let mut known = Known::default();
    for number in 0..100 {
        let (key, value) = (format!("key-{number}").into_bytes(), work::value(number, 3_000));
        assert!(store.set(&key, &value, &SetOptions::set()).expect("a write").is_stored());
        known.note(&key, value);
    }
    let marker = work::value(7, 3_000);
    let mut bytes = fs::read(&path).expect("bytes");
    let at = bytes.windows(3_000).position(|window| window == marker).expect("a value");
    bytes[at + 1_234] ^= 4;
    fs::write(&path, &bytes).expect("written in place");
    assert_eq!(store.get(b"key-7").expect("a read"), None);
    assert_eq!(store.get_pinned(b"key-7").expect("a read").as_deref(), None);
    assert_eq!(store.stats().expect("counts").corrupt, 2);
    work::go_on(&*store, &mut known, 0);
}

/// Damage that comes while a file is used: what it leads to is bounded in time and stays within the
/// file. Values may be wrong then, for nothing is verified that this boot has written.
#[test]
#[ignore = "another test starts it"]
fn user() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let options = child::variable("HAYPILE_TEST_OPTIONS").unwrap_or_default();
    let store = open(Path::new(&path), &options).expect("a store");
    let mut lengths = Vec::new();
    for number in
        0..child::variable("HAYPILE_TEST_NUMBER").map_or(0, |text| text.parse().expect("a number"))
    {
        // So that each key meets each operation.
        let key = format!("key-{}", number * 7 % 299).into_bytes();
        let bytes = if number % 50 == 0 { 70_000 } else { number as usize * 37 % 2_500 };
        // An error is an answer.
        let _ = match number % 8 {
            0 => store.delete(&key).map(drop),
            1 => store.incr(&key, 1).map(drop),
            2 => store.touch(&key, haypile::Ttl::from(None)).map(drop),
            3 => store
                .get_pinned(&key)
                .map(|value| lengths.extend(value.map(|value| value.to_vec().len()))),
            4 => store.get(&key).map(drop),
            5 if number % 16 == 5 => store.claim(&key, None).map(drop),
            _ => {
                let mut value = work::value(number, bytes);
                // Compressed, it is shorter by half, and still pinned.
                value.resize(if bytes > 65_536 { 2 * bytes } else { bytes }, 0);
                store.set(&key, &value, &SetOptions::set()).map(drop)
            }
        };
        if number % 400 == 0 {
            let _ = (store.keys(haypile::Cursor::default(), 50), store.len());
            let _ = store.stats().map(|stats| stats.hit_ratio());
        }
        if number % 1_000 == 999 {
            let _ = store.clear();
        }
    }
    println!("\nanswered");
}

#[test]
fn a_file_may_be_garbled_while_it_is_used() {
    let samples = [Sample::new(), Sample::with("&compress=zstd")];
    for seed in 0..4 * scale() as u64 {
        let sample = &samples[seed as usize % 2];
        let Places { table, segments_at, .. } = sample.places();
        let starts = [SEALED_BYTES, table.start, segments_at, sample.bytes.len()];
        let path = sample.path("used");
        fs::write(&path, &sample.bytes).expect("written");
        let mut users = ["", "&namespace=apart"].map(|options| {
            let variables = [
                ("HAYPILE_TEST_PATH", path.display().to_string()),
                ("HAYPILE_TEST_OPTIONS", options.to_owned()),
                ("HAYPILE_TEST_NUMBER", "20000".to_owned()),
            ];
            child::start("damage::user", &variables)
        });
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).expect("a file");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let begin = Instant::now();
        // A word here and there, faster than it could be mended.
        while users.iter_mut().any(|user| user.try_wait().expect("a child").is_none()) {
            // As often of the table of segments, which is small, as of all before it, and of records.
            let part = random.random_range(0..3);
            let at = random.random_range(starts[part] / 8..starts[part + 1] / 8) * 8;
            let mut word = [0; 8];
            file.read_exact_at(&mut word, at as u64).expect("read");
            let word = match random.random_range(0..6) {
                0 => 0,
                1 => random.random_range(0..1 << 20),
                2 => random.random(),
                // One bit of the present word: the result may still pass for a sound one.
                _ => u64::from_le_bytes(word) ^ 1 << random.random_range(0..64),
            };
            file.write_all_at(&word.to_le_bytes(), at as u64).expect("written");
            if begin.elapsed() > LONG {
                for user in &mut users {
                    user.kill().expect("it is there");
                }
                panic!("an operation does not end, seed {seed}");
            }
        }
        for user in users {
            let output = user.wait_with_output().expect("its end");
            let lines = String::from_utf8_lossy(&output.stdout);
            assert!(lines.lines().any(|line| line == "answered"), "seed {seed}: {output:?}");
        }
        fs::remove_file(&path).expect("removed");
    }
}

#[test]
fn lanes_that_name_segments_at_random_leave_room_for_long_values() {
    let sample = Sample::new();
    let mut bytes = sample.bytes.clone();
    let lanes = sample.places().lanes.step_by(64);
    assert!(lanes.len() >= 2);
    for (lane, at) in lanes.enumerate() {
        bytes[at..at + 8].copy_from_slice(&(2 * lane as u64 + 2).to_le_bytes());
    }
    let path = sample.path("damaged");
    fs::write(&path, &bytes).expect("written");
    let store = open(&path, "").expect("a store");
    let mut known = sample.known.clone();
    for number in 0..20 {
        work::set(&*store, &mut known, b"another long one", number, 100_000);
        assert!(store.get(b"another long one").expect("a read").is_some());
    }
}
