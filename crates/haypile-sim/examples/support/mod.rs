//! The arguments of examples that measure traces: `[FORMAT=]TRACE...`

use std::error::Error;
use std::path::Path;

use haypile_sim::Trace;
use haypile_sim::trace::format::{self, ReadOptions};
use haypile_sim::trace::{BuildOptions, TraceBuilder};

/// Reads the trace that an argument names; returns the name of its file as well.
pub(crate) fn named_trace(argument: &str) -> Result<(String, Trace), Box<dyn Error>> {
    let (format, path) = match argument.split_once('=') {
        Some((format, path)) => (Some(format.parse()?), Path::new(path)),
        None => (None, Path::new(argument)),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if path.extension().is_some_and(|extension| extension == "hpt") {
        return Ok((name, Trace::open(path)?));
    }
    let options = ReadOptions { format, ..ReadOptions::default() };
    let mut builder = TraceBuilder::new(BuildOptions::default());
    format::read(&[path], &options, &mut builder)?;
    Ok((name, builder.finish()?))
}
