//! Paths that are not regular files, and leftover files.

use std::fs::{self, File};
use std::path::Path;

use haypile::memory::snapshot::{SnapshotError, SnapshotWriter, WriteOptions};

use crate::support::{Entry, limited, options, read, write, write_private};

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
    assert!(error.to_string().contains("check that the folder exists"), "{error}");
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
    write_private(&path, b"Chapter 1");
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
        write_private(&path, old);
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
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use haypile::memory::snapshot::{ReadOptions, SnapshotReader};
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
        write_private(&file, b"");
        symlink(&file, &link).unwrap();
        write(&link, options(), &[Entry::new("key", "value")]).unwrap();
        assert!(link.is_symlink() && !file.is_symlink());
        assert_eq!(read(&file, u64::MAX).unwrap(), [Entry::new("key", "value")]);
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Checks that neither a reader nor a writer accepts this path, and that both report the error
    /// `expected`.
    #[track_caller]
    fn is_refused(path: &Path, expected: impl Fn(&SnapshotError) -> bool) {
        let before = fs::read(path).unwrap();
        for error in [read(path, u64::MAX).unwrap_err(), write(path, options(), &[]).unwrap_err()] {
            assert!(expected(&error), "{error}");
            let text = error.to_string();
            assert!(text.contains("allow_shared=yes"), "{text}");
        }
        assert_eq!(fs::read(path).unwrap(), before);
        let names = names(path.parent().unwrap());
        assert_eq!(names.len(), 1, "a new file was left: {names:?}");
    }

    #[test]
    fn a_file_that_others_can_write_is_neither_read_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        write(&path, options(), &[Entry::new("key", "value")]).unwrap();
        for mode in [0o620, 0o602, 0o666] {
            set_mode(&path, mode);
            is_refused(&path, |error| {
                let text = error.to_string();
                assert!(text.contains(path.to_str().unwrap()), "{text}");
                assert!(text.contains(&format!("mode {mode:o}")), "{text}");
                matches!(error, SnapshotError::WritableByOthers { mode: found, .. } if *found == mode)
            });
        }
        // An empty file would be replaced.
        fs::write(&path, "").unwrap();
        is_refused(&path, |error| matches!(error, SnapshotError::WritableByOthers { .. }));
        set_mode(&path, 0o644);
        write(&path, options(), &[]).unwrap();
        set_mode(&path, 0o644);
        assert!(read(&path, u64::MAX).unwrap().is_empty());
    }

    #[test]
    fn a_file_of_another_user_is_neither_read_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        write(&path, options(), &[Entry::new("key", "value")]).unwrap();
        let owner = 65_533;
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root can make a file of another user");
            return;
        }
        chown(&path, Some(owner), None).unwrap();
        is_refused(&path, |error| {
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(text.contains(&format!("uid {owner}")), "{text}");
            matches!(error, SnapshotError::OtherOwner { uid, .. } if *uid == owner)
        });
    }

    /// A link has the mode 777, and its owner has no say about the file that it leads to.
    #[test]
    fn what_a_link_leads_to_is_judged_and_not_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), elsewhere.path().join("file"));
        write(&file, options(), &[Entry::new("key", "value")]).unwrap();
        symlink(&file, &link).unwrap();
        set_mode(&file, 0o602);
        is_refused(&link, |error| matches!(error, SnapshotError::WritableByOthers { .. }));
        set_mode(&file, 0o600);
        if rustix::process::geteuid().is_root() {
            chown(&file, Some(65_533), None).unwrap();
            is_refused(&link, |error| matches!(error, SnapshotError::OtherOwner { .. }));
            chown(&file, Some(0), None).unwrap();
            std::os::unix::fs::lchown(&link, Some(65_533), None).unwrap();
        } else {
            println!("skipped in part: only root can make a file of another user");
        }
        assert_eq!(read(&link, u64::MAX).unwrap(), [Entry::new("key", "value")]);
        write(&link, options(), &[]).unwrap();
        assert!(link.is_symlink() && read(&file, u64::MAX).unwrap().is_empty());
    }

    #[test]
    fn whoever_allows_a_shared_file_has_it_read_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        write(&path, options(), &[Entry::new("key", "value")]).unwrap();
        set_mode(&path, 0o666);
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(65_533), None).unwrap();
        }
        let allowed = ReadOptions { allow_shared: true, ..limited(u64::MAX) };
        let mut reader = SnapshotReader::open(&path, allowed).unwrap();
        assert_eq!(reader.next_entry().unwrap().unwrap().key, b"key");
        write(&path, WriteOptions { allow_shared: true, ..options() }, &[]).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert_eq!((metadata.mode() & 0o777, metadata.uid()), (0o600, user));
        assert!(read(&path, u64::MAX).unwrap().is_empty());
    }

    #[test]
    fn a_snapshot_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        write(&path, options(), &[]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
