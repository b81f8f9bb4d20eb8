//! Every block of shell commands of every page succeeds and prints the output that the page shows, or a comment before
//! it says why the tests do not run it; `docs/options.md` is the output of `haypile schemes`.

mod page;

use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::program::{print, text};
use page::{Block, Mark, Page, pages};

const CHECKOUT: &str = "../..";
const OPTIONS: &str = "../../docs/options.md";
/// Stands for other lines where it is one, and for the rest of a line at its end.
const ANYTHING: &str = "...";
/// Folders of the system in which pages put files; a page has its own ones in the tests.
const SHARED: [&str; 3] = ["/var/tmp/", "/tmp/", "/run/"];
/// The longest time for the commands of one step, in seconds: some measure for half a minute on a busy machine.
const LONGEST: &str = "300";
/// The number of pages that run at once: most wait most of the time.
const AT_ONCE: usize = 4;

/// Commands, and the lines that they print.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    commands: String,
    shown: Vec<String>,
    /// Programs without which the commands cannot run.
    needs: Vec<String>,
}

impl Step {
    fn new(commands: String, needs: &[String]) -> Self {
        Self { commands, shown: Vec::new(), needs: needs.to_vec() }
    }
}

/// The blocks of a page, as the tests treat them.
#[derive(Debug, Default)]
struct Plan {
    steps: Vec<Step>,
    /// Blocks that run.
    run: usize,
    /// Blocks that a mark excludes.
    marked: usize,
    wrong: Vec<String>,
}

/// Sorts the blocks of a page: a block of `sh` is a step, with the output in the block of `text` that is the next one;
/// each command of a `console` block is one, after a `$`.
fn plan(page: &Page) -> Plan {
    let mut plan = Plan::default();
    // Whether a block of text is the output of the last step.
    let mut shows = false;
    for block in page.blocks() {
        let place = format!("{}:{}", page.name, block.line);
        if !block.is_shell() {
            if block.kind == "text" && shows {
                show(&mut plan.steps, &block.lines);
            } else if block.mark.is_some() {
                plan.wrong
                    .push(format!("{place}: the comment is not before a block of sh or console"));
            }
            shows = false;
            continue;
        }
        shows = false;
        if let Some(Mark::NotRun(reason)) = &block.mark {
            plan.marked += 1;
            if reason.is_empty() {
                plan.wrong.push(format!("{place}: not run, without a reason"));
            }
            continue;
        }
        if block.kind != "sh" && block.kind != "console" {
            plan.wrong.push(format!("{place}: a block of '{}'; write sh or console", block.kind));
            continue;
        }
        plan.run += 1;
        shows = block.kind == "sh";
        add(&mut plan.steps, &block);
    }
    plan
}

/// Adds the steps of a block. All commands of it run in one shell if it is a block of `sh`; those of `console` have one
/// each, and each repeats what comes first.
fn add(steps: &mut Vec<Step>, block: &Block) {
    let (needs, first) = match &block.mark {
        Some(Mark::Run { needs, first }) => (needs.as_slice(), first.as_str()),
        _ => (&[][..], ""),
    };
    if block.kind == "sh" {
        steps.push(Step::new(format!("{first}\n{}", block.lines.join("\n")), needs));
        return;
    }
    for line in &block.lines {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push(Step::new(format!("{first}\n{command}"), needs)),
            None => show(steps, std::slice::from_ref(line)),
        }
    }
}

