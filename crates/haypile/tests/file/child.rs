//! Other processes: this test program, started again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Starts a test that is ignored otherwise, with variables in its environment.
pub(crate) fn start(test: &str, variables: &[(&str, String)]) -> Child {
    command(test, variables).spawn().expect("a process")
}

/// As [`start`], with a pipe to its standard input, which ends with this process.
pub(crate) fn start_with_input(test: &str, variables: &[(&str, String)]) -> Child {
    command(test, variables).stdin(Stdio::piped()).spawn().expect("a process")
}

fn command(test: &str, variables: &[(&str, String)]) -> Command {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A variable of a child's environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The lines that begin with `prefix`, until the child ends.
pub(crate) fn lines(child: &mut Child, prefix: &str) -> Vec<String> {
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let lines = output.lines().map_while(Result::ok);
    lines.filter_map(|line| Some(line.strip_prefix(prefix)?.to_owned())).collect()
}
