//! Writers that die: either the old or the new snapshot remains, and it is complete.
//!
//! The children run this test program, controlled by the environment.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haypile::memory::snapshot::{SnapshotError, SnapshotWriter};

use crate::support::{Entry, options, read, write};

const PATH: &str = "HAYPILE_SNAPSHOT_TEST_PATH";
const INSTANT: &str = "HAYPILE_SNAPSHOT_TEST_INSTANT";
const READY: &str = "the instant has come";

/// Entries of which a few fill a block, and one that is larger than a block.
fn entries(generation: u8) -> Vec<Entry> {
    let value_bytes = |at: usize| if at == 8 { 3 << 20 } else { 150_000 };
    (0..16).map(|at| Entry::new(format!("key {at}"), vec![generation; value_bytes(at)])).collect()
}

/// Runs a child up to an instant: one before the file is created, one after, one after each entry;
/// the last is the call of `finish`, where it does not wait.
const INSTANTS: usize = 19;

#[test]
#[ignore = "is run by the tests below, in a process of its own"]
fn child() {
    let Ok(path) = std::env::var(PATH) else { return };
    let instant: usize = std::env::var(INSTANT).unwrap().parse().unwrap();
    let wait_at = |now: usize| {
        if now == instant {
            eprintln!("{READY}");
            // Until the parent kills this process, or has died.
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
    };
    wait_at(0);
    let mut writer = SnapshotWriter::create(Path::new(&path), options()).unwrap();
    wait_at(1);
    for (at, entry) in entries(2).iter().enumerate() {
        writer.push(entry.lent()).unwrap();
        wait_at(at + 2);
    }
    eprintln!("{READY}");
    writer.finish().unwrap();
}

fn command(path: &Path, instant: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["kill::child", "--exact", "--ignored", "--nocapture"]);
    command.env(PATH, path).env(INSTANT, instant.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Runs a child up to an instant, and kills it there.
fn kill_at(path: &Path, instant: usize) {
    let mut child = command(path, instant).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let is_ready = stderr.lines().any(|line| line.unwrap().contains(READY));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_ready, "the child ended before instant {instant}");
}

fn is_generation(path: &Path, generation: u8) -> bool {
    read(path, u64::MAX).unwrap().iter().rev().eq(&entries(generation))
}

fn with_old_snapshot() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    write(&path, options(), &entries(1)).unwrap();
    (folder, path)
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_killed_writer_leaves_the_old_snapshot() {
    let (folder, path) = with_old_snapshot();
    for instant in 0..INSTANTS - 1 {
        kill_at(&path, instant);
        assert!(is_generation(&path, 1), "killed at instant {instant}");
        let leftovers = count(folder.path()) - 1;
        assert_eq!(leftovers, usize::from(instant > 0), "the child before this one left a file");
    }
    write(&path, options(), &[]).unwrap();
    assert_eq!(count(folder.path()), 1);
}

/// The child is killed at an unknown point of syncing its file to disk and renaming it.
#[test]
fn a_writer_killed_while_it_finishes_leaves_the_old_snapshot_or_the_new_one() {
    let (folder, path) = with_old_snapshot();
    for _ in 0..12 {
        kill_at(&path, INSTANTS);
        assert!(is_generation(&path, 1) || is_generation(&path, 2));
    }
    write(&path, options(), &entries(1)).unwrap();
    assert_eq!(count(folder.path()), 1);
}

/// A limit on file sizes simulates a full disk: a write is cut off.
#[test]
fn a_writer_without_space_leaves_the_old_snapshot() {
    let (folder, path) = with_old_snapshot();
    let program = std::env::current_exe().unwrap();
    // A shell ignores the signal that would end the process, and its child inherits that.
    let script = "trap '' XFSZ; ulimit -f 2000; exec \"$0\" kill::no_space --exact --ignored";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(program)
        .env(PATH, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    assert!(is_generation(&path, 1));
    assert_eq!(count(folder.path()), 1);
}

#[test]
#[ignore = "is run by the test above, in a process of its own"]
fn no_space() {
    let Ok(path) = std::env::var(PATH) else { return };
    let mut writer = SnapshotWriter::create(Path::new(&path), options()).unwrap();
    let error = entries(2).iter().find_map(|entry| writer.push(entry.lent()).err()).unwrap();
    let text = error.to_string();
    assert!(text.contains(&path) && text.contains("the old snapshot is intact"), "{text}");
    let again = writer.push(Entry::new("large", vec![0; 2 << 20]).lent()).unwrap_err();
    assert!(matches!(again, SnapshotError::GivenUp { .. }), "{again}");
    assert!(matches!(writer.finish(), Err(SnapshotError::GivenUp { .. })));
}