/// Adds lines to the output of the last commands.
fn show(steps: &mut [Step], lines: &[String]) {
    let step = steps.last_mut().expect("commands stand before what they print");
    step.shown.extend(lines.iter().cloned());
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

/// The folder in which the commands of one page run, two levels below that of the traces.
struct Place {
    root: TempDir,
    folder: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        symlink(fs::canonicalize("../../traces").unwrap(), root.path().join("traces")).unwrap();
        let folder = root.path().join("target/page");
        for folder in [&folder, &root.path().join("home")] {
            fs::create_dir_all(folder).unwrap();
        }
        for shared in SHARED {
            fs::create_dir_all(root.path().join(shared.trim_start_matches('/'))).unwrap();
        }
        Self { root, folder }
    }

    /// Returns the path that stands for a shared folder of the system.
    fn own(&self, shared: &str) -> String {
        format!("{}{shared}", self.root.path().display())
    }

    /// Runs the commands, and compares what they print. Returns what is wrong.
    fn run(&self, step: &Step) -> Result<(), String> {
        let program = Path::new(env!("CARGO_BIN_EXE_haypile")).parent().unwrap();
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = [program.to_owned()].into_iter().chain(env::split_paths(&inherited));
        // One of the names contains another.
        let commands =
            SHARED.iter().enumerate().fold(step.commands.clone(), |text, (mark, shared)| {
                text.replace(shared, &format!("\0{mark}"))
            });
        let commands = SHARED.iter().enumerate().fold(commands, |text, (mark, shared)| {
            text.replace(&format!("\0{mark}"), &self.own(shared))
        });
        let mut shell = Command::new("timeout");
        shell
            .args([LONGEST, "sh", "-eu", "-c", &commands])
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        shell.env("PATH", env::join_paths(path).unwrap());
        shell.env("NO_COLOR", "1").env("COLUMNS", "1000");
        shell.env("HOME", self.root.path().join("home")).env("TMPDIR", self.own("/tmp/"));
        shell.env("CHECKOUT", fs::canonicalize(CHECKOUT).unwrap());
        // Rivals that are installed here make no difference.
        shell.env("HAYPILE_CHECKOUT", "no-checkout");
        let output = shell.output().unwrap();
        let of_the_page = |bytes| {
            SHARED.iter().fold(text(bytes), |text, shared| text.replace(&self.own(shared), shared))
        };
        let (printed, said) = (of_the_page(output.stdout), of_the_page(output.stderr));
        if !output.status.success() {
            return Err(format!("{}: {}\n{printed}{said}", step.commands, output.status));
        }
        match missing(&step.shown, &printed) {
            Some(line) => Err(format!("{} does not print '{line}', but\n{printed}", step.commands)),
            None => Ok(()),
        }
    }
}

/// Whether the system finds this program.
fn is_installed(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// The results of the blocks of all pages.
#[derive(Default)]
struct Results {
    run: usize,
    marked: usize,
    skipped: Vec<String>,
    wrong: Vec<String>,
}

/// Runs the blocks of a page.
fn run(page: &Page) -> Results {
    let Plan { steps, run, marked, wrong } = plan(page);
    let mut results = Results { run, marked, wrong, skipped: Vec::new() };
    let place = Place::new();
    for step in &steps {
        if let Some(program) = step.needs.iter().find(|program| !is_installed(program)) {
            let command = step.commands.lines().last().unwrap_or_default();
            results.skipped.push(format!("{}: {command}: {program} is not installed", page.name));
        } else if let Err(error) = place.run(step) {
            results.wrong.push(format!("{}: {error}", page.name));
            // Later steps stand on earlier ones.
            break;
        }
    }
    results
}

#[test]
fn every_shell_block_of_every_page_runs_or_is_marked() {
    let pages = pages(Path::new(CHECKOUT));
    let left = Mutex::new(pages.iter());
    let results = Mutex::new(Results::default());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(page) = { left.lock().next() } {
                    let of_page = run(page);
                    let mut all = results.lock();
                    all.run += of_page.run;
                    all.marked += of_page.marked;
                    all.skipped.extend(of_page.skipped);
                    all.wrong.extend(of_page.wrong);
                }
            });
        }
    });
    let Results { run, marked, skipped, wrong } = results.into_inner();
    // Not by a macro of the standard library, whose lines tests keep for themselves unless they fail.
    let mut told = io::stderr();
    writeln!(told, "{run} shell blocks of {} pages run, {marked} are marked", pages.len()).unwrap();
    for skipped in &skipped {
        writeln!(told, "Skipped: {skipped}").unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let is_strict = env::var_os("HAYPILE_REQUIRE_RIVALS").is_some_and(|value| value == "1");
    assert!(skipped.is_empty() || !is_strict, "HAYPILE_REQUIRE_RIVALS=1: nothing may be skipped");
    assert!(run >= 20, "only {run} blocks run");
}

