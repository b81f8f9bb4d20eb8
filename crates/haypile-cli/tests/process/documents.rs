//! The commands of `docs/guide.md` and of the README succeed and print the output there;
//! `docs/options.md` is the output of `haypile schemes`.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{print, text};

const CHECKOUT: &str = "../..";
const GUIDE: &str = "../../docs/guide.md";
const README: &str = "../../README.md";
const OPTIONS: &str = "../../docs/options.md";
const FENCE: &str = "```";
/// Stands for other lines where it is one, and for the rest of a line at its end.
const ANYTHING: &str = "...";

/// Commands, and the lines that they print.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    commands: String,
    shown: Vec<String>,
}

/// The steps of a document: a block of `sh`, and of `text` behind it if there is one; and the
/// commands of `console` blocks, each after a `$`. Blocks of other kinds are left out, such as
/// `sh setup`.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix(FENCE) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != FENCE).collect();
        match kind {
            "sh" => steps.push(Step { commands: block.join("\n"), shown: Vec::new() }),
            "text" => show(&mut steps, &block),
            "console" => {
                for line in block {
                    match line.strip_prefix("$ ") {
                        Some(command) => {
                            steps.push(Step { commands: command.to_owned(), shown: Vec::new() });
                        }
                        None => show(&mut steps, &[line]),
                    }
                }
            }
            _ => {}
        }
    }
    steps
}

/// Adds lines to the output of the last commands.
fn show(steps: &mut [Step], lines: &[&str]) {
    let step = steps.last_mut().expect("commands stand before what they print");
    step.shown.extend(lines.iter().map(|&line| line.to_owned()));
}

/// Returns the first line that was not printed in its place. Lines follow each other as the document
/// shows them, except where it leaves some out.
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

/// Makes the folder of the guide, two levels below that of the traces.
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
    let steps = steps(&fs::read_to_string(GUIDE).unwrap());
    // The application, five steps, and the looks between.
    assert_eq!(steps.len(), 9);
    run(&steps, &place);
}

#[test]
fn every_command_of_the_readme_prints_what_it_shows() {
    let steps = steps(&fs::read_to_string(README).unwrap());
    let steps: Vec<_> = steps.into_iter().filter(|step| !step.shown.is_empty()).collect();
    assert_eq!(steps.len(), 3);
    run(&steps, Path::new(CHECKOUT));
}

#[test]
fn the_options_are_those_of_the_program() {
    let printed = print(&["schemes", "--markdown"]);
    let document = fs::read_to_string(OPTIONS).unwrap();
    assert!(printed == document, "docs/options.md is not current: write it by `make options`");
}

/// Runs the commands in a folder, and compares what they print.
fn run(steps: &[Step], place: &Path) {
    let program = Path::new(env!("CARGO_BIN_EXE_haypile")).parent().unwrap();
    let inherited = env::var_os("PATH").unwrap_or_default();
    let path = [program.to_owned()].into_iter().chain(env::split_paths(&inherited));
    let path = env::join_paths(path).unwrap();
    for step in steps {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &step.commands]).current_dir(place).stdin(Stdio::null());
        shell.env("PATH", &path).env("NO_COLOR", "1").env("COLUMNS", "1000");
        // Rivals that are installed here make no difference.
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
    let document = "a\n```sh setup\nno\n```\n```sh\none\ntwo\n```\n```text\nx\n```\n```sh\nthree\n```\n\
         ```console\n$ four\ny\n$ five\n```";
    let step = |commands: &str, shown: &[&str]| Step {
        commands: commands.to_owned(),
        shown: shown.iter().map(|&line| line.to_owned()).collect(),
    };
    let console = [step("four", &["y"]), step("five", &[])];
    assert_eq!(steps(document)[..2], [step("one\ntwo", &["x"]), step("three", &[])]);
    assert_eq!(steps(document)[2..], console);
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
