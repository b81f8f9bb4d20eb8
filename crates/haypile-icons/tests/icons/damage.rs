//! Files whose bytes were changed, cut off, or left by a process that was killed: a picture is never another one than
//! the icon's file renders, and what was damaged is stored again.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use haypile::Cache;
use haypile_icons::{
    IconCache, IconCacheOptions, IconCounts, IconRequest, Pixmap, PixmapCache, open_cache_at,
    render_file,
};

use crate::theme::{Theme, age, svg};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const SIZES: [u32; 2] = [16, 24];
/// Icons that are looked up.
const ICONS: u64 = (NAMES.len() * SIZES.len()) as u64;

/// A cache that was filled, and what it has to answer.
struct Filled {
    theme: Theme,
    cache: PathBuf,
    /// The bytes of the file.
    whole: Vec<u8>,
}

impl Filled {
    fn new() -> Self {
        let texts = ["#f00", "#0f0", "#00f", "#123", "#fed"].map(svg);
        let files = ["a.svg", "b.svg", "c.svg", "d.svg", "e.svg"];
        let icons: Vec<(&str, String)> = files.into_iter().zip(texts).collect();
        let theme = Theme::new(&icons);
        let cache = theme.folder.path().join("cache");
        let filled = Self { theme, cache, whole: Vec::new() };
        let url = format!("file:{},size=1MiB,entry_size=2KiB", filled.cache.display());
        drop(Cache::open(&url).unwrap());
        assert_eq!(filled.look().rendered, ICONS);
        let whole = fs::read(&filled.cache).unwrap();
        Self { whole, ..filled }
    }

    /// Looks up all icons as a new process does, and compares each with what its file renders.
    fn look(&self) -> IconCounts {
        let options = IconCacheOptions {
            base: vec![self.theme.base()],
            racy_margin: Some(Duration::ZERO),
            shares_checks: false,
            ..IconCacheOptions::default()
        };
        let cache = open_cache_at(&self.cache).unwrap().cache;
        let icons = IconCache::with("mine", Some(cache), options);
        for name in NAMES {
            for size in SIZES {
                let icon = icons.lookup(&IconRequest::new(name, size)).unwrap();
                let icon = icon.unwrap_or_else(|| panic!("{name} is missing"));
                let path = self.theme.apps().join(name).with_extension("svg");
                assert_eq!(icon.path(), path);
                let fresh = render_file(&path, (size, size)).unwrap();
                assert!(*icon.pixmap() == fresh, "{name} at {size} is another picture");
            }
        }
        let nothing = icons.lookup(&IconRequest::new("nothing", 16)).unwrap();
        assert!(nothing.is_none(), "{nothing:?}");
        icons.counts()
    }

    /// Changes bytes of the file, as a disk does: its inode, and so its stamp, stay.
    fn damage(&self, flips: &[(usize, u8)]) {
        fs::write(&self.cache, &self.whole).unwrap();
        let file = OpenOptions::new().write(true).open(&self.cache).unwrap();
        for &(at, flip) in flips {
            file.write_all_at(&[self.whole[at] ^ flip], at as u64).unwrap();
        }
    }

    /// The place of some bytes in the file.
    fn find(&self, bytes: &[u8]) -> usize {
        self.whole.windows(bytes.len()).position(|it| it == bytes).unwrap()
    }

    /// The parts of one stored picture and of the index, from the first byte to the last: their names, and whether
    /// the checksum covers them, so that their damage is noticed as such.
    fn parts(&self) -> Vec<(&'static str, std::ops::Range<usize>, bool)> {
        let path = self.theme.apps().join("c.svg");
        let path = path.to_str().unwrap().as_bytes();
        let (head, at) = (64, self.find(path));
        let pixels = at + path.len();
        let index = self.find(b"hpicon0");
        let options =
            IconCacheOptions { base: vec![self.theme.base()], ..IconCacheOptions::default() };
        let index_bytes = IconCache::with("mine", None, options).index().as_bytes().len();
        vec![
            ("key and head of the record", at - head - 56..at - head, false),
            ("head", at - head..at, true),
            ("path", at..pixels, true),
            ("pixels", pixels..pixels + 16 * 16 * 4, true),
            ("index", index..index + index_bytes, true),
        ]
    }
}

