//! The users and programs that can have written the values of a store, through all wrappers.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use haypile::{Cache, Writers};

fn open(url: &str) -> Cache {
    Cache::open(url).expect("a cache")
}

fn writers(url: &str) -> Vec<Writers> {
    open(url).store().writers()
}

/// Returns the path and the mode of a file of this user.
fn of_file(writers: &Writers) -> Option<(PathBuf, u32)> {
    let user = rustix::process::geteuid().as_raw();
    match writers {
        Writers::File { path, owner, mode } if *owner == user => Some((path.clone(), *mode)),
        _ => None,
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a file of this user");
}

#[test]
fn nobody_else_writes_what_a_process_keeps_for_itself() {
    assert_eq!(writers("memory:"), []);
    assert_eq!(writers("none:"), []);
    assert_eq!(writers("memory:,compress=lz4"), []);
}

#[test]
fn a_file_has_those_who_may_write_it_now() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size=1MiB&allow_shared=yes", path.display());
    let cache = open(&url);
    for mode in [0o600, 0o666] {
        set_mode(&path, mode);
        let writers = cache.store().writers();
        assert_eq!(writers.iter().map(of_file).collect::<Vec<_>>(), [Some((path.clone(), mode))]);
    }
    // The file that is open, not the one that has its path now.
    fs::rename(&path, directory.path().join("moved")).expect("renamed");
    fs::write(&path, "").expect("written");
    assert_eq!(fs::metadata(&path).expect("it").mode() & 0o022, 0);
    let mode = cache.store().writers().first().and_then(of_file).map(|(_, mode)| mode);
    assert_eq!(mode, Some(0o666));
}

#[test]
fn a_copy_follows_its_path_and_so_anyone_writes_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    drop(open(&format!("file://{}?size=1MiB", path.display())));
    let copy = writers(&format!("file://{}?mode=copy", path.display()));
    assert!(matches!(copy.as_slice(), [Writers::Anyone { .. }]), "{copy:?}");
}

#[test]
fn wrappers_have_those_of_what_they_wrap() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let file = format!("file://{}?size=1MiB", path.display());
    let recording = directory.path().join("recording").display().to_string();
    for url in [
        format!("{file}&compress=lz4"),
        format!("{file}&compress=lz4&record={recording}"),
        format!("memory: -> {file}&compress=lz4"),
    ] {
        let _ = fs::remove_file(&path);
        let writers = writers(&url);
        assert_eq!(writers.iter().filter_map(of_file).count(), 1, "{url} {writers:?}");
        assert_eq!(writers.len(), 1, "{url} {writers:?}");
    }
}

#[test]
fn a_snapshot_has_those_who_could_write_it_if_it_was_loaded_and_may_be_shared() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("snapshot");
    let url = format!("memory:size=1MiB,persist={},allow_shared=yes", path.display());
    let cache = open(&url);
    assert_eq!(cache.store().writers(), [], "there was no file");
    cache.set("key", "value").expect("room");
    cache.close().expect("saved");
    assert_eq!(cache.store().writers(), []);
    set_mode(&path, 0o666);
    for options in ["", ",persist_load=background"] {
        let writers = writers(&format!("{url}{options}"));
        assert_eq!(writers.iter().map(of_file).collect::<Vec<_>>(), [Some((path.clone(), 0o666))]);
        set_mode(&path, 0o666);
    }
    fs::write(&path, "no snapshot").expect("written");
    assert_eq!(writers(&url), [], "none of it was loaded");
}