#[test]
fn the_options_are_those_of_the_program() {
    let printed = print(&["schemes", "--markdown"]);
    let document = fs::read_to_string(OPTIONS).unwrap();
    assert!(printed == document, "docs/options.md is not current: write it by `make options`");
}

fn page_of(text: &str) -> Page {
    Page { name: "p.md".to_owned(), text: text.to_owned() }
}

#[test]
fn blocks_are_steps() {
    let page = page_of(
        "a\n<!-- not run: asks -->\n```sh\nno\n```\n```text\nnot of the last\n```\n```sh\none\ntwo\n```\n\
         ```text\nx\n```\n```text\nnot of the last\n```\n1. a\n\n   <!-- first: zero -->\n   ```sh\n   three\n   ```\n\
         <!-- needs: a b; first: c; d -->\n```console\n$ four\ny\n$ five\n```\n```text\nnot of the last\n```",
    );
    let step = |commands: &str, shown: &[&str], needs: &[&str]| Step {
        commands: commands.to_owned(),
        shown: shown.iter().map(|&line| line.to_owned()).collect(),
        needs: needs.iter().map(|&program| program.to_owned()).collect(),
    };
    let plan = plan(&page);
    let expected = [
        step("\none\ntwo", &["x"], &[]),
        step("zero\nthree", &[], &[]),
        step("c; d\nfour", &["y"], &["a", "b"]),
        step("c; d\nfive", &[], &["a", "b"]),
    ];
    assert_eq!(plan.steps, expected);
    assert_eq!((plan.run, plan.marked, plan.wrong), (3, 1, vec![]));
}

#[test]
fn blocks_without_reasons_and_marks_without_blocks_are_wrong() {
    for (text, wrong) in [
        ("<!-- not run: -->\n```sh\na\n```", "p.md:2: not run, without a reason"),
        ("```bash\na\n```", "p.md:1: a block of 'bash'; write sh or console"),
        ("```sh setup\na\n```", "p.md:1: a block of 'sh setup'; write sh or console"),
        (
            "<!-- not run: slow -->\n```rust\na\n```",
            "p.md:2: the comment is not before a block of sh or console",
        ),
    ] {
        assert_eq!(plan(&page_of(text)).wrong, [wrong]);
    }
    // It needs nothing.
    assert_eq!(
        plan(&page_of("<!-- needs: -->\n```sh\na\n```")).steps[0],
        Step::new("\na".to_owned(), &[])
    );
    // A blank line stands between the comment and the block.
    assert_eq!(plan(&page_of("<!-- not run: slow -->\n\n```sh\na\n```")).run, 1);
}

#[test]
fn code_between_backquotes_may_go_on_in_the_next_line() {
    let page = page_of("a `b c` and `d\n  e` f\n```sh\ng `h`\n```\nopen `i\n\n`j` k");
    let expected = [(1, "b c"), (1, "d e"), (8, "j")];
    assert_eq!(page.inline_code(), expected.map(|(line, code)| (line, code.to_owned())));
}

#[test]
fn failures_of_steps_are_told() {
    let place = Place::new();
    let run = |commands: &str, shown: &[&str]| {
        let shown = shown.iter().map(|&line| line.to_owned()).collect();
        place.run(&Step { commands: commands.to_owned(), shown, needs: Vec::new() })
    };
    assert_eq!(run("echo /tmp/a /var/tmp/b; touch /tmp/c", &["/tmp/a /var/tmp/b"]), Ok(()));
    assert_eq!(fs::read_dir(place.own("/tmp/")).unwrap().count(), 1);
    assert!(run("false", &[]).unwrap_err().contains("exit status: 1"));
    assert!(run("echo a", &["b"]).unwrap_err().contains("does not print 'b'"));
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
