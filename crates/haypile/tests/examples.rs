//! The example does what it says. `cargo test` builds it; those with more dependencies are run by the tests of
//! `haypile-http` and `haypile-remote`.

#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns the program of an example, which lies next to the folder of this test's.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let program: PathBuf = test.parent().unwrap().with_file_name("examples").join(name);
    Command::new(program)
}

fn output(mut command: Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn of_two_processes_one_computes() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = example("two_processes");
    command.arg(folder.path().join("a file, shared.haypile"));
    let text = output(command);
    assert_eq!(text.matches("computes").count(), 1, "{text}");
    assert_eq!(text.matches("has 42").count(), 2, "{text}");
}
