//! `haypile lab torture`, and `haypile lab run-torture`: this program as one of the processes.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_lab::measure::Runner;
use haypile_lab::result::{ResultsWriter, Run, Sample};
use haypile_lab::subject::SubjectSpec;
use haypile_lab::torture::{Case, Contestant, NAME, Options, Watcher, role, torture};
use serde_json::json;

use super::OWN_LABEL;
use super::measuring::command_line;
use super::measuring::contenders::rivals;
use crate::args::lab::{RunTorture, Torture};
use crate::output::number::{grouped, ratio};
use crate::output::progress::Progress;
use crate::output::table::table;
use crate::output::target;
use crate::{NEGATIVE, interrupt, output};

const NOTHING: &str = "-";

/// Directory whose files need no disk.
const MEMORY: &str = "/dev/shm";

/// Runs the role that the orders name.
pub(crate) fn role(arguments: &RunTorture) -> anyhow::Result<()> {
    let orders = role::Orders::parse(&arguments.orders)?;
    role::run(&orders, &role::open_ours)?;
    Ok(())
}

/// Tortures caches.
pub(crate) fn run(arguments: &Torture) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.out {
        target::check(path)?;
    }
    let options = options(arguments)?;
    let contestants = contestants(arguments)?;
    interrupt::watch()?;
    let mut results = arguments.out.as_ref().map(ResultsWriter::append).transpose()?;
    let run = Run::begin(NAME, command_line(), options.seed);
    for warning in run.program.warnings() {
        eprintln!("warning: {warning}");
    }
    let steps = options.steps() * contestants.len() as u64;
    let shown = Shown { progress: Progress::towards(steps, "torturing".to_owned()) };
    let outcome = torture(&options, &contestants, &run, results.as_mut(), &shown);
    shown.progress.finish();
    let outcome = outcome?;
    let samples = &outcome.samples;
    if arguments.json {
        let complete = outcome.is_complete;
        let unsupported: Vec<_> = outcome
            .unsupported
            .iter()
            .map(|(subject, case)| json!({ "subject": subject.as_str(), "case": case.name() }))
            .collect();
        output::json(&json!({
            "run": run,
            "complete": complete,
            "samples": samples,
            "unsupported": unsupported,
        }))?;
    } else if !samples.is_empty() {
        output::text(&text(samples, &outcome.unsupported))?;
    }
    if !outcome.is_complete {
        let finished = samples.len();
        bail!("interrupted; printed {finished} cases");
    }
    let is_wrong = samples.iter().any(|sample| sample.error.is_some());
    Ok(if is_wrong { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

fn options(arguments: &Torture) -> anyhow::Result<Options> {
    let quick = arguments.quick;
    if arguments.boots > 0 && !cfg!(feature = "test-hooks") {
        bail!(
            "--boots needs a build with test hooks; run: cargo build --release -p haypile-cli \
            --features test-hooks"
        );
    }
    let pick = |full: u64, small: u64| if quick { small } else { full };
    let directory = arguments.directory.clone().unwrap_or_else(|| {
        let memory = Path::new(MEMORY);
        if memory.is_dir() { memory.to_owned() } else { env::temp_dir() }
    });
    let directory = std::path::absolute(directory)?;
    let is_there = fs::metadata(&directory)
        .with_context(|| format!("cannot create caches in {}", directory.display()))?;
    if !is_there.is_dir() {
        bail!("cannot create caches in {}: not a directory", directory.display());
    }
    let size = arguments.size.map(|ByteSize(bytes)| bytes);
    let cases = if arguments.case.is_empty() { Case::ALL.to_vec() } else { arguments.case.clone() };
    Ok(Options {
        cases,
        seed: arguments.seed,
        capacity_bytes: size.unwrap_or(pick(32, 4) << 20),
        writers: arguments.writers,
        readers: arguments.readers,
        kills: arguments.kills.unwrap_or(pick(1_000, 40)),
        life: Duration::from_millis(pick(60, 15)),
        stops: pick(10, 2),
        stop: arguments.stop.unwrap_or(Duration::from_millis(pick(2_000, 200))),
        massacres: pick(50, 3),
        takeovers: pick(50, 3),
        tolerance: (!quick).then_some(0.01),
        boots: arguments.boots,
        timeout: arguments.timeout,
        directory,
    })
}

/// Returns every subject with its runner.
fn contestants(arguments: &Torture) -> anyhow::Result<Vec<Contestant>> {
    let own = env::current_exe().context("cannot find this program's own file")?;
    let own = Arc::new(Runner::haypile(own, OWN_LABEL));
    let rivals = rivals(&arguments.rivals)?;
    let default = ["file".parse::<SubjectSpec>().expect("a valid name")];
    let subjects =
        if arguments.subjects.is_empty() { &default[..] } else { &arguments.subjects[..] };
    let contestant = |subject: &SubjectSpec| {
        if role::OURS.contains(&subject.name()) {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            let runner = Arc::clone(&own);
            let language = "rust".to_owned();
            return Ok(Contestant { subject: subject.clone(), runner, version, language });
        }
        for rival in &rivals {
            if let Some(listed) = rival.subjects.iter().find(|one| one.name == subject.name()) {
                return Ok(Contestant {
                    subject: subject.clone(),
                    runner: Arc::clone(&rival.runner),
                    version: listed.version.clone(),
                    language: listed.language.clone(),
                });
            }
        }
        bail!(
            "unknown subject '{}' (known: file); --rivals PROGRAM adds those of a runner",
            subject.name()
        )
    };
    subjects.iter().map(contestant).collect()
}

fn text(samples: &[Sample], unsupported: &[(SubjectSpec, Case)]) -> String {
    let header = [
        "Case",
        "Subject",
        "Kills",
        "Acknowledged",
        "Compared",
        "Lost",
        "Wrong",
        "Failed",
        "Busy",
        "Hits",
        "Write ms",
        "Read ms",
        "Open ms",
    ];
    let header = header.map(str::to_owned);
    let rows: Vec<_> = samples.iter().map(row).collect();
    let mut text =
        format!("Times are the longest of a single operation\n{}", table(&header, 2, 2, &rows));
    for sample in samples {
        if let Some(error) = &sample.error {
            text = format!("{text}{} on {}: {error}\n", sample.subject.name, name(sample));
        }
        let count = |name: &str| sample.counts.get(name).copied().unwrap_or(0);
        if sample.error.is_none() && sample.case == Case::Compute.name() {
            text = format!(
                "{text}{}: others took over {} computations, the slowest after {} ms\n",
                sample.subject.name,
                count("taken_over"),
                millis(count("longest_takeover_ns")),
            );
        }
    }
    for (subject, case) in unsupported {
        text = format!("{text}{subject} cannot do {case}\n");
    }
    text
}

/// Returns the name of the case, and whether it is a control.
fn name(sample: &Sample) -> String {
    let is_control = sample.parameters.get("kills").is_some_and(|kills| kills == 0);
    if is_control { format!("{} without kills", sample.case) } else { sample.case.clone() }
}

fn row(sample: &Sample) -> Vec<String> {
    let count = |name: &str| sample.counts.get(name).copied().unwrap_or(0);
    let whole = |name: &str| grouped(count(name));
    let time = |name: &str| {
        if count(name) == 0 { NOTHING.to_owned() } else { millis(count(name)) }
    };
    let reads = sample.hits + sample.misses;
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    let hits = if reads == 0 || sample.case != Case::Evict.name() {
        NOTHING.to_owned()
    } else {
        ratio(sample.hits as f64 / reads as f64)
    };
    vec![
        name(sample),
        sample.subject.name.clone(),
        whole("kills"),
        whole("acknowledged"),
        whole("compared"),
        whole("lost"),
        whole("wrong"),
        whole("failed"),
        whole("busy"),
        hits,
        time("longest_write_ns"),
        time("longest_read_ns"),
        time("longest_open_ns"),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "times for people")]
fn millis(nanos: u64) -> String {
    format!("{:.1}", nanos as f64 / 1e6)
}

/// Watcher that shows progress and listens to Ctrl-C.
struct Shown {
    progress: Progress,
}

impl Watcher for Shown {
    fn advance(&self, steps: u64) {
        self.progress.advance(steps);
    }

    fn finished(&self, _sample: &Sample) {}

    fn is_interrupted(&self) -> bool {
        interrupt::asked()
    }
}
