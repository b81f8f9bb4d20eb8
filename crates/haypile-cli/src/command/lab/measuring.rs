//! Common parts of all experiments: contenders, results, progress, and exit status.

pub(crate) mod contenders;
pub(crate) mod installed;
pub(crate) mod table;

use std::path::Path;
use std::process::ExitCode;
use std::{env, io, slice};

use anyhow::{Context, bail};
use haypile_lab::experiment::Places;
use haypile_lab::measure::{
    Case, Contender, Limits, NextCase, Observer, Outcome, Plan, Surroundings, measure,
};
use haypile_lab::result::{ResultsWriter, Run, Sample};
use haypile_lab::subject::SubjectSpec;
use serde_json::json;

use crate::args::lab::Measuring;
use crate::output::progress::Progress;
use crate::output::target;
use crate::{NEGATIVE, interrupt, output};

/// Measures the cases of an experiment and prints the text that `show` makes of the results. The
/// status is a negative answer if a measurement ended in an error.
pub(crate) fn run(
    experiment: &str,
    cases: Vec<Case>,
    subjects: &[SubjectSpec],
    arguments: &Measuring,
    show: impl Fn(&[Sample], &[Contender]) -> String,
) -> anyhow::Result<ExitCode> {
    run_adaptive(experiment, cases, None, subjects, arguments, show)
}

/// As [`run`], and then measures the cases that `then` asks for.
pub(crate) fn run_adaptive(
    experiment: &str,
    cases: Vec<Case>,
    then: Option<NextCase>,
    subjects: &[SubjectSpec],
    arguments: &Measuring,
    show: impl Fn(&[Sample], &[Contender]) -> String,
) -> anyhow::Result<ExitCode> {
    let places = Box::new(places(arguments, Places::new)?);
    let contenders = contenders::all(arguments, subjects)?;
    let plan = plan(cases, contenders, arguments, places);
    carry_out(experiment, &Plan { then, ..plan }, arguments, show)
}

/// As [`run`], with `surroundings` instead of an empty directory for each sample.
pub(crate) fn run_at(
    experiment: &str,
    cases: Vec<Case>,
    subjects: &[SubjectSpec],
    arguments: &Measuring,
    surroundings: Box<dyn Surroundings>,
    show: impl Fn(&[Sample], &[Contender]) -> String,
) -> anyhow::Result<ExitCode> {
    let contenders = contenders::all(arguments, subjects)?;
    carry_out(experiment, &plan(cases, contenders, arguments, surroundings), arguments, show)
}

fn plan(
    cases: Vec<Case>,
    contenders: Vec<Contender>,
    arguments: &Measuring,
    surroundings: Box<dyn Surroundings>,
) -> Plan {
    Plan {
        cases,
        then: None,
        contenders,
        blocks: arguments.blocks,
        seed: arguments.seed,
        limits: Limits { prepare: arguments.timeout, timed: arguments.timeout },
        surroundings: Some(surroundings),
    }
}

fn carry_out(
    experiment: &str,
    plan: &Plan,
    arguments: &Measuring,
    show: impl Fn(&[Sample], &[Contender]) -> String,
) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.out {
        target::check(path)?;
    }
    interrupt::watch()?;
    let mut results = arguments.out.as_ref().map(ResultsWriter::append).transpose()?;
    let run = Run {
        asked: arguments.asked.clone(),
        ..Run::begin(experiment, command_line(), arguments.seed)
    };
    for warning in run.machine.warnings().iter().chain(&run.program.warnings()) {
        eprintln!("warning: {warning}");
    }
    let progress = Progress::towards(plan.samples(), format!("measuring {experiment}"));
    let mut shown = Shown::new(&progress);
    let measured = measure(plan, &run, results.as_mut(), &mut shown);
    progress.finish();
    // Finished results are printed even after an error.
    let samples = shown.samples;
    let is_complete = measured.as_ref().is_ok_and(|outcome| outcome.is_complete);
    if arguments.json {
        output::json(&json!({ "run": run, "complete": is_complete, "samples": samples }))?;
    } else if !samples.is_empty() {
        output::text(&show(&samples, &plan.contenders))?;
    }
    let Outcome { is_complete, .. } = measured?;
    if !is_complete {
        let kept = if results.is_some() { "printed and kept" } else { "printed" };
        let finished = samples.len();
        let all = match plan.then {
            // The total is not known.
            Some(_) => String::new(),
            None => format!(" of {}", plan.samples()),
        };
        bail!("interrupted; {kept} {finished}{all} measurements");
    }
    let has_errors = samples.iter().any(|sample| sample.error.is_some());
    Ok(if has_errors { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

/// Returns the subjects and programs of contenders, as standings take them.
pub(crate) fn names(contenders: &[Contender]) -> Vec<(String, String)> {
    let name =
        |contender: &Contender| (contender.subject.to_string(), contender.runner.label.clone());
    contenders.iter().map(name).collect()
}

/// Whether a sample is of this contender.
pub(crate) fn is_of(sample: &Sample, contender: &Contender) -> bool {
    sample.subject.name == contender.subject.as_str()
        && sample.subject.program == contender.runner.label
}

/// Makes places for runners in the chosen directory, or else in the system's for temporary files.
pub(crate) fn places<P>(
    arguments: &Measuring,
    make: impl FnOnce(&Path) -> io::Result<P>,
) -> anyhow::Result<P> {
    let directory = arguments.directory.clone().unwrap_or_else(env::temp_dir);
    let directory = std::path::absolute(directory)?;
    let places = make(&directory);
    places.with_context(|| format!("cannot write into {}", directory.display()))
}

/// Returns the command line, quoted for a shell.
pub(crate) fn command_line() -> String {
    let mut arguments = env::args_os().map(|word| word.to_string_lossy().into_owned());
    // The program's own path does not matter.
    let program = arguments.next().map(|_| "haypile".to_owned());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=%+@".contains(&byte);
    let quoted = arguments.map(|word| {
        let plain = !word.is_empty() && word.bytes().all(is_plain);
        if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    program.into_iter().chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Observer that shows progress, keeps finished samples, and listens to Ctrl-C.
pub(crate) struct Shown<'a> {
    progress: &'a Progress,
    pub(crate) samples: Vec<Sample>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(progress: &'a Progress) -> Self {
        Self { progress, samples: Vec::new() }
    }
}

impl Observer for Shown<'_> {
    fn finished(&mut self, sample: &Sample) {
        self.samples.extend_from_slice(slice::from_ref(sample));
        self.progress.advance(1);
    }

    fn is_interrupted(&self) -> bool {
        interrupt::asked()
    }
}