/// A process that finds damage answers rightly, and stores what was damaged, so that the next one finds it.
fn heals(filled: &Filled, what: &str) -> IconCounts {
    let first = filled.look();
    let second = filled.look();
    let made = (second.rendered, second.scans, second.damaged, second.failures);
    assert_eq!(made, (0, 0, 0, 0), "{what}: the second process; the first {first:?}");
    assert_eq!(second.cached, ICONS, "{what}");
    first
}

#[test]
fn a_byte_that_is_flipped_anywhere_is_no_other_picture_and_is_stored_again() {
    let filled = Filled::new();
    for (what, range, is_covered) in filled.parts() {
        let every = if what == "pixels" { 13 } else { 1 };
        for at in range.step_by(every) {
            for flip in [0x01, 0xFF] {
                filled.damage(&[(at, flip)]);
                let counts = heals(&filled, &format!("{what}, byte {at} ^ {flip:02x}"));
                if is_covered {
                    assert_eq!(counts.damaged, 1, "{what}, byte {at} ^ {flip:02x}: {counts:?}");
                    assert_eq!(counts.rendered + counts.scans, 1, "{what}, byte {at}: {counts:?}");
                }
            }
        }
    }
}

/// Numbers that are the same in each run: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    fn flips(&mut self, count: usize, range: &std::ops::Range<usize>) -> Vec<(usize, u8)> {
        let mut flip =
            || (range.start + self.below(range.len()), 1 + u8::try_from(self.below(255)).unwrap());
        (0..count).map(|_| flip()).collect()
    }
}

#[test]
fn bytes_that_are_flipped_at_random_are_no_other_picture_and_are_stored_again() {
    let filled = Filled::new();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let whole = 0..filled.whole.len();
    let values = {
        let ends = filled.parts().into_iter().flat_map(|(_, range, _)| [range.start, range.end]);
        let ends: Vec<usize> = ends.collect();
        *ends.iter().min().unwrap()..*ends.iter().max().unwrap()
    };
    for (what, range) in [("anywhere", whole), ("in values", values)] {
        for count in [1, 20, 2_000] {
            for round in 0..40 {
                filled.damage(&random.flips(count, &range));
                heals(&filled, &format!("{count} bytes {what}, round {round}"));
            }
        }
    }
}

#[test]
fn a_file_that_is_cut_off_is_replaced_by_one_process_and_used_by_the_next() {
    let filled = Filled::new();
    for bytes in [0, 1, 100, 4095, 4096, 5000, filled.whole.len() / 2, filled.whole.len() - 1] {
        fs::write(&filled.cache, &filled.whole[..bytes]).unwrap();
        let opened = open_cache_at(&filled.cache).unwrap();
        let reason = opened.replaced.expect("it could not be used");
        assert!(!reason.contains("recreate") && reason.len() < 80, "{reason}");
        drop(opened.cache);
        heals(&filled, &format!("{bytes} bytes"));
    }
    let foreign: [&[u8]; 2] = [b"#!/bin/sh\necho other\n", &[0xFF; 9000]];
    for bytes in foreign {
        fs::write(&filled.cache, bytes).unwrap();
        assert!(open_cache_at(&filled.cache).unwrap().replaced.is_some());
        heals(&filled, "foreign bytes");
    }
    assert_eq!(names(filled.theme.folder.path()), ["cache", "icons"]);
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_not_a_file_of_an_older_format_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    drop(open_cache_at(&path).unwrap());
    let mut newer = fs::read(&path).unwrap();
    newer[8..12].copy_from_slice(&1000_u32.to_le_bytes());
    fs::write(&path, &newer).unwrap();
    let error = open_cache_at(&path).unwrap_err().to_string();
    assert!(error.contains("update the program"), "{error}");
    assert!(fs::read(&path).unwrap() == newer, "the file of a newer program");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    open_cache_at(&path).unwrap_err();
    fs::remove_dir(&path).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    open_cache_at(&path).unwrap_err();
    assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
}

