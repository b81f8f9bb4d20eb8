//! Opens traces as the arguments say.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use haypile_sim::Trace;
use haypile_sim::trace::format::{Format, ReadReport, TraceReader};
use haypile_sim::trace::{BuildOptions, Request, Sink, TraceBuilder, TraceError};

use crate::args::Reading;
use crate::interrupt;
use crate::output::progress::Progress;

/// Requests read between two looks at the clock and at Ctrl-C.
const BLOCK_REQUESTS: u64 = 1 << 14;

/// Reads `paths` as one trace, and adds what the arguments assume.
pub(crate) fn open(paths: &[PathBuf], reading: &Reading, next_use: bool) -> anyhow::Result<Trace> {
    let mut trace = read(paths, reading, next_use)?;
    if let Some(sizes) = &reading.assume_size {
        trace = trace.assume_sizes(sizes, reading.seed)?;
    }
    if let Some(share) = reading.assume_writes {
        trace = trace.assume_writes(share, reading.seed)?;
    }
    Ok(trace)
}

/// What people call these inputs.
pub(crate) fn name(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| match path.file_name() {
        _ if path == Path::new("-") => "standard input".to_owned(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    };
    match paths {
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
        [] => String::new(),
    }
}

fn read(paths: &[PathBuf], reading: &Reading, next_use: bool) -> anyhow::Result<Trace> {
    let reader = TraceReader::open(paths, &reading.options())?;
    if reader.format() == Format::Hpt {
        let [path] = paths else {
            bail!("an .hpt file is a whole trace; several cannot be joined into one");
        };
        return Ok(Trace::open(path)?);
    }
    let builder = TraceBuilder::new(BuildOptions { next_use, ..BuildOptions::default() });
    let progress = Progress::counting(format!("reading {}", name(paths)), "requests");
    let mut sink = Watched { builder, progress, unreported: 0, interrupted: false };
    let report = match reader.read(&mut sink) {
        Err(_) if sink.interrupted => bail!("interrupted while reading; nothing was simulated yet"),
        report => report?,
    };
    sink.progress.finish();
    report_bad(&report);
    sink.builder.finish().context("the trace cannot be held")
}

/// Says how many lines were skipped, on standard error, so that a pipe stays clean.
fn report_bad(report: &ReadReport) {
    if report.bad > 0 {
        eprintln!("haypile: skipped {} bad entries of {}:", report.bad, report.format);
        for bad in &report.first_bad {
            eprintln!("  {bad}");
        }
    }
}

/// A builder that reports progress and listens to Ctrl-C.
struct Watched {
    builder: TraceBuilder,
    progress: Progress,
    unreported: u64,
    interrupted: bool,
}

impl Sink for Watched {
    fn push(&mut self, request: Request<'_>) -> Result<(), TraceError> {
        self.unreported += 1;
        if self.unreported == BLOCK_REQUESTS {
            self.progress.advance(self.unreported);
            self.unreported = 0;
            if interrupt::asked() {
                self.interrupted = true;
                return Err(TraceError::Interrupted);
            }
        }
        self.builder.push(request)
    }
}
