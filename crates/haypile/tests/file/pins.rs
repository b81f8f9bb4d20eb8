//! Values that are read in place stay what they are, whatever else is done concurrently.

#![expect(unsafe_code, reason = "forks as programs in C and Python do")]

use std::path::Path;
use std::sync::Arc;

use haypile::{Durability, Pinned, Registry, SetOptions, Store};

use crate::work::LARGE;
use crate::{child, work};

/// The length of values that take about a segment of a large file each.
const LARGE_VALUE_BYTES: usize = 60_000;

const LONG_BYTES: usize = 70 << 10;

fn open(path: &Path) -> Arc<dyn Store> {
    let url = format!("file://{}?size=4MiB&entry_size=4KiB", path.display());
    Registry::new().open(&url).expect("a store")
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).expect("a write").is_stored());
}

fn is_in_place(pinned: &Pinned<'_>) -> bool {
    format!("{pinned:?}").contains("copied: false")
}

fn pin<'a>(store: &'a dyn Store, key: &[u8]) -> Pinned<'a> {
    let pinned = store.get_pinned(key).expect("a read").expect("it is there");
    assert!(is_in_place(&pinned), "it is not copied: {pinned:?}");
    pinned
}

/// Writes more than the file holds, short and long values.
fn write_over_everything(store: &dyn Store) {
    for number in 0..4_000_u64 {
        set(store, &number.to_le_bytes(), &[1; 1_500]);
        if number % 100 == 0 {
            set(store, b"another long one", &vec![2; LONG_BYTES]);
        }
    }
}

#[test]
fn a_value_that_is_read_in_place_stays_though_all_room_is_wanted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (reader, writer) = (open(&path), open(&path));
    for round in 0..8_u64 {
        let value = work::value(round, LONG_BYTES);
        set(&*writer, b"long", &value);
        let pinned = pin(&*reader, b"long");
        match round % 3 {
            0 => assert!(writer.delete(b"long").expect("a deletion")),
            1 => writer.clear().expect("a clearing"),
            _ => {}
        }
        // The reader's own writes recycle as much as another process' do.
        write_over_everything(if round % 2 == 0 { &*writer } else { &*reader });
        assert!(*pinned == value, "it has changed in round {round}");
    }
    // Nothing is kept for readers that have gone.
    let value = work::value(100, 500 << 10);
    set(&*writer, b"as long as it may be", &value);
    assert_eq!(reader.get(b"as long as it may be").expect("a read"), Some(value));
}

/// The locks of this process on segments of a file, as the kernel lists them.
fn locks(path: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let inode = std::fs::metadata(path).expect("a file").ino();
    let locks = std::fs::read_to_string("/proc/locks").expect("the kernel's list");
    // number: OFDLCK ADVISORY READ pid major:minor:inode first last
    let is_of_segment = |line: &&str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let first = fields.get(6).and_then(|first| first.parse::<u64>().ok());
        fields.get(5).is_some_and(|id| id.ends_with(&format!(":{inode}")))
            && fields.get(3) == Some(&"READ")
            && first.is_some_and(|first| first >= (1 << 62) + (1 << 32))
    };
    locks.lines().filter(is_of_segment).count()
}

#[test]
fn hundreds_of_short_values_are_read_in_place_under_a_few_locks() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (reader, writer) = (open(&path), open(&path));
    let value = |number: u64| work::value(number, 1_000 + 10 * number as usize);
    for number in 0..60_u64 {
        set(&*writer, &number.to_le_bytes(), &value(number));
    }
    let read = |number: u64| {
        reader.get_in_place(&number.to_le_bytes()).expect("a read").expect("it is there")
    };
    let mut pinned: Vec<Pinned<'_>> = (0..60).map(read).collect();
    assert!(pinned.iter().all(is_in_place), "{pinned:?}");
    let held = locks(&path);
    assert!((1..=3).contains(&held), "{held} locks for 80 KB of values");
    // Short values are copied where nobody asked for more: that is faster.
    assert!(!is_in_place(
        &reader.get_pinned(&0_u64.to_le_bytes()).expect("a read").expect("a value")
    ));
    write_over_everything(&*writer);
    for (number, pinned) in pinned.iter().enumerate() {
        assert!(**pinned == value(number as u64), "value {number} has changed");
    }
    // One of them keeps the lock for itself, and the last lets it go.
    let last = pinned.swap_remove(59);
    drop(pinned);
    write_over_everything(&*writer);
    assert!(*last == value(59));
    drop(last);
    assert_eq!(locks(&path), 0);
}

