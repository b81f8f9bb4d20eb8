//! The power fails: each word, line, sector or page of the file is, for itself, as it was at some
//! moment since the last durable flush.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haypile::file::hooks;
use haypile::{Durability, Registry, SetOptions, Store, Ttl};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::work::{self, Known, LARGE};

/// The units in which a disk or a file system writes: nothing less than a word, and seldom less
/// than a page.
const GRAINS_BYTES: [usize; 4] = [8, 64, 512, 4096];
const KEYS: u64 = 120;
const COUNTERS: u64 = 6;

/// The sizes of values.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// All of one length, so that segments filled again have records at the same offsets.
    One(usize),
    /// Of many lengths.
    Many,
    /// Some longer than a segment.
    Long,
}

/// The way to choose pages.
#[derive(Clone, Copy, Debug)]
enum Mix {
    Evenly,
    /// Most are the latest.
    Late,
    /// Most are the earliest.
    Early,
    /// Neighbours are mostly of one moment.
    InStretches,
}

#[derive(Clone, Debug)]
struct Course {
    seed: u64,
    sizes: Sizes,
    mix: Mix,
    grain_bytes: usize,
    size: &'static str,
    entry_size: &'static str,
    keys: u64,
    before_flush: u64,
    stages: Vec<u64>,
    clears: bool,
    boots: u64,
}

fn courses(most_operations: u64) -> impl Strategy<Value = Course> {
    let sizes =
        prop_oneof![(0_usize..1_000).prop_map(Sizes::One), Just(Sizes::Many), Just(Sizes::Long)];
    let mix =
        prop_oneof![Just(Mix::Evenly), Just(Mix::Late), Just(Mix::Early), Just(Mix::InStretches)];
    let entry_size = prop_oneof![Just("256"), Just("4KiB"), Just("16KiB"), Just("64KiB")];
    let stages = prop::collection::vec(0..most_operations, 1..4);
    (
        any::<u64>(),
        sizes,
        (mix, prop::sample::select(&GRAINS_BYTES)),
        entry_size,
        5..KEYS,
        0..most_operations,
        stages,
        any::<bool>(),
        1..3_u64,
    )
        .prop_map(
            |(seed, sizes, mix, entry_size, keys, before_flush, stages, clears, boots)| {
                let (mix, grain_bytes) = mix;
                Course {
                    seed,
                    sizes,
                    mix,
                    grain_bytes,
                    size: "1MiB",
                    entry_size,
                    keys,
                    before_flush,
                    stages,
                    clears,
                    boots,
                }
            },
        )
}

impl Course {
    fn open(&self, path: &Path) -> Arc<dyn Store> {
        haypile::file::hooks::set_hash_seed(Some(self.seed));
        let Self { size, entry_size, .. } = self;
        let url = format!("file://{}?size={size}&entry_size={entry_size}", path.display());
        Registry::new().open(&url).expect("a store")
    }

    fn bytes(&self, random: &mut ChaCha8Rng) -> usize {
        match self.sizes {
            Sizes::One(bytes) => bytes,
            Sizes::Long if random.random_range(0..20) == 0 => random.random_range(60_000..120_000),
            Sizes::Many | Sizes::Long => random.random_range(0..2_000),
        }
    }

