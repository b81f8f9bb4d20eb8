//! Checks that processes share, on a clock that stands still and with views that a test chooses. Each `IconCache` here
//! has a store of its own, as a process has.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;

const EPOCH_NS: u64 = 900_000_000;
/// The view of most processes.
const HERE: u128 = 7;
const RED: [u8; 4] = [255, 0, 0, 255];
const BLUE: [u8; 4] = [0, 0, 255, 255];

/// A theme, a cache, and the machine's clock.
struct Machine {
    folder: TempDir,
    clock: Arc<AtomicU64>,
}

#[derive(Debug)]
struct FakeViewer {
    clock: Arc<AtomicU64>,
    view: Option<u128>,
}

impl Viewer for FakeViewer {
    fn now_ns(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    fn view(&self) -> Option<u128> {
        self.view
    }
}

fn svg(colour: &str) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='16' height='16'>\
         <rect width='16' height='16' fill='{colour}'/></svg>"
    )
}

fn age(path: &Path, seconds: u64) {
    let then = SystemTime::now() - Duration::from_secs(seconds);
    File::open(path).unwrap().set_modified(then).unwrap();
}

impl Machine {
    /// A theme of these icons, all red.
    fn new(icons: &[&str]) -> Self {
        let machine = Self {
            folder: TempDir::new().unwrap(),
            clock: Arc::new(AtomicU64::new(1_000_000_000_000)),
        };
        let text = "[Icon Theme]\nDirectories=16\n[16]\nSize=16\nType=Fixed\n";
        fs::create_dir_all(machine.icon("x").parent().unwrap()).unwrap();
        fs::write(machine.base().join("mine/index.theme"), text).unwrap();
        for name in icons {
            fs::write(machine.icon(name), svg("#f00")).unwrap();
            age(&machine.icon(name), 2000);
        }
        for path in ["", "mine", "mine/16", "mine/index.theme"] {
            age(&machine.base().join(path), 1000);
        }
        machine
    }

    fn base(&self) -> PathBuf {
        self.folder.path().join("icons")
    }

    fn icon(&self, name: &str) -> PathBuf {
        self.base().join("mine/16").join(name).with_extension("svg")
    }

    /// Changes a picture in place, which its folder does not tell.
    fn change(&self, name: &str, colour: &str, seconds: u64) {
        fs::write(self.icon(name), svg(colour)).unwrap();
        age(&self.icon(name), seconds);
    }

    fn pass(&self, ns: u64) {
        self.clock.fetch_add(ns, Ordering::SeqCst);
    }

    fn cache(&self) -> Cache {
        let path = self.folder.path().join("cache");
        Cache::open(&format!("file:{},size=4MiB", path.display())).unwrap()
    }

    /// A process with a view, and other options than usual.
    fn start_as(
        &self,
        view: Option<u128>,
        change: impl FnOnce(&mut IconCacheOptions),
    ) -> IconCache {
        let mut options = IconCacheOptions {
            base: vec![self.base()],
            racy_margin: Some(Duration::ZERO),
            ..IconCacheOptions::default()
        };
        change(&mut options);
        let viewer = FakeViewer { clock: Arc::clone(&self.clock), view };
        IconCache::seen_by("mine", Some(self.cache()), options, Box::new(viewer))
    }

    /// A process as programs are.
    fn start(&self) -> IconCache {
        self.start_as(Some(HERE), |_| {})
    }
}

fn colour(icons: &IconCache, name: &str) -> Option<[u8; 4]> {
    let icon = icons.lookup(&IconRequest::new(name, 16)).unwrap()?;
    Some(icon.pixels()[..4].try_into().unwrap())
}

#[test]
fn a_process_takes_over_the_check_of_another_and_asks_for_nothing() {
    let machine = Machine::new(&["a", "b"]);
    let first = machine.start();
    assert_eq!((colour(&first, "a"), colour(&first, "b")), (Some(RED), Some(RED)));
    assert!(first.counts().stats > 4 && first.counts().shared_checks == 0);
    drop(first);
    machine.pass(EPOCH_NS - 1);
    let second = machine.start();
    assert_eq!((colour(&second, "a"), colour(&second, "b")), (Some(RED), Some(RED)));
    assert_eq!(colour(&second, "none"), None);
    let counts = second.counts();
    assert_eq!((counts.stats, counts.shared_checks, counts.rendered), (0, 1, 0), "{counts:?}");
    // Its epoch began with the check of the other one, and not when it was opened.
    machine.pass(1);
    assert_eq!(colour(&second, "a"), Some(RED));
    let later = second.counts();
    assert_eq!((later.stats, later.shared_checks), (second.index().watched() as u64 + 1, 1));
}

