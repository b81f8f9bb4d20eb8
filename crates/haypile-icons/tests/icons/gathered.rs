//! A cache that is full, whose icons lie in more segments than a process may read in place: they are stored again, once,
//! so that they lie together. Each process is one of its own, for a process has its part of the segments as a whole.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use haypile::{Cache, Version};
use haypile_icons::{IconCache, IconCacheOptions, IconRequest, render_file};

use crate::theme::{Theme, age, svg};

const PLACE: &str = "HAYPILE_ICONS_PLACE";
const MODE: &str = "HAYPILE_ICONS_MODE";
/// Many more than the 14 segments that a process may lock in a file of 8 MiB.
const ICONS: usize = 100;
/// A key that a note has.
const NOTE: &[u8] = b"g";

/// Counts of a process that shows all icons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shown {
    copied: usize,
    gathered: usize,
    rendered: usize,
    damaged: usize,
    failures: usize,
}

/// A theme, and a cache that is full.
struct Full {
    theme: Theme,
    icons: usize,
}

fn name(number: usize) -> String {
    format!("icon{number}")
}

impl Full {
    /// Renders icons, and scatters them.
    fn new(icons: usize) -> Self {
        let files: Vec<(String, String)> = (0..icons)
            .map(|number| (format!("{}.svg", name(number)), svg(&format!("#{number:06x}"))))
            .collect();
        let files: Vec<(&str, String)> =
            files.iter().map(|(file, text)| (file.as_str(), text.clone())).collect();
        let full = Self { theme: Theme::new(&files), icons };
        let first = full.theme.open();
        for number in 0..icons {
            first.lookup(&IconRequest::new(&name(number), 16)).unwrap().unwrap();
        }
        drop(first);
        full.scatter();
        full
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.theme.file()).unwrap()
    }

    /// Stores each picture again, with other values behind it, up to nine tenths of the file.
    fn scatter(&self) {
        let cache = self.cache();
        let pictures = self.pictures();
        let others = (8 << 20) * 9 / 10 / 4096;
        let mut filled = 0;
        for (number, key) in (1..).zip(pictures.keys()) {
            cache.set(key, cache.get(key).unwrap().unwrap()).unwrap();
            while filled < others * number / pictures.len() {
                cache.set(format!("other {filled}"), vec![1; 4096]).unwrap();
                filled += 1;
            }
        }
        assert_eq!(self.pictures().len(), self.icons, "none has left");
    }

    /// The stored pictures, and their versions.
    fn pictures(&self) -> BTreeMap<Vec<u8>, Version> {
        let cache = self.cache();
        let keys = cache.keys().map(Result::unwrap).filter(|key| key[0] == b'p');
        keys.map(|key| {
            let (_, version) = cache.get_versioned(&key).unwrap().unwrap();
            (key, version)
        })
        .collect()
    }

    fn start(&self, mode: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "gathered::shows_all_icons", "--ignored", "--nocapture"])
            .env(PLACE, self.theme.folder.path())
            .env(MODE, mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut process = Process { child, said };
        process.hear("ready");
        process
    }

    /// Eight processes that show all icons at the same time.
    fn session(&self) -> Vec<Shown> {
        let mut all: Vec<Process> = (0..8).map(|_| self.start("rw")).collect();
        all.iter_mut().for_each(Process::go);
        let counts = all.iter_mut().map(Process::counts).collect();
        all.into_iter().for_each(Process::end);
        counts
    }

    /// A process that shows all icons, alone.
    fn show(&self) -> Shown {
        self.start("rw").show()
    }
}