    /// Does this number of operations; gives the keys whose entries have changed.
    fn work(
        &self,
        store: &dyn Store,
        known: &mut Known,
        random: &mut ChaCha8Rng,
        operations: u64,
    ) -> HashSet<Vec<u8>> {
        let mut changed = HashSet::new();
        let hour = Some(Duration::from_hours(1));
        for _ in 0..operations {
            let number = random.random_range(0..1 << 40);
            // Some are written often, and some seldom.
            let key = random.random_range(0..self.keys) >> random.random_range(0..4);
            let key = format!("key-{key}").into_bytes();
            match random.random_range(0..40) {
                0..4 => {
                    let _ = store.delete(&key).expect("a deletion");
                    known.is_now(&key, None);
                }
                4..6 => {
                    let _ = store.touch(&key, Ttl::from(hour)).expect("a touch");
                }
                6..10 => {
                    let key = format!("counter-{}", number % COUNTERS).into_bytes();
                    changed.insert(key.clone());
                    if let Some(count) = store.incr(&key, 1).expect("a count") {
                        known.is_now(&key, Some(count.to_string().into_bytes()));
                    } else {
                        let text = number.to_string().into_bytes();
                        let options = SetOptions::add().with_ttl(hour);
                        assert!(store.set(&key, &text, &options).expect("a write").is_stored());
                        known.is_now(&key, Some(text));
                    }
                }
                10..20 => {
                    known.judge(&key, store.get(&key).expect("a read").as_deref());
                    continue;
                }
                20 if self.clears && number % 16 == 0 => {
                    store.clear().expect("a clearing");
                    known.clear();
                }
                _ => work::set(store, known, &key, number, self.bytes(random)),
            }
            changed.insert(key);
        }
        changed
    }

    /// A file as a loss of power can leave it, that was so at these moments.
    fn mixed(&self, moments: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
        let last = moments.len() - 1;
        let mut chosen = 0;
        let mut mixed = Vec::with_capacity(moments[0].len());
        for at in (0..moments[0].len()).step_by(self.grain_bytes) {
            let any = random.random_range(0..=last);
            let is_rare = random.random_range(0..8) == 0;
            chosen = match self.mix {
                Mix::Evenly => any,
                Mix::Late if !is_rare => last,
                Mix::Early if !is_rare => 0,
                Mix::InStretches if !is_rare => chosen,
                _ => any,
            };
            mixed.extend_from_slice(&moments[chosen][at..at + self.grain_bytes]);
        }
        mixed
    }

    /// Runs it, and gives the file that is left, with what was durable and was not changed since.
    fn run(&self, directory: &Path, known: &mut Known) -> (PathBuf, Vec<(Vec<u8>, Vec<u8>)>) {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut path = directory.join("boot-0");
        let mut durable = Vec::new();
        for boot in 1..=self.boots {
            let store = self.open(&path);
            work::read_all(&*store, known);
            let _ = self.work(&*store, known, &mut random, self.before_flush);
            store.flush(Durability::Disk).expect("a flush");
            let flushed = known.changes().clone();
            let mut moments = vec![fs::read(&path).expect("bytes")];
            let mut changed = HashSet::new();
            for operations in &self.stages {
                changed.extend(self.work(&*store, known, &mut random, *operations));
                moments.push(fs::read(&path).expect("bytes"));
            }
            drop(store);
            let unchanged = flushed.into_iter().filter(|(key, _)| !changed.contains(key));
            durable = unchanged.filter_map(|(key, value)| Some((key, value?))).collect();
            path = directory.join(format!("boot-{boot}"));
            fs::write(&path, self.mixed(&moments, &mut random)).expect("written");
            known.forget_order();
        }
        (path, durable)
    }
}

fn go_on(course: &Course, path: &Path, known: &mut Known) {
    let store = course.open(path);
    let stat = haypile::file::FileStat::of(path).expect("a report");
    assert!(stat.live_bytes <= stat.capacity_bytes && stat.entries <= stat.slots, "{stat:?}");
    let before = haypile::file::FileCheck::of(path, |_| {}).expect("a report");
    work::go_on(&*store, known, course.seed);
    drop(store);
    let check = haypile::file::FileCheck::of(path, |_| {}).expect("a report");
    assert_eq!(check.damaged, 0, "{check:?}, before {before:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    })]

    #[test]
    fn nothing_torn_is_served_and_nothing_comes_back(course in courses(3_000)) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut known = Known::default();
        let (path, _) = course.run(directory.path(), &mut known);
        go_on(&course, &path, &mut known);
    }

    #[test]
    fn what_was_durable_and_has_not_changed_is_there(course in courses(150)) {
        // All of it fits, so that nothing was evicted, nor moved.
        let course = Course { entry_size: "4KiB", boots: 1, clears: false, ..course };
        let course = match course.sizes {
            Sizes::Long => Course { sizes: Sizes::Many, ..course },
            _ => course,
        };
        let directory = tempfile::tempdir().expect("a directory");
        let mut known = Known::default();
        let (path, durable) = course.run(directory.path(), &mut known);
        let store = course.open(&path);
        for (key, value) in durable {
            let found = store.get(&key).expect("a read");
            assert!(found.as_ref() == Some(&value), "{}", String::from_utf8_lossy(&key));
        }
        drop(store);
        go_on(&course, &path, &mut known);
    }
}