#[test]
fn what_changes_is_seen_within_an_epoch_whoever_has_checked() {
    let machine = Machine::new(&["a", "b"]);
    let first = machine.start();
    assert_eq!((colour(&first, "a"), colour(&first, "b")), (Some(RED), Some(RED)));
    drop(first);
    machine.change("a", "#00f", 500);
    fs::remove_file(machine.icon("b")).unwrap();
    fs::write(machine.icon("c"), svg("#00f")).unwrap();
    age(&machine.icon("c"), 500);
    // A chain of processes, each of which begins while the check of the one before it is young.
    let (mut began_ns, mut chain) = (0, Vec::new());
    while began_ns < EPOCH_NS {
        let next = machine.start();
        assert_eq!((colour(&next, "a"), colour(&next, "b")), (Some(RED), Some(RED)), "{began_ns}");
        assert_eq!(colour(&next, "c"), None, "{began_ns}");
        chain.push(next);
        machine.pass(EPOCH_NS / 3);
        began_ns += EPOCH_NS / 3;
    }
    for icons in chain.iter().chain([&machine.start()]) {
        assert_eq!((colour(icons, "a"), colour(icons, "b")), (Some(BLUE), None));
        assert_eq!(colour(icons, "c"), Some(BLUE));
    }
}

#[test]
fn a_change_that_a_process_has_seen_is_seen_by_those_that_take_over_its_check() {
    let machine = Machine::new(&["a"]);
    assert_eq!(colour(&machine.start(), "a"), Some(RED));
    machine.change("a", "#00f", 500);
    fs::write(machine.icon("b"), svg("#00f")).unwrap();
    age(&machine.icon("b"), 500);
    let alone = machine.start_as(Some(HERE), |options| options.shares_checks = false);
    assert_eq!((colour(&alone, "a"), colour(&alone, "b")), (Some(BLUE), Some(BLUE)));
    drop(alone);
    let next = machine.start();
    assert_eq!((colour(&next, "a"), colour(&next, "b")), (Some(BLUE), Some(BLUE)));
    assert_eq!((next.counts().shared_checks, next.counts().stats), (1, 0));
}

#[test]
fn a_check_is_not_one_of_another_view_clock_or_theme() {
    let cases: [(&str, u64, Option<u128>); 4] = [
        ("another boot, root or namespace is another view", 0, Some(HERE + 1)),
        ("the system does not tell the view", 0, None),
        ("the clock is behind the check", 0_u64.wrapping_sub(1), Some(HERE)),
        ("the epoch of the check is over", EPOCH_NS, Some(HERE)),
    ];
    for (what, passes_ns, view) in cases {
        let machine = Machine::new(&["a"]);
        assert_eq!(colour(&machine.start(), "a"), Some(RED), "{what}");
        machine.change("a", "#00f", 500);
        machine.pass(passes_ns);
        let other = machine.start_as(view, |_| {});
        assert_eq!(colour(&other, "a"), Some(BLUE), "{what}");
        assert_eq!(other.counts().shared_checks, 0, "{what}");
    }
    let machine = Machine::new(&["a"]);
    assert_eq!(colour(&machine.start(), "a"), Some(RED));
    let twice = machine.start_as(Some(HERE), |options| options.base.push("/no/other".into()));
    assert_eq!((colour(&twice, "a"), twice.counts().shared_checks), (Some(RED), 0));
}

#[test]
fn folders_that_depend_on_the_process_are_checked_by_each() {
    let machine = Machine::new(&["a"]);
    let relative = |options: &mut IconCacheOptions| options.base = vec!["./no/such".into()];
    for _ in 0..2 {
        let icons = machine.start_as(Some(HERE), relative);
        assert_eq!((colour(&icons, "a"), icons.counts().shared_checks), (None, 0));
    }
}

#[test]
fn a_damaged_check_is_none_and_is_stored_again() {
    let machine = Machine::new(&["a"]);
    assert_eq!(colour(&machine.start(), "a"), Some(RED));
    let key = Trust::key(HERE, scan_hash("mine", &[machine.base()]));
    let whole = machine.cache().get(&key).unwrap().unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        machine.cache().set(&key, damaged).unwrap();
        let icons = machine.start();
        assert_eq!(colour(&icons, "a"), Some(RED));
        let counts = icons.counts();
        assert_eq!((counts.shared_checks, counts.damaged), (0, 1), "byte {at}");
        drop(icons);
        let next = machine.start();
        assert_eq!((colour(&next, "a"), next.counts().shared_checks), (Some(RED), 1), "byte {at}");
    }
}

