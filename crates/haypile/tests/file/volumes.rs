//! File systems of several kinds, on images and on top of each other, that are full or refuse
//! something. `scripts/test-full` runs these tests: they mount, which only root can.

#![expect(unsafe_code, reason = "mounts for one thread alone")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haypile::{ManualClock, OpenError, Registry, SetOptions, Store};
use tempfile::TempDir;

use crate::{child, work};

/// Longer than any machine needs. A writer on a full btrfs was once seen to wait for ten minutes.
const LONG: Duration = Duration::from_mins(2);
const SECOND: Duration = Duration::from_secs(1);

const KINDS: [(&str, &[&str]); 3] = [("ext4", &["-q", "-F"]), ("xfs", &["-q"]), ("btrfs", &["-q"])];

/// A mounted file system, that only this thread and its children see.
struct Volume {
    at: PathBuf,
    _directory: TempDir,
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}

/// Whether this thread has mounts of its own from now on; a line says if not. They end with it, however
/// it ends.
fn has_own_mounts() -> bool {
    // SAFETY: it has no preconditions.
    let is_apart = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
    let is_private = is_apart && succeeds(Command::new("mount").args(["--make-rprivate", "/"]));
    if !is_private {
        println!("skipped: only root can mount");
    }
    is_private
}

fn succeeds(command: &mut Command) -> bool {
    let output = command.stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

/// Mounts a new file system of a kind. `None`, with a line that says so: this machine does not have
/// it.
fn volume(kind: &str, options: &[&str]) -> Option<Volume> {
    let directory = tempfile::tempdir().expect("a directory");
    let (image, at) = (directory.path().join("image"), directory.path().join("at"));
    File::create(&image).and_then(|image| image.set_len(400 << 20)).expect("an image");
    fs::create_dir(&at).expect("a directory");
    let is_made = succeeds(Command::new(format!("mkfs.{kind}")).args(options).arg(&image));
    let mount = ["-o", "loop", "-t", kind];
    if is_made && succeeds(Command::new("mount").args(mount).arg(&image).arg(&at)) {
        return Some(Volume { at, _directory: directory });
    }
    println!("skipped: there is no mkfs.{kind} here, or the kernel does not know {kind}");
    None
}

fn volumes() -> impl Iterator<Item = (&'static str, Volume)> {
    let kinds = if has_own_mounts() { &KINDS[..] } else { &[] };
    kinds.iter().filter_map(|(kind, options)| Some((*kind, volume(kind, options)?)))
}

fn open(path: &Path, options: &str) -> Result<Arc<dyn Store>, OpenError> {
    Registry::new().open(&format!("file://{}?{options}", path.display()))
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).expect("a write").is_stored());
}

/// Fills a file system to the last block; returns the file that does.
fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("filler");
    let mut file = File::create(&path).expect("a file");
    for bytes in [1 << 20, 4096] {
        let block = vec![1; bytes];
        while file.write_all(&block).and_then(|()| file.sync_data()).is_ok() {}
    }
    path
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder");
    names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
#[ignore = "another test starts it"]
fn user() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else { return };
    let (path, kind) = (PathBuf::from(path), child::variable("HAYPILE_TEST_KIND").expect("it"));
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(Arc::clone(&clock) as _);
    let url = format!("file://{}", path.display());
    let store = registry.open(&format!("{url}?size=32MiB")).expect("a store");
    let is_btrfs = kind == "btrfs";
    let warnings = store.warnings();
    assert_eq!(warnings.iter().any(|it| it.contains("btrfs")), is_btrfs, "{warnings:?}");
    set(&*store, b"key", b"value");
    let pinned_value = work::value(3, 80_000);
    set(&*store, b"long", &pinned_value);
    let pinned = store.get_pinned(b"long").expect("a read").expect("it is there");
    let filler = fill(path.parent().expect("a folder"));
    // What is written to disk is clean then: each page has to be made writable again.
    rustix::fs::sync();
    clock.advance(SECOND);
    for number in 0..20_000_u64 {
        let key = (number % 9_000).to_le_bytes();
        let value = work::value(number, 100 + (number % 4_000) as usize);
        let written = store.set(&key, &value, &SetOptions::set());
        if is_btrfs {
            let error = written.expect_err("there is no room").to_string();
            assert!(error.contains("btrfs") && error.contains("free some room"), "{error}");
        } else {
            assert!(written.expect("room was reserved").is_stored());
        }
        // A hit is noted in the file, where that can be.
        assert!(store.get(b"long").expect("a read").is_some() || !is_btrfs);
    }
    assert!(*pinned == pinned_value);
    let other = registry.open(&url).expect("it can be read");
    assert!(!is_btrfs || other.get(b"key").expect("a read").as_deref() == Some(b"value"));
    assert_eq!(other.set(b"other", b"value", &SetOptions::set()).is_err(), is_btrfs);
    // Ending it waits for nothing either.
    drop(other);
    fs::remove_file(filler).expect("removed");
    rustix::fs::sync();
    clock.advance(SECOND);
    set(&*store, b"key", b"another value");
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"another value"[..]));
    assert!(*pinned == pinned_value);
    println!("\ntold done");
}

/// Waits for a process to end well.
fn await_end(child: &mut Child, what: &str) {
    let begin = Instant::now();
    while child.try_wait().expect("asked").is_none() {
        if begin.elapsed() > LONG {
            child.kill().expect("killed");
            panic!("{what}: it waits");
        }
        std::thread::yield_now();
    }
    let mut said = String::new();
    for pipe in [
        &mut child.stdout.take().map(|it| Box::new(it) as Box<dyn std::io::Read>),
        &mut child.stderr.take().map(|it| Box::new(it) as Box<dyn std::io::Read>),
    ] {
        let _ = pipe.as_mut().expect("a pipe").read_to_string(&mut said);
    }
    let status = child.wait().expect("its end");
    assert!(status.success() && said.contains("told done"), "{what}: {status}: {said}");
}

