//! Other processes: this test program, started anew.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Starts a test that is ignored otherwise, with variables in its environment.
pub(crate) fn start(test: &str, variables: &[(&str, String)]) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process")
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