#[test]
fn a_check_of_another_index_than_the_stored_one_is_none() {
    let machine = Machine::new(&["a"]);
    assert_eq!(colour(&machine.start(), "a"), Some(RED));
    let key = Trust::key(HERE, scan_hash("mine", &[machine.base()]));
    let now_ns = machine.clock.load(Ordering::SeqCst);
    machine.cache().set(&key, Trust::new(now_ns, 1).encode(&key)).unwrap();
    fs::write(machine.icon("b"), svg("#00f")).unwrap();
    let icons = machine.start();
    assert_eq!((colour(&icons, "b"), icons.counts().shared_checks), (Some(BLUE), 0));
    drop(icons);
    // The index is gone, and only its check is left.
    machine.cache().delete(index_key(scan_hash("mine", &[machine.base()]))).unwrap();
    fs::write(machine.icon("c"), svg("#00f")).unwrap();
    let icons = machine.start();
    let found = (colour(&icons, "c"), icons.counts().shared_checks, icons.counts().scans);
    assert_eq!(found, (Some(BLUE), 0, 1));
}

#[test]
fn pictures_that_others_have_not_asked_for_are_asked_for_and_shared_in_turn() {
    let machine = Machine::new(&["a", "b", "c"]);
    let all = machine.start();
    assert!(["a", "b", "c"].iter().all(|name| colour(&all, name) == Some(RED)));
    drop(all);
    machine.pass(EPOCH_NS);
    assert_eq!(colour(&machine.start(), "a"), Some(RED));
    machine.change("b", "#00f", 500);
    let second = machine.start();
    assert_eq!((colour(&second, "a"), colour(&second, "b")), (Some(RED), Some(BLUE)));
    assert_eq!(colour(&second, "c"), Some(RED));
    let counts = second.counts();
    // One call for each of b and c, and two for rendering b.
    assert_eq!((counts.shared_checks, counts.stats, counts.rendered), (1, 4, 1));
    drop(second);
    let third = machine.start();
    assert!(["a", "c"].iter().all(|name| colour(&third, name) == Some(RED)));
    assert_eq!((colour(&third, "b"), third.counts().stats), (Some(BLUE), 0));
}

#[test]
fn checks_of_pictures_are_shared_before_a_process_ends_and_not_for_as_long_as_it_runs() {
    let names: Vec<String> = (0..100).map(|number| format!("icon{number}")).collect();
    let refs: Vec<&str> = names.iter().map(String::as_str).collect();
    let machine = Machine::new(&refs);
    let stays = machine.start();
    let key = Trust::key(HERE, scan_hash("mine", &[machine.base()]));
    let shared = || Trust::decode(&machine.cache().get(&key).unwrap().unwrap(), &key).unwrap();
    let look = || refs.iter().for_each(|name| assert_eq!(colour(&stays, name), Some(RED)));
    look();
    assert!(shared().pictures() > 60, "{}", shared().pictures());
    machine.pass(EPOCH_NS);
    look();
    assert_eq!(shared(), Trust::new(machine.clock.load(Ordering::SeqCst), stays.index().id()));
}

#[test]
fn two_processes_at_the_same_time_share_what_either_has_checked() {
    let machine = Machine::new(&["a", "b"]);
    let (one, two) = (machine.start(), machine.start());
    assert_eq!((colour(&one, "a"), colour(&two, "b")), (Some(RED), Some(RED)));
    drop(one);
    drop(two);
    let third = machine.start();
    assert_eq!((colour(&third, "a"), colour(&third, "b")), (Some(RED), Some(RED)));
    assert_eq!(third.counts().stats, 0);
    // One that began its check later has another one.
    machine.pass(EPOCH_NS);
    let early = machine.start();
    assert_eq!(colour(&early, "a"), Some(RED));
    machine.pass(10);
    let late = machine.start_as(Some(HERE), |options| options.shares_checks = false);
    assert_eq!(colour(&late, "b"), Some(RED));
    machine.change("a", "#00f", 500);
    drop(early);
    machine.pass(EPOCH_NS - 5);
    let next = machine.start();
    assert_eq!((colour(&next, "a"), colour(&next, "b")), (Some(BLUE), Some(RED)));
    assert_eq!(next.counts().shared_checks, 1);
}