#[test]
fn of_many_that_find_an_unusable_file_one_replaces_it_and_none_loses_what_it_stores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    for round in 0..10 {
        fs::write(&path, "no cache").unwrap();
        let begin = Barrier::new(4);
        let replaced: Vec<bool> = thread::scope(|threads| {
            let one = |number: usize| {
                begin.wait();
                let opened = open_cache_at(&path).unwrap();
                opened.cache.set(format!("key {number}"), "value").unwrap();
                opened.replaced.is_some()
            };
            let all: Vec<_> = (0..4).map(|number| threads.spawn(move || one(number))).collect();
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(replaced.iter().filter(|it| **it).count(), 1, "round {round}");
        let cache = open_cache_at(&path).unwrap().cache;
        for number in 0..4 {
            let value = cache.get(format!("key {number}")).unwrap();
            assert_eq!(value.as_deref(), Some(&b"value"[..]), "round {round}, key {number}");
        }
    }
    assert_eq!(names(folder.path()), ["cache"]);
}

const FILL: &str = "HAYPILE_ICONS_FILL";

/// Not a test: the process that the next one kills.
#[test]
#[ignore = "run by another test"]
fn fills_until_it_is_killed() {
    let Some(place) = std::env::var_os(FILL).map(PathBuf::from) else { return };
    let options = IconCacheOptions {
        base: vec![place.join("icons")],
        racy_margin: Some(Duration::ZERO),
        ..IconCacheOptions::default()
    };
    loop {
        let cache = open_cache_at(&place.join("cache")).unwrap().cache;
        let icons = IconCache::with("mine", Some(cache.clone()), options.clone());
        for name in NAMES {
            for size in SIZES {
                icons.lookup(&IconRequest::new(name, size)).unwrap().unwrap();
                println!("filled");
            }
        }
        cache.clear().unwrap();
    }
}

#[test]
fn a_process_that_is_killed_while_it_fills_leaves_no_other_picture() {
    let filled = Filled::new();
    for round in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "damage::fills_until_it_is_killed", "--ignored", "--nocapture"])
            .env(FILL, filled.theme.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let seen = lines.map(Result::unwrap).filter(|line| line.ends_with("filled")).nth(round);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.is_some());
        heals(&filled, &format!("killed after {round} icons"));
    }
}

#[test]
fn a_pixmap_cache_takes_damage_for_a_miss_and_stores_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, drawing) = (folder.path().join("cache"), folder.path().join("green.svg"));
    fs::write(&drawing, svg("#0f0")).unwrap();
    age(&drawing, 1000);
    let url = format!("file:{},size=1MiB,namespace=game", path.display());
    let open = || PixmapCache::with(Cache::open(&url).unwrap());
    let inserted = Pixmap::new(4, 4, (0..64).map(|it| it * 3).collect()).unwrap();
    let header = b"a header of the program's own";
    open().insert("a", &inserted).unwrap();
    open().set_header(header).unwrap();
    open().set_timestamp(0x1234_5678_9ABC_DEF0).unwrap();
    let whole = fs::read(&path).unwrap();
    let find =
        |bytes: &[u8]| whole.windows(bytes.len()).position(|window| window == bytes).unwrap();
    let (pixels, text) = (find(inserted.pixels()), find(header));
    let stamp = find(&0x1234_5678_9ABC_DEF0_u64.to_le_bytes());
    for at in (pixels - 77..pixels + 64).chain(text..text + 28).chain(stamp..stamp + 8) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(&path, damaged).unwrap();
        let cache = open();
        let found = cache.find("a").unwrap();
        assert!(found.as_ref().is_none_or(|it| *it == inserted), "byte {at}");
        let is_value = (pixels..pixels + 64).contains(&at);
        assert!(!is_value || (found.is_none() && cache.damaged() == 1), "byte {at}");
        let said = cache.header().unwrap();
        assert!(said.is_none_or(|it| it == header), "byte {at}");
        let moment = cache.timestamp().unwrap();
        assert!(moment.is_none_or(|it| it == 0x1234_5678_9ABC_DEF0), "byte {at}");
        cache.insert("a", &inserted).unwrap();
        drop(cache);
        let next = open();
        assert_eq!(next.find("a").unwrap(), Some(inserted.clone()), "byte {at}");
        assert!(next.damaged() == 0, "byte {at}");
    }
}
