//! `docs/guide.md`: every command of it succeeds, and prints what it shows.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::text;

const GUIDE: &str = "../../docs/guide.md";
const FENCE: &str = "```";
/// Stands for other lines where it is one, and for the rest of a line at its end.
const ANYTHING: &str = "...";

/// Commands, and the lines that they print.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    commands: String,
    shown: Vec<String>,
}

/// The steps of a document: a block of `sh`, and of `text` behind it if there is one. Blocks of
/// other kinds are left out, such as `sh setup`.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix(FENCE) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != FENCE).collect();
        match kind {
            "sh" => steps.push(Step { commands: block.join("\n"), shown: Vec::new() }),
            "text" => {
                let step = steps.last_mut().expect("commands stand before what they print");
                step.shown.extend(block.into_iter().map(str::to_owned));
            }
            _ => {}
        }
    }
    steps
}

/// The first of the lines that was not printed where it should have been. Lines follow each other as
/// they are shown, unless something is left out between.
fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().filter(|line| !line.is_empty());
    let mut may_skip = false;
    for line in shown.iter().filter(|line| !line.is_empty()) {
        if line == ANYTHING {
            may_skip = true;
            continue;
        }
        let is_it = |found: &str| match line.strip_suffix(ANYTHING) {
            Some(begin) => found.starts_with(begin),
            None => found.trim_end() == line,
        };
        let found = if may_skip { printed.any(is_it) } else { printed.next().is_some_and(is_it) };
        if !found {
            return Some(line);
        }
        may_skip = false;
    }
    None
}

/// The folders that the guide works in: its own, two below that of the traces.
fn place(root: &Path) -> PathBuf {
    let traces = fs::canonicalize("../../traces").unwrap();
    symlink(traces, root.join("traces")).unwrap();
    let place = root.join("target/guide");
    fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn every_command_of_the_guide_does_what_it_shows() {
    let root = tempfile::tempdir().unwrap();
    let place = place(root.path());
    let program = Path::new(env!("CARGO_BIN_EXE_haypile")).parent().unwrap();
    let inherited = env::var_os("PATH").unwrap_or_default();
    let path = [program.to_owned()].into_iter().chain(env::split_paths(&inherited));
    let path = env::join_paths(path).unwrap();
    let steps = steps(&fs::read_to_string(GUIDE).unwrap());
    // The application, five steps, and the looks between.
    assert_eq!(steps.len(), 9);
    for step in steps {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &step.commands]).current_dir(&place).stdin(Stdio::null());
        shell.env("PATH", &path).env("NO_COLOR", "1").env("COLUMNS", "1000");
        // What is installed here beside the program makes no difference.
        shell.env("HAYPILE_CHECKOUT", "no-checkout");
        let output = shell.output().unwrap();
        let (printed, said) = (text(output.stdout), text(output.stderr));
        assert!(output.status.success(), "{}\n{printed}{said}", step.commands);
        let missing = missing(&step.shown, &printed);
        assert_eq!(missing, None, "is not what {} prints:\n{printed}", step.commands);
    }
}

#[test]
fn blocks_are_steps() {
    let document =
        "a\n```sh setup\nno\n```\n```sh\none\ntwo\n```\n```text\nx\n```\n```sh\nthree\n```";
    let step = |commands: &str, shown: &[&str]| Step {
        commands: commands.to_owned(),
        shown: shown.iter().map(|&line| line.to_owned()).collect(),
    };
    assert_eq!(steps(document), [step("one\ntwo", &["x"]), step("three", &[])]);
}

#[test]
fn what_is_shown_has_to_be_printed() {
    let shown = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    let printed = "one\n\ntwo, and more\nthree\n";
    for right in [
        &["one", "two, and more"][..],
        &["one", "two..."],
        &["...", "three"],
        &["...", "two...", "three"],
        &[],
    ] {
        assert_eq!(missing(&shown(right), printed), None, "{right:?}");
    }
    for (wrong, line) in [
        (&["two..."][..], "two..."),
        (&["one", "three"], "three"),
        (&["...", "two"], "two"),
        (&["...", "three", "..", "one"], ".."),
    ] {
        assert_eq!(missing(&shown(wrong), printed), Some(line), "{wrong:?}");
    }
}
