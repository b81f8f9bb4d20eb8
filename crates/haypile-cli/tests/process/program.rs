//! Runs the program without a terminal.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The repository's trace: 40,053 requests for 1,067 keys, 39,310 of them reads.
pub(crate) const TRACE: &str = "../../traces/redis-build.csv.zst";

/// Twelve requests for four keys.
pub(crate) const TINY: &str = "tests/data/tiny.csv";

/// Exit status of failures and wrong arguments.
pub(crate) const FAILURE: i32 = 2;
/// Exit status of a command that Ctrl-C has ended.
pub(crate) const INTERRUPTED: i32 = 130;

/// Exit status of negative answers.
pub(crate) const NEGATIVE: i32 = 1;

pub(crate) fn haypile(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haypile"));
    command.args(arguments).env("NO_COLOR", "1").env("COLUMNS", "100");
    // Rivals that are installed here make no difference.
    command.env("HAYPILE_CHECKOUT", "no-checkout");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the standard output of a run that succeeds and prints nothing on standard error.
#[track_caller]
pub(crate) fn print(arguments: &[&str]) -> String {
    quiet(&haypile(arguments).output().unwrap())
}

/// As [`print`], with text on standard input.
#[track_caller]
pub(crate) fn print_with_input(arguments: &[&str], input: &[u8]) -> String {
    let mut child = haypile(arguments).stdin(Stdio::piped()).spawn().unwrap();
    // It is read to its end before anything is printed, so that neither waits for the other.
    child.stdin.take().unwrap().write_all(input).unwrap();
    quiet(&child.wait_with_output().unwrap())
}

#[track_caller]
pub(crate) fn print_json(arguments: &[&str]) -> Value {
    serde_json::from_str(&print(arguments)).unwrap()
}

/// Returns what a run that succeeds prints on a terminal of this width, whose lines end with CR and LF.
/// More than a terminal holds until it is read, 4 KiB, would never end.
#[cfg(target_os = "linux")]
#[track_caller]
pub(crate) fn print_on_terminal(mut command: Command, columns: u16) -> String {
    use std::io::Read;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let pair = openpt(flags).unwrap();
    grantpt(&pair).unwrap();
    unlockpt(&pair).unwrap();
    let name = ptsname(&pair, Vec::new()).unwrap();
    let terminal = open(name, OFlags::WRONLY | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let output = command.stdout(terminal).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    // The command holds the other end too.
    drop(command);
    // Nobody holds it any more: what comes after what was printed is an error.
    let mut printed = Vec::new();
    drop(std::fs::File::from(pair).read_to_end(&mut printed));
    text(printed)
}

/// Returns the standard error of a run that fails and prints nothing on standard output.
#[track_caller]
pub(crate) fn fail(arguments: &[&str]) -> String {
    let output = haypile(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert_eq!(text(output.stdout), "");
    text(output.stderr)
}

/// Returns a path in a folder of the test.
pub(crate) fn path_in(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[track_caller]
fn quiet(output: &Output) -> String {
    assert_eq!(text(output.stderr.clone()), "");
    assert_eq!(output.status.code(), Some(0));
    text(output.stdout.clone())
}
