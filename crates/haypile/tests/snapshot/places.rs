//! Names under which there is something else, and files that are left behind.

use std::fs::{self, File};
use std::path::Path;

use haypile::memory::snapshot::{SnapshotError, SnapshotWriter, WriteOptions};

use crate::support::{Entry, options, read, write};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_missing_file_is_simply_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(&folder.path().join("none"), u64::MAX).unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let nested = folder.path().join("no/such/folder");
    let error = write(&nested, options(), &[]).unwrap_err();
    assert!(error.to_string().contains("does the folder exist"), "{error}");
}

#[test]
fn a_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for error in [
        read(folder.path(), u64::MAX).unwrap_err(),
        write(folder.path(), options(), &[]).unwrap_err(),
    ] {
        assert!(matches!(error, SnapshotError::NotAFile { what: "a folder", .. }), "{error}");
    }
}

#[test]
fn a_file_of_another_program_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thesis.txt");
    fs::write(&path, "Chapter 1").unwrap();
    for error in [read(&path, 1).unwrap_err(), write(&path, options(), &[]).unwrap_err()] {
        assert!(matches!(error, SnapshotError::NotASnapshot { .. }), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"Chapter 1");
    assert_eq!(names(folder.path()), ["thesis.txt"]);
}

#[test]
fn an_empty_file_and_a_damaged_snapshot_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    for old in [&b""[..], b"\x89H", b"\x89HPS\r\n\x1a\nrubbish"] {
        fs::write(&path, old).unwrap();
        assert!(read(&path, u64::MAX).is_err());
        write(&path, options(), &[Entry::new("key", "value")]).unwrap();
        assert_eq!(read(&path, u64::MAX).unwrap(), [Entry::new("key", "value")]);
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    write(&path, options(), &[Entry::new("old", "1")]).unwrap();
    let mut writer = SnapshotWriter::create(&path, options()).unwrap();
    writer.push(Entry::new("new", vec![0; 3 << 20]).lent()).unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    drop(writer);
    assert_eq!(names(folder.path()), ["snapshot"]);
    assert_eq!(read(&path, u64::MAX).unwrap(), [Entry::new("old", "1")]);
}

#[test]
fn leftovers_of_dead_writers_go_and_those_of_living_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let left = folder.path().join(".haypile-snapshot-AbCdEf.tmp");
    let other = folder.path().join(".haypile-snapshot-notes.txt");
    for path in [&left, &other] {
        File::create_new(path).unwrap();
    }
    let mut alive = SnapshotWriter::create(&folder.path().join("another"), options()).unwrap();
    alive.push(Entry::new("alive", "1").lent()).unwrap();
    assert!(!left.exists());
    write(&path, options(), &[]).unwrap();
    assert!(other.exists());
    alive.finish().unwrap();
    assert_eq!(names(folder.path()), [".haypile-snapshot-notes.txt", "another", "snapshot"]);
}

#[test]
fn two_writers_of_one_snapshot_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let mut writers = ["one", "two"].map(|_| SnapshotWriter::create(&path, options()).unwrap());
    for (writer, key) in writers.iter_mut().zip(["one", "two"]) {
        writer.push(Entry::new(key, vec![0; 2 << 20]).lent()).unwrap();
    }
    for (writer, key) in writers.into_iter().zip(["one", "two"]) {
        writer.finish().unwrap();
        assert_eq!(read(&path, u64::MAX).unwrap()[0].key, key.as_bytes());
    }
    assert_eq!(names(folder.path()), ["snapshot"]);
}

/// A name without a folder is in the current one.
#[test]
fn a_bare_name_is_looked_for_in_the_current_folder() {
    let error = read(Path::new("no-such-snapshot-here"), 1).unwrap_err();
    assert!(error.is_not_found());
    let options = WriteOptions { max_bytes: Some(1), ..options() };
    assert!(SnapshotWriter::create(Path::new("no-such-snapshot-here"), options).is_err());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_fifo_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for error in [read(&path, 1).unwrap_err(), write(&path, options(), &[]).unwrap_err()] {
            assert!(matches!(error, SnapshotError::NotAFile { what: "a FIFO", .. }), "{error}");
        }
    }

    #[test]
    fn a_device_is_refused() {
        for name in ["/dev/null", "/dev/zero"] {
            let error = read(Path::new(name), 1).unwrap_err();
            assert!(matches!(error, SnapshotError::NotAFile { what: "a device", .. }), "{error}");
        }
    }

    #[test]
    fn a_loop_of_links_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        symlink(&one, &two).unwrap();
        symlink(&two, &one).unwrap();
        for error in [read(&one, 1).unwrap_err(), write(&one, options(), &[]).unwrap_err()] {
            assert!(error.to_string().contains("one"), "{error}");
        }
        assert_eq!(names(folder.path()), ["one", "two"]);
    }

    #[test]
    fn a_link_is_followed_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), elsewhere.path().join("file"));
        File::create_new(&file).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, options(), &[Entry::new("key", "value")]).unwrap();
        assert!(link.is_symlink() && !file.is_symlink());
        assert_eq!(read(&file, u64::MAX).unwrap(), [Entry::new("key", "value")]);
    }

    #[test]
    fn a_snapshot_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        write(&path, options(), &[]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
