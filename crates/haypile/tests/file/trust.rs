//! Which files are used: whom they belong to, how they were compressed, what they lie on.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haypile::file::hooks;
use haypile::{Durability, OpenError, Registry, SetOptions, Store};
use tempfile::TempDir;

use crate::child;

const STRANGER: u32 = 54_321;

fn open(path: &Path, options: &str) -> Result<Arc<dyn Store>, OpenError> {
    Registry::new().open(&format!("file://{}?{options}", path.display()))
}

fn refused(path: &Path, options: &str) -> String {
    open(path, options).expect_err("refused").to_string()
}

/// A file with an entry, that no process has open.
fn closed_file(options: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path, &format!("size=1MiB{options}")).expect("a store");
    assert!(store.set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
    (directory, path)
}

/// Whether this process may give files away; a line says so if not.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: only root can make a file of another user");
    }
    is_root
}

#[test]
fn a_file_of_another_user_is_refused_and_can_be_looked_into() {
    let (_directory, path) = closed_file("");
    if !is_root() {
        return;
    }
    chown(&path, Some(STRANGER), None).expect("given away");
    for options in ["", "mode=ro", "recreate=yes"] {
        let error = refused(&path, options);
        assert!(error.contains("uid 54321") && error.contains("allow_shared=yes"), "{error}");
    }
    assert!(haypile::file::FileStat::is_exposed(&path));
    let stat = haypile::file::FileStat::of(&path).expect("it can be read");
    assert_eq!((stat.entries, stat.exposed_to), (1, Some(STRANGER)));
    let check = haypile::file::FileCheck::of(&path, |_| {}).expect("it can be read");
    assert_eq!((check.entries, check.damaged, check.exposed_to), (1, 0, Some(STRANGER)));
    let copy = open(&path, "mode=copy").expect("it can be read");
    assert_eq!(copy.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    assert!(copy.set(b"key", b"other", &SetOptions::set()).is_err());
    for options in ["allow_shared=yes", "allow_shared=yes&mode=ro"] {
        let store = open(&path, options).expect("allowed");
        assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    }
}

#[test]
fn a_copy_of_a_file_that_shrinks_and_is_garbled_reads_as_misses() {
    let (_directory, path) = closed_file("");
    let store = open(&path, "").expect("a store");
    for key in 0..200_u32 {
        let value = vec![7; 2_000];
        assert!(store.set(&key.to_le_bytes(), &value, &SetOptions::set()).expect("it").is_stored());
    }
    drop(store);
    let copy = open(&path, "mode=copy").expect("it can be read");
    assert_eq!(copy.len().expect("a count"), 201);
    assert!(copy.get(&0_u32.to_le_bytes()).expect("a read").is_some());
    // A mapped file would be a SIGBUS now.
    let file = fs::OpenOptions::new().write(true).open(&path).expect("a file");
    file.set_len(300_000).expect("cut");
    let found = (0..200_u32).filter(|key| {
        let value = copy.get(&key.to_le_bytes()).expect("a read");
        assert!(value.is_none() || value == Some(vec![7; 2_000]));
        value.is_some()
    });
    assert!(found.count() < 200);
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let (_directory, path) = closed_file("");
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
        for options in ["", "mode=ro"] {
            let error = refused(&path, options);
            assert!(error.contains(&format!("mode {mode:o}")), "{error}");
        }
        assert!(open(&path, "allow_shared=yes").is_ok());
    }
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("changed");
    assert!(open(&path, "").is_ok() && open(&path, "mode=ro").is_ok());
}

#[test]
fn a_file_keeps_the_compression_that_it_was_made_with() {
    let (_directory, zstd) = closed_file("&compress=zstd:19");
    let value = vec![b'a'; 100_000];
    let store = open(&zstd, "compress=zstd:1&compress_min=64").expect("levels may differ");
    assert!(store.set(b"long", &value, &SetOptions::set()).expect("a write").is_stored());
    assert!(store.bytes().expect("a count") < 10_000);
    // Whoever names none reads what the others wrote.
    for options in ["", "mode=ro", "mode=copy"] {
        let store = open(&zstd, options).expect("it follows the file");
        assert_eq!(store.get(b"long").expect("a read").as_ref(), Some(&value), "{options}");
        let is_named = store.describe().contains("compress=zstd");
        assert!(is_named, "{}", store.describe());
    }
    let error = refused(&zstd, "compress=lz4");
    assert!(error.contains("made with compress=zstd and is opened with compress=lz4"), "{error}");
    let (_directory, plain) = closed_file("");
    let error = refused(&plain, "compress=zstd");
    assert!(error.contains("made with no compression"), "{error}");
    let recreated = open(&plain, "compress=zstd&recreate=yes").expect("another file");
    assert_eq!(recreated.len().expect("a count"), 0);
    assert_eq!(
        haypile::file::FileStat::of(&plain).expect("a file").compression.map(|it| it.to_string()),
        Some("zstd:3".to_owned())
    );
}

