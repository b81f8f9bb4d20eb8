//! Values that are read in place stay what they are, whatever else is done concurrently.

#![expect(unsafe_code, reason = "forks as programs in C and Python do")]

use std::path::Path;
use std::sync::Arc;

use haypile::{Durability, Pinned, Registry, SetOptions, Store};

use crate::{child, work};

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