struct Process {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Process {
    /// Returns the rest of the next line that begins with a word.
    fn hear(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
            line.clear();
        }
        panic!("it has ended without '{word}'")
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn counts(&mut self) -> Shown {
        let said = self.hear("shown");
        let mut counts = said.split(' ').map(|count| count.parse().unwrap());
        let mut next = || counts.next().unwrap();
        Shown {
            copied: next(),
            gathered: next(),
            rendered: next(),
            damaged: next(),
            failures: next(),
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    fn show(mut self) -> Shown {
        self.go();
        let counts = self.counts();
        self.end();
        counts
    }
}

/// Not a test: a process that shows all icons, compares them with what their files render, and keeps them until its input ends.
#[test]
#[ignore = "run by other tests"]
fn shows_all_icons() {
    let Some(place) = std::env::var_os(PLACE).map(std::path::PathBuf::from) else { return };
    let mode = std::env::var(MODE).unwrap();
    let base = place.join("icons");
    let options = IconCacheOptions {
        base: vec![base.clone()],
        racy_margin: Some(std::time::Duration::ZERO),
        shares_checks: false,
        ..IconCacheOptions::default()
    };
    let size = if mode == "rw" { "&size=8MiB" } else { "" };
    let url = format!("file://{}?mode={mode}{size}", place.join("cache").display());
    println!("\nready");
    let mut lines = std::io::stdin().lines();
    lines.next();
    let icons = IconCache::with("mine", Some(Cache::open(&url).unwrap()), options);
    let files = std::fs::read_dir(base.join("mine/16/apps")).unwrap().count();
    let shown: Vec<_> = (0..files)
        .map(|number| icons.lookup(&IconRequest::new(&name(number), 16)).unwrap().unwrap())
        .collect();
    let counts = icons.counts();
    for icon in &shown {
        assert!(*icon.pixmap() == render_file(icon.path(), (16, 16)).unwrap(), "{icon:?}");
    }
    println!(
        "\nshown {} {} {} {} {}",
        counts.copied, counts.gathered, counts.rendered, counts.damaged, counts.failures
    );
    lines.next();
}

#[test]
fn icons_that_lie_apart_are_gathered_once_and_then_no_process_copies_or_stores_any() {
    let full = Full::new(ICONS);
    let first = full.show();
    assert!(first.copied > ICONS / 2 && first.copied < ICONS, "{first:?}");
    assert_eq!(first, Shown { copied: first.copied, ..Shown::default() });
    assert_eq!(full.show(), Shown { gathered: ICONS, ..Shown::default() });
    let gathered = full.pictures();
    for _ in 0..3 {
        assert_eq!(full.show(), Shown::default());
    }
    assert_eq!(full.pictures(), gathered, "nothing was stored again");
}

#[test]
fn of_many_processes_one_stores_each_picture_and_all_read_it_there() {
    let full = Full::new(ICONS);
    let sum = |counts: &[Shown], of: fn(&Shown) -> usize| counts.iter().map(of).sum::<usize>();
    // Some may begin when another one has left its note already, and gather.
    let first = full.session();
    assert!(sum(&first, |it| it.copied) > 0, "{first:?}");
    let second = full.session();
    let gathered = sum(&first, |it| it.gathered) + sum(&second, |it| it.gathered);
    assert_eq!(gathered, ICONS, "each once: {first:?} {second:?}");
    let stored = full.pictures();
    assert_eq!(full.session(), [Shown::default(); 8]);
    assert_eq!(full.pictures(), stored);
    // All of them gather at the same time.
    let full = Full::new(ICONS);
    full.show();
    let counts = full.session();
    assert_eq!(sum(&counts, |it| it.gathered), ICONS, "{counts:?}");
    assert_eq!(full.session(), [Shown::default(); 8]);
}

#[test]
fn a_program_of_more_icons_than_fit_in_place_stops_gathering() {
    // 700 KiB, of which a sixteenth of the file is gathered.
    let full = Full::new(600);
    assert!(full.show().copied > 0);
    let second = full.show();
    assert!(second.gathered > 300 && second.gathered < 500, "{second:?}");
    let stored = full.pictures();
    for _ in 0..2 {
        let next = full.show();
        assert_eq!((next.gathered, next.rendered), (0, 0), "{next:?}");
        assert!(next.copied < second.gathered, "{next:?}");
    }
    assert_eq!(full.pictures(), stored);
}

#[test]
fn damage_is_not_gathered_and_a_newer_picture_is_not_undone() {
    let full = Full::new(ICONS);
    full.show();
    // One byte of a picture, in the file.
    let path = full.theme.folder.path().join("cache");
    let mut bytes = std::fs::read(&path).unwrap();
    let icon = full.theme.apps().join(name(7)).with_extension("svg");
    let pixels = render_file(&icon, (16, 16)).unwrap();
    let damaged = [icon.to_str().unwrap().as_bytes(), pixels.pixels()].concat();
    let places: Vec<usize> =
        (0..bytes.len() - damaged.len()).filter(|at| bytes[*at..].starts_with(&damaged)).collect();
    for at in places {
        bytes[at + damaged.len() - 9] ^= 0x55;
    }
    std::fs::write(&path, bytes).unwrap();
    // And one icon is another one now.
    let changed = full.theme.apps().join(name(8)).with_extension("svg");
    std::fs::write(&changed, svg("#fff")).unwrap();
    age(&changed, 500);
    let healed = Shown { damaged: 1, rendered: 2, gathered: ICONS - 2, ..Shown::default() };
    assert_eq!(full.show(), healed);
    assert_eq!(full.show(), Shown { gathered: 2, ..Shown::default() }, "those that were rendered");
    assert_eq!(full.show(), Shown::default());
}

#[test]
fn who_may_not_write_finds_icons_and_gathers_none() {
    let full = Full::new(ICONS);
    full.show();
    let spread = full.pictures();
    let reader = full.start("ro").show();
    assert_eq!((reader.copied, reader.gathered, reader.rendered), (0, 0, 0), "{reader:?}");
    assert_eq!(full.pictures(), spread);
    assert!(full.cache().get(NOTE).unwrap().is_some());
    // It is in nobody's way.
    assert_eq!(full.show().gathered, ICONS);
}

#[test]
fn icons_that_are_read_in_place_are_left_where_they_are() {
    // As many as may be, and one for the index.
    let full = Full::new(10);
    let spread = full.pictures();
    for _ in 0..3 {
        assert_eq!(full.show(), Shown::default());
    }
    assert_eq!(full.pictures(), spread);
    assert!(full.cache().get(NOTE).unwrap().is_none());
}