#[test]
fn a_store_does_not_follow_a_file_of_another_compression() {
    let (_directory, path) = closed_file("");
    let store = open(&path, "").expect("a store");
    drop(open(&path, "recreate=yes&compress=lz4").expect("another file"));
    let error = store.get(b"key").expect_err("it cannot be read").to_string();
    assert!(error.contains("made with compress=lz4"), "{error}");
}

#[test]
#[ignore = "another test starts it"]
fn masked() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o777));
    let store = open(Path::new(&path), "size=1MiB").expect("a store");
    assert!(store.set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
}

#[test]
fn a_new_file_is_private_whatever_the_process_masks_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    // What a process masks out holds for all of its threads.
    let variables = [("HAYPILE_TEST_PATH", path.display().to_string())];
    assert!(child::start("trust::masked", &variables).wait().expect("its end").success());
    assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o7777, 0o600);
}

#[test]
fn a_copy_with_holes_is_filled_before_it_is_written() {
    let (directory, path) = closed_file("");
    let copy = directory.path().join("copy");
    let bytes = fs::read(&path).expect("its bytes");
    let file = fs::File::create(&copy).expect("a file");
    file.set_len(bytes.len() as u64).expect("a hole");
    for (number, page) in (0_u64..).zip(bytes.chunks(4096)) {
        if page.iter().any(|byte| *byte != 0) {
            use std::os::unix::fs::FileExt;
            file.write_all_at(page, number * 4096).expect("written");
        }
    }
    drop(file);
    fs::set_permissions(&copy, Permissions::from_mode(0o600)).expect("changed");
    let allocated = || fs::metadata(&copy).expect("a file").blocks() * 512;
    assert!(allocated() < bytes.len() as u64, "the file system has holes");
    let store = open(&copy, "").expect("a store");
    assert!(allocated() >= bytes.len() as u64);
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_killed_creator_leaves_nothing_for_long() {
    let directory = tempfile::tempdir().expect("a directory");
    let left = directory.path().join(".haypile-leftover.new");
    fs::write(&left, vec![1; 4096]).expect("written");
    let store = open(&directory.path().join("cache"), "size=1MiB").expect("a store");
    assert!(!left.exists(), "nobody has locked it");
    drop(store);
    let names: Vec<_> = fs::read_dir(directory.path()).expect("names").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_file_that_was_removed_is_made_again_and_is_durable_then() {
    let (_directory, path) = closed_file("");
    let store = open(&path, "").expect("a store");
    fs::remove_file(&path).expect("removed");
    store.flush(Durability::Disk).expect("the file that has the path");
    assert!(path.exists(), "what is flushed has a name");
    assert_eq!(store.get(b"key").expect("a read"), None, "it is another file");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("a directory in its place");
    let error = store.flush(Durability::Disk).expect_err("no name").to_string();
    assert!(error.contains("was removed"), "{error}");
}

#[test]
fn what_is_flushed_to_disk_is_brought_there_with_its_name() {
    let _ = hooks::take_syncs();
    let (_directory, path) = closed_file("");
    assert_eq!(hooks::take_syncs(), ["name"], "a file that was made has a name to stay");
    // Another process may have made it, and died before it could bring the name to disk.
    let store = open(&path, "").expect("a store");
    store.flush(Durability::Visible).expect("visible");
    assert_eq!(hooks::take_syncs(), [""; 0]);
    store.flush(Durability::Disk).expect("a flush");
    assert_eq!(hooks::take_syncs(), ["data", "name"]);
    store.flush(Durability::Disk).expect("a flush");
    assert_eq!(hooks::take_syncs(), ["data"]);
}