#[test]
#[ignore = "mounts file systems"]
fn a_full_disk_ends_no_process_and_keeps_none_waiting() {
    for (kind, volume) in volumes() {
        let variables = [
            ("HAYPILE_TEST_PATH", volume.at.join("cache").display().to_string()),
            ("HAYPILE_TEST_KIND", kind.to_owned()),
        ];
        await_end(&mut child::start("volumes::user", &variables), kind);
        println!("{kind}: done");
    }
}

#[test]
#[ignore = "mounts file systems"]
fn holes_on_a_full_disk_are_an_error_of_opening() {
    for (kind, volume) in volumes() {
        let (path, copy) = (volume.at.join("cache"), volume.at.join("copy"));
        set(&*open(&path, "size=32MiB").expect("a store"), b"key", b"value");
        let bytes = fs::read(&path).expect("its bytes");
        let file = File::create(&copy).expect("a file");
        file.set_len(bytes.len() as u64).expect("a hole");
        for (number, page) in (0_u64..).zip(bytes.chunks(4096)) {
            if page.iter().any(|byte| *byte != 0) {
                file.write_all_at(page, number * 4096).expect("written");
            }
        }
        file.set_permissions(fs::Permissions::from_mode(0o600)).expect("changed");
        file.sync_all().expect("a flush");
        let filler = fill(&volume.at);
        let error = open(&copy, "").expect_err("there is no room").to_string();
        assert!(error.contains("there is no room for 33554432 bytes"), "{kind}: {error}");
        fs::remove_file(filler).expect("removed");
        rustix::fs::sync();
        let store = open(&copy, "").expect("there is room");
        assert!(fs::metadata(&copy).expect("a file").blocks() * 512 >= bytes.len() as u64);
        assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]), "{kind}");
        println!("{kind}: done");
    }
}

#[test]
#[ignore = "mounts file systems"]
fn a_new_file_for_which_there_is_no_room_is_not_left_behind() {
    for (kind, volume) in volumes() {
        let before = names(&volume.at);
        let error = open(&volume.at.join("cache"), "size=512MiB").expect_err("it is larger");
        assert!(error.to_string().contains("there is no room for 536870912 bytes"), "{error}");
        assert_eq!(names(&volume.at), before, "{kind}");
        // On btrfs not all of the free space may be taken.
        let made = open(&volume.at.join("cache"), "size=250MiB");
        assert_eq!(made.is_err(), kind == "btrfs", "{kind}: {made:?}");
        println!("{kind}: done");
    }
}

#[test]
#[ignore = "mounts file systems"]
fn an_overlay_is_refused_before_it_is_filled() {
    for (kind, volume) in volumes() {
        let [lower, upper, work, at] =
            ["lower", "upper", "work", "at"].map(|it| volume.at.join(it));
        for folder in [&lower, &upper, &work, &at] {
            fs::create_dir(folder).expect("a folder");
        }
        let layers = [("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)];
        let layers = layers.map(|(name, folder)| format!("{name}={}", folder.display())).join(",");
        let options = ["-t", "overlay", "overlay", "-o", &layers];
        if !succeeds(Command::new("mount").args(options).arg(&at)) {
            println!("skipped: the kernel does not put an overlay over {kind}");
            continue;
        }
        let error = open(&at.join("cache"), "size=32MiB").map(drop);
        let left = names(&upper);
        let _ = Command::new("umount").arg(&at).status();
        match error {
            Ok(()) => println!("{kind}: this kernel's overlay keeps locks"),
            Err(error) => {
                assert!(error.to_string().contains("locks of open file descriptions"), "{error}");
                assert_eq!(left, [""; 0], "{kind}");
            }
        }
        println!("{kind}: done");
    }
}

/// A program that a test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "mounts file systems"]
fn a_file_system_of_a_program_is_used_where_that_is_allowed() {
    if !has_own_mounts() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let [below, at] = ["below", "at"].map(|it| directory.path().join(it));
    for folder in [&below, &at] {
        fs::create_dir(folder).expect("a folder");
    }
    let device = |path: &Path| fs::metadata(path).expect("a folder").dev();
    let before = device(&at);
    let started = Command::new("bindfs").arg("-f").args([&below, &at]).stdin(Stdio::null()).spawn();
    let Ok(mut program) = started.map(Program) else {
        println!("skipped: bindfs is not installed");
        return;
    };
    while device(&at) == before {
        if program.0.try_wait().expect("asked").is_some() {
            println!("skipped: bindfs cannot mount here");
            return;
        }
        std::thread::yield_now();
    }
    let path = at.join("cache");
    let error = open(&path, "size=2MiB").expect_err("it may be a network's").to_string();
    assert!(error.contains("allow_network=yes"), "{error}");
    // Whatever was open when it was removed has a hidden name until the program notices its end.
    let left = names(&below).into_iter().filter(|name| !name.starts_with(".fuse_hidden"));
    assert_eq!(left.count(), 0);
    let store = open(&path, "size=2MiB&allow_network=yes").expect("allowed");
    set(&*store, b"key", b"value");
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    assert!(fs::metadata(below.join("cache")).expect("a file").blocks() * 512 >= 2 << 20);
    drop(store);
    let _ = Command::new("umount").arg(&at).status();
}
