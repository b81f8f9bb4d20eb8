//! Examples as programs: `cargo test` builds them, into a folder next to that of the tests' programs.

use std::process::{Command, Stdio};

/// Returns the program of an example.
pub(crate) fn program(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    Command::new(test.parent().unwrap().with_file_name("examples").join(name))
}

/// Runs an example, which has to succeed, and returns what it prints.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
