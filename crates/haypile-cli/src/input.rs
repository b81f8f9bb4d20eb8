//! Opens traces by the arguments of a command.

mod source;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use haypile_sim::Trace;
use haypile_sim::simulate::SizeRule;
use haypile_sim::trace::format::{Format, ReadOptions, ReadReport, RecordingSummary};
use haypile_sim::trace::{
    BuildOptions, KeyCountPass, Request, Sampling, Sink, TraceBuilder, TraceError,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{Part, Reading, SampleArgument};
use crate::interrupt;
use crate::output::note;
use crate::output::progress::Progress;
use source::Source;

/// Requests read between two checks of the clock and of Ctrl-C.
const BLOCK_REQUESTS: u64 = 1 << 14;

/// Name of standard input among the paths.
const STANDARD_INPUT: &str = "-";

/// Checks the paths of all trace files before the first is read, so that a wrong path is found at
/// once.
pub(crate) fn check(paths: &[PathBuf]) -> anyhow::Result<()> {
    let mut has_standard_input = false;
    for path in paths {
        if path == Path::new(STANDARD_INPUT) {
            if has_standard_input {
                return Err(TraceError::StandardInputTwice.into());
            }
            has_standard_input = true;
        } else if path.metadata().with_context(|| path.display().to_string())?.is_dir() {
            return Err(TraceError::Directory { path: path.clone() }.into());
        }
    }
    Ok(())
}

/// Files that are open for other reasons than traces, and more.
const OTHER_FILES: u64 = 64;

/// Raises the soft limit on open files as far as it goes, where it is too low: files that are merged by time
/// are all open at once.
fn allow_open(files: usize) {
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |most: u64| most >= files as u64 + OTHER_FILES;
    if !limit.current.is_none_or(is_enough) {
        // Where it cannot be raised, opening a file says why it failed.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// The form in which a command wants a trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// The part of the trace that is read: all, or a sample of its keys.
    pub(crate) part: Part,
    /// Whether the trace gets a column that states when each key is requested next.
    pub(crate) next_use: bool,
}

/// Facts about a trace that are not in its requests, such as the summary of a recording.
pub(crate) struct Origin {
    /// The summary of the recording, if the trace was recorded by a cache (`record=`).
    pub(crate) recording: Option<RecordingSummary>,
    /// The trace's default rule for reads whose key had a value of another size before: hits of the
    /// first or last size, or misses.
    pub(crate) sizes: SizeRule,
}

/// Reads trace files as one trace, or a sample of it, and applies the sizes and writes that the
/// arguments assume.
pub(crate) fn open(paths: &[PathBuf], reading: &Reading, wanted: Wanted) -> anyhow::Result<Trace> {
    open_with_origin(paths, reading, wanted).map(|(trace, _)| trace)
}

/// Opens a trace as [`open`] does, and also returns facts that are not in its requests.
pub(crate) fn open_with_origin(
    paths: &[PathBuf],
    reading: &Reading,
    wanted: Wanted,
) -> anyhow::Result<(Trace, Origin)> {
    check(paths)?;
    allow_open(paths.len());
    let name = name(paths);
    let progress = Arc::new(Progress::counting(format!("reading {name}"), "requests"));
    let (paths, options, seed) = (paths.to_vec(), reading.options(), reading.seed);
    let own = Arc::clone(&progress);
    let trace = interrupt::unless_asked(move || read(&paths, &options, wanted, seed, &own));
    progress.finish();
    let Some(trace) = trace else {
        bail!("reading the trace {name} was interrupted; there is no result")
    };
    let (mut trace, report) = trace?;
    if let Some(report) = &report {
        report_bad(report);
    }
    if trace.requests() == 0 {
        match trace.sample_of() {
            Some(sample) => {
                bail!(
                    "{name}: a sample of {} of the keys contains no request; take a larger sample",
                    sample.rate()
                )
            }
            None => bail!("the trace {name} contains no request; name another file"),
        }
    }
    if let Some(sizes) = &reading.assume_size {
        trace = trace.assume_sizes(sizes, reading.seed)?;
    }
    if let Some(share) = reading.assume_writes {
        trace = trace.assume_writes(share, reading.seed)?;
    }
    // A recording has what a program was given. What a server sent differs by a date or a token as well: the
    // same value for a cache. Of others it is not known what another size means. Drawn sizes mean nothing.
    let sizes = match report.as_ref().map(|report| report.format) {
        _ if reading.assume_size.is_some() => SizeRule::First,
        Some(format) if format.is_web_log() => SizeRule::Last,
        Some(Format::Recording) => SizeRule::Changed,
        _ => SizeRule::First,
    };
    Ok((trace, Origin { recording: report.and_then(|report| report.recording), sizes }))
}

/// Returns the names of several traces for messages: file names, or paths if file names are equal.
pub(crate) fn names(inputs: &[&[PathBuf]]) -> Vec<String> {
    let names: Vec<String> = inputs.iter().map(|paths| name(paths)).collect();
    let inputs_by_name = || inputs.iter().zip(&names);
    let longer = |(paths, name): (&&[PathBuf], &String)| match paths {
        [path] if inputs_by_name().any(|(others, other)| other == name && others != paths) => {
            path.display().to_string()
        }
        _ => name.clone(),
    };
    inputs_by_name().map(longer).collect()
}

/// Returns the name of the trace in these files for messages, such as `a.csv and 2 more`.
pub(crate) fn name(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| match path.file_name() {
        _ if path == Path::new(STANDARD_INPUT) => "standard input".to_owned(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    };
    match paths {
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
        [] => String::new(),
    }
}

/// Reads the trace, with a report if it is read request by request.
fn read(
    paths: &[PathBuf],
    options: &ReadOptions,
    wanted: Wanted,
    seed: u64,
    progress: &Progress,
) -> anyhow::Result<(Trace, Option<ReadReport>)> {
    let source = match wanted.part.sample {
        Some(SampleArgument::Keys(_)) => Source::again_and_again(paths)?,
        _ => Source::once(paths),
    };
    let reader = source.open(options)?;
    if reader.format() == Format::Hpt {
        if paths.len() > 1 {
            bail!(
                "an .hpt file cannot be joined with others; convert the original traces together"
            );
        }
        let Some(path) = source.only_path() else {
            bail!(
                "an .hpt file cannot be read from standard input or a pipe, because it is mapped into \
                 memory; name the file itself"
            );
        };
        let trace = Trace::open(path)?;
        let sampling = match wanted.part.sample {
            Some(SampleArgument::Share(rate)) => Some(Sampling::new(rate, seed)?),
            Some(SampleArgument::Keys(keys)) => {
                let mut pass = KeyCountPass::new(keys, seed);
                (0..trace.keys()).for_each(|id| pass.add(trace.key(id)));
                pass.sampling()
            }
            Some(SampleArgument::Whole) | None => None,
        };
        let sample = sampling.map(|sampling| trace.sample(sampling)).transpose()?;
        return Ok((sample.unwrap_or(trace), None));
    }
    let (reader, sampling) = match wanted.part.sample {
        Some(SampleArgument::Keys(keys)) => {
            let mut first = Watched::new(KeyCountPass::new(keys, seed), progress);
            reader.read(&mut first)?;
            (source.open(options)?, first.sink.sampling())
        }
        Some(SampleArgument::Share(rate)) => (reader, Some(Sampling::new(rate, seed)?)),
        Some(SampleArgument::Whole) | None => (reader, None),
    };
    let build = BuildOptions { next_use: wanted.next_use, sampling, ..BuildOptions::default() };
    let mut builder = Watched::new(TraceBuilder::new(build), progress);
    let report = reader.read(&mut builder)?;
    let trace = builder.sink.finish().context("the trace does not fit into memory")?;
    Ok((trace, Some(report)))
}

/// Reports on standard error what was skipped or cut off, so that a pipe stays clean.
fn report_bad(report: &ReadReport) {
    for note in &report.notes {
        note!("haypile: {note}");
    }
    let entries = match report.bad {
        0 => return,
        1 => "1 bad entry".to_owned(),
        bad => format!("{bad} bad entries"),
    };
    note!("haypile: skipped {entries} of {}:", report.format);
    for bad in &report.first_bad {
        note!("  {bad}");
    }
}

/// A sink that reports progress and listens to Ctrl-C.
struct Watched<'a, S> {
    sink: S,
    progress: &'a Progress,
    unreported: u64,
}

impl<'a, S> Watched<'a, S> {
    fn new(sink: S, progress: &'a Progress) -> Self {
        Self { sink, progress, unreported: 0 }
    }
}

impl<S: Sink> Sink for Watched<'_, S> {
    fn push(&mut self, request: Request<'_>) -> Result<(), TraceError> {
        self.unreported += 1;
        if self.unreported == BLOCK_REQUESTS {
            // The command no longer waits for this trace, and a bar would be drawn over the results.
            if interrupt::asked() {
                return Err(TraceError::Interrupted);
            }
            self.progress.advance(self.unreported);
            self.unreported = 0;
        }
        self.sink.push(request)
    }
}
