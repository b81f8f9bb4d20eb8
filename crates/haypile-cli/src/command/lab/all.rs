//! `haypile lab all`

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, bail};
use haypile_lab::experiment::{Known, topics};
use haypile_number::with_plain_spaces;

use super::child::wait;
use super::experiments::named;
use super::report;
use crate::args::lab::{All, Report};
use crate::output::progress::Progress;
use crate::{FAILURE, NEGATIVE, interrupt, output};

/// Policies to simulate on a trace: all of the engine, and the optimum.
const POLICIES: &str = "fifo,lru,slru,clock,sieve,s3fifo,wtinylfu,arc,lirs,belady";

/// Command that this program runs in a separate process.
struct Step {
    name: String,
    arguments: Vec<OsString>,
    /// Path of the file for the command's standard output.
    printed: PathBuf,
    /// Path of the file for the command's results, if that is another one.
    results: Option<PathBuf>,
}

/// Executes `haypile lab all`: runs every experiment and writes a report.
pub(crate) fn run(arguments: &All) -> anyhow::Result<ExitCode> {
    let steps = steps(arguments)?;
    let directory = &arguments.output;
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("cannot create {shown}"))?;
    interrupt::watch()?;
    let program = env::current_exe().context("cannot find this program's own file")?;
    let progress = Progress::towards(steps.len() as u64, "running all experiments".to_owned());
    let mut codes = Vec::new();
    for step in &steps {
        let code = step.run(&program)?;
        progress.advance(1);
        if interrupt::asked() {
            bail!("interrupted; the finished results are in {shown}");
        }
        codes.push(code);
    }
    progress.finish();
    let page = Report {
        findings: false,
        results: vec![directory.clone()],
        output: directory.join("report.html"),
        plots: None,
    };
    report::run(&page)?;
    let worst = [FAILURE, NEGATIVE].into_iter().find(|code| codes.contains(code));
    Ok(worst.map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn steps(arguments: &All) -> anyhow::Result<Vec<Step>> {
    let directory = &arguments.output;
    let simulated = arguments.trace.iter().map(|trace| Step {
        name: "simulate".to_owned(),
        arguments: vec![
            "simulate".into(),
            trace.into(),
            "--policy".into(),
            POLICIES.into(),
            "--json".into(),
        ],
        printed: directory.join("simulate.json"),
        results: None,
    });
    let measured = chosen(&arguments.only)?.into_iter().map(|known| {
        let name = known.name();
        let results = directory.join(format!("{name}.jsonl"));
        let mut words: Vec<OsString> = ["lab", name, "--out"].map(Into::into).to_vec();
        words.push(results.clone().into());
        words.extend(arguments.quick.then(|| "--quick".into()));
        // Without this option, an experiment measures only caches of this program by default.
        let command = known.command();
        let has_embedded = command.get_arguments().any(|argument| argument.get_id() == "embedded");
        words.extend((arguments.embedded && has_embedded).then(|| "--embedded".into()));
        Step {
            name: name.to_owned(),
            arguments: words,
            printed: directory.join(format!("{name}.txt")),
            results: Some(results),
        }
    });
    Ok(simulated.chain(measured).collect())
}

/// Returns the experiments of these names, or all.
fn chosen(names: &[String]) -> anyhow::Result<Vec<Known>> {
    let wanted: Vec<_> = names.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
    let is_chosen = |known: &Known| {
        let is_wanted = wanted.iter().any(|wanted| wanted.name() == known.name());
        is_wanted || wanted.is_empty() && !known.needs_commands()
    };
    Ok(Known::all().filter(is_chosen).collect())
}

impl Step {
    /// Returns the answers that a report of the step's results gives; none where there are no results.
    fn answers(&self) -> Vec<String> {
        let results = self.results.as_ref().unwrap_or(&self.printed);
        let input = haypile_lab::report::read(std::slice::from_ref(results));
        let report = input.map(|input| haypile_lab::report::Report::new(&input, &topics()));
        report.map_or_else(|_| Vec::new(), |report| report.answers().collect())
    }

    /// Runs the command, prints a line with its outcome and its answers, and returns its exit status.
    fn run(&self, program: &Path) -> anyhow::Result<u8> {
        // Results are appended, and would be mixed with those of an earlier run.
        self.results.iter().try_for_each(|results| remove(results))?;
        let printed = self.printed.display();
        let file = File::create(&self.printed).with_context(|| printed.to_string())?;
        let begin = Instant::now();
        let child = Command::new(program).args(&self.arguments).stdout(file).spawn();
        let child = child.with_context(|| format!("cannot start {}", self.name))?;
        let code = wait(child)?;
        let outcome = match code {
            0 => "done",
            NEGATIVE => "done, with errors",
            _ => "failed",
        };
        let seconds = begin.elapsed().as_secs_f64();
        output::text(&format!("{:<10} {seconds:>6.1} s  {outcome}: {printed}\n", self.name))?;
        for answer in self.answers() {
            output::text(&format!("  {}\n", with_plain_spaces(&answer)))?;
        }
        Ok(code)
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot replace {}", path.display())),
    }
}