#[test]
fn a_process_pins_an_eighth_of_the_segments_and_copies_other_values() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path);
    for number in 0..1_000_u64 {
        set(&*store, &number.to_le_bytes(), &[number as u8; 3_000]);
    }
    let read = |number: u64| store.get_in_place(&number.to_le_bytes()).expect("a read");
    let all: Vec<Pinned<'_>> = (0..1_000).filter_map(read).collect();
    let in_place = all.iter().filter(|pinned| is_in_place(pinned)).count();
    assert!(in_place > 50 && in_place < all.len(), "{in_place} of {}", all.len());
    assert!(all.iter().all(|value| value.iter().all(|byte| *byte == value[0])));
    // Writers go on.
    write_over_everything(&*store);
    drop(all);
    assert_eq!(locks(&path), 0);
}

/// Fills a large file with values of about a segment each.
fn fill_large(store: &dyn Store, values: u64) {
    for number in 0..values {
        set(store, &number.to_le_bytes(), &work::value(number, LARGE_VALUE_BYTES));
    }
}

/// Writes values of about a segment each; returns the refusals.
fn refusals(store: &dyn Store, writes: u64) -> Vec<String> {
    let write = |number: u64| {
        let value = work::value(number, LARGE_VALUE_BYTES);
        store.set(&(1 << 40 | number).to_le_bytes(), &value, &SetOptions::set()).err()
    };
    (0..writes).filter_map(write).map(|error| error.to_string()).collect()
}

/// Pins as many of a large file's values as the store keeps in place, and up to `most`.
fn pin_up_to(store: &dyn Store, values: u64, most: usize) -> Vec<Pinned<'_>> {
    let read = |number: u64| store.get_in_place(&number.to_le_bytes()).expect("a read");
    (0..values).filter_map(read).filter(is_in_place).take(most).collect()
}

#[test]
#[ignore = "issue 34: a write gives up after 64 segments that it could not empty"]
fn a_tenth_of_930_segments_that_is_pinned_stops_no_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size={LARGE}", path.display());
    let store = Registry::new().open(&url).expect("a store");
    fill_large(&*store, 400);
    let pinned = pin_up_to(&*store, 400, 90);
    assert!(pinned.len() > 64, "{} of 930 segments are pinned", pinned.len());
    let before: Vec<Vec<u8>> = pinned.iter().map(|value| value.to_vec()).collect();
    let refused = refusals(&*store, 2_000);
    assert!(refused.is_empty(), "{} of 2000: {}", refused.len(), refused[0]);
    assert!(pinned.iter().zip(&before).all(|(value, before)| **value == **before));
}

#[test]
#[ignore = "issue 34: nothing bounds the pins of all processes together"]
fn the_pins_of_sixteen_users_of_930_segments_stop_no_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size={LARGE}", path.display());
    let writer = Registry::new().open(&url).expect("a store");
    fill_large(&*writer, 800);
    let readers: Vec<Arc<dyn Store>> =
        (0..16).map(|_| Registry::new().open(&url).expect("a store")).collect();
    let pinned: Vec<Vec<Pinned<'_>>> =
        readers.iter().map(|reader| pin_up_to(&**reader, 800, usize::MAX)).collect();
    let refused = refusals(&*writer, 2_000);
    let pins: usize = pinned.iter().map(Vec::len).sum();
    assert!(refused.is_empty(), "{} of 2000, {pins} pins: {}", refused.len(), refused[0]);
}

#[test]
fn a_value_is_copied_where_a_loss_of_power_leaves_its_segments_in_doubt() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let value = work::value(1, LONG_BYTES);
    let store = open(&path);
    set(&*store, b"long", &value);
    store.flush(Durability::Disk).expect("a flush");
    drop(store);
    // Another inode is, to this program, a file of another boot.
    let copied = directory.path().join("copied");
    std::fs::copy(&path, &copied).expect("copied");
    let store = open(&copied);
    let pinned = store.get_pinned(b"long").expect("a read").expect("it is there");
    assert!(!is_in_place(&pinned) && *pinned == value);
}

/// A process that reads in place and forks; its child lets go of what it has inherited.
#[test]
#[ignore = "another test starts it"]
fn forking() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let store = open(Path::new(&path));
    let value = work::value(1, LONG_BYTES);
    set(&*store, b"long", &value);
    let pinned = pin(&*store, b"long");
    // SAFETY: this process has one thread that does anything: it was started for this.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let was_readable = *pinned == value;
        drop(pinned);
        drop(store);
        // SAFETY: ends the child without the handlers of its parent.
        unsafe { libc::_exit(i32::from(!was_readable)) }
    }
    let mut status = 0;
    // SAFETY: the child is this process', and the status is a valid place.
    assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
    assert_eq!(status, 0, "the child reads what its parent pins");
    write_over_everything(&*store);
    assert!(*pinned == value, "the child has let go of it");
    println!("\nunchanged");
}

#[test]
fn a_forked_child_does_not_let_go_of_what_its_parent_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let variables = [("HAYPILE_TEST_PATH", path.display().to_string())];
    let mut child = child::start("pins::forking", &variables);
    let lines = child::lines(&mut child, "");
    assert!(child.wait().expect("its end").success(), "{lines:?}");
    assert!(lines.iter().any(|line| line == "unchanged"), "{lines:?}");
}
