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
