//! Processes that share one file, each with targets of its own of which no response is stored.

use std::process::{Child, Command, Stdio};

use super::bench::Bench;
use super::unstored::{self, KINDS, PAGES, lost};

const FILE_BYTES: usize = 2 << 20;
/// The bytes that the file has for an entry in addition to its key and its value.
const RECORD_BYTES: usize = 40;

/// The variables by which a process learns its file, its name, and the number of its targets of each kind.
const FILE: &str = "HAYPILE_TEST_FILE";
const NAME: &str = "HAYPILE_TEST_NAME";
const TARGETS: &str = "HAYPILE_TEST_TARGETS";

/// Starts a process that asks for this number of targets of each kind.
fn start(file: &str, name: usize, targets: usize) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["processes::asks", "--exact", "--ignored", "--test-threads=1"]);
    command.env(FILE, file).env(NAME, name.to_string()).env(TARGETS, targets.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("a process")
}

fn end(child: Child) {
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test(start_paused = true)]
#[ignore = "another process starts it"]
async fn asks() {
    let variable = |name| std::env::var(name).ok();
    let (Some(file), Some(name), Some(targets)) =
        (variable(FILE), variable(NAME), variable(TARGETS))
    else {
        return;
    };
    let targets: usize = targets.parse().expect("a number");
    let bench = unstored::bench(&file);
    for kind in KINDS {
        unstored::ask(&bench, kind, &name, targets).await;
    }
}

/// Returns the number of entries that have no response, and the bytes that the file has for them and for their list.
fn known(bench: &Bench) -> (usize, usize) {
    let (mut entries, mut bytes) = (0, 0);
    for key in bench.store.keys() {
        let key = key.expect("a file that works");
        let Some(value) = bench.store.get(&key).expect("a file that works") else { continue };
        let is_bare = key.starts_with(b"http/") && value.len() < 100;
        if is_bare || key.starts_with(b"http-bare/") {
            entries += usize::from(is_bare);
            bytes += key.len() + value.len() + RECORD_BYTES;
        }
    }
    (entries, bytes)
}

/// Has generations of processes ask for targets, and checks what they leave of the pages, and in the file.
async fn check(generations: usize, processes: usize, targets: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{},size={FILE_BYTES}", folder.path().join("f").display());
    let bench = unstored::bench(&file);
    lost(&bench).await;
    assert_eq!(lost(&bench).await, 0);
    for generation in 0..generations {
        let start = |process| start(&file, generation * processes + process, targets);
        let children: Vec<Child> = (0..processes).map(start).collect();
        children.into_iter().for_each(end);
        let (entries, bytes) = known(&bench);
        assert!((50..=102).contains(&entries), "{entries} entries after {generation}");
        assert!(bytes <= FILE_BYTES / 100, "{bytes} bytes after {generation}");
    }
    let lost = lost(&bench).await;
    assert!(lost <= PAGES / 10, "{lost} pages were evicted");
}

#[tokio::test(start_paused = true)]
async fn processes_that_share_a_file_keep_no_more_of_such_targets_than_one() {
    check(1, 4, 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_begins_again_and_again_leaves_no_more_of_them_than_one_that_stays() {
    check(20, 1, 50).await;
}