/// A file of hundreds of segments, most of which hold live entries when the power fails: what is
/// refused after some dozens of segments shows only here.
#[test]
fn writes_go_on_in_a_file_of_930_segments() {
    for (seed, sizes, mix, grain_bytes) in
        [(1, Sizes::One(7_000), Mix::Evenly, 64), (2, Sizes::One(6_000), Mix::Early, 4096)]
    {
        let course = Course {
            seed,
            sizes,
            mix,
            grain_bytes,
            size: LARGE,
            entry_size: "4KiB",
            keys: 20_000,
            before_flush: 3_000,
            stages: vec![6_000, 6_000],
            clears: false,
            boots: 1,
        };
        let directory = tempfile::tempdir().expect("a directory");
        let mut known = Known::default();
        let (path, _) = course.run(directory.path(), &mut known);
        let store = course.open(&path);
        work::read_all(&*store, &mut known);
        work::fill_a_third(&*store, &mut known, seed);
    }
}

/// Every word is of the last moment, but for the tables of live bytes, which are of an earlier one:
/// segments that have been filled since then count as empty.
#[test]
fn writes_go_on_where_most_segments_are_counted_as_empty() {
    for (seed, percent) in [(1, 0), (2, 60)] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        let url = format!("file://{}?size={LARGE}", path.display());
        let value = |number: u64| work::value(seed << 40 | number, 1_000);
        hooks::set_boot_id(Some("one"));
        let store = Registry::new().open(&url).expect("a store");
        store.flush(Durability::Disk).expect("a flush");
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("the file");
        let (tables_at, tables_bytes) = live_tables(&file);
        let mut earlier = vec![0; tables_bytes];
        let entries = file.metadata().expect("its length").len() / 1_100;
        let mut known = Known::default();
        for number in 0..entries {
            if number == entries * percent / 100 {
                file.read_exact_at(&mut earlier, tables_at).expect("the tables");
            }
            let key = number.to_le_bytes();
            let value = value(number);
            assert!(store.set(&key, &value, &SetOptions::set()).expect("a write").is_stored());
            known.note(&key, value);
        }
        drop(store);
        file.write_all_at(&earlier, tables_at).expect("written");
        hooks::set_boot_id(Some("two"));
        let store = Registry::new().open(&url).expect("a store");
        // Nothing that would repair the counts: no `len`.
        let writes = entries / 10;
        let refused: Vec<String> = (0..writes)
            .filter_map(|number| {
                let key = (1 << 40 | number).to_le_bytes();
                store.set(&key, &value(number), &SetOptions::set()).err()
            })
            .map(|error| error.to_string())
            .collect();
        assert!(refused.is_empty(), "{} of {writes}, {percent} %: {}", refused.len(), refused[0]);
        work::read_all(&*store, &mut known);
        hooks::set_boot_id(None);
    }
}

/// Where the tables of live bytes begin, and their length.
fn live_tables(file: &File) -> (u64, usize) {
    let number = |at: u64| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at).expect("the header");
        u64::from(u32::from_le_bytes(bytes))
    };
    let [owner_slots, claims, buckets, overflows, ghosts, segments] =
        [48, 52, 56, 60, 64, 68].map(number);
    let lines = number(88) + claims + buckets + overflows + ghosts + segments;
    let table_bytes = (segments * 8).next_multiple_of(64);
    (4096 + owner_slots * 320 + lines * 64, usize::try_from(8 * table_bytes).expect("some pages"))
}
