//! The program, as its users start it.

use std::process::{Command, Output};

/// Runs the program; returns its exit status and its output.
pub(crate) fn output(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haypile-stress"));
    command.args(arguments).output().expect("the program starts")
}

/// Runs a test of the program, which has to find nothing wrong. Returns what it printed.
pub(crate) fn passes(command: &str, url: &str, options: &str) -> String {
    let arguments = [vec![command, url], options.split_whitespace().collect()].concat();
    let output = output(&arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}\n{text}\n{errors}", output.status);
    text
}
