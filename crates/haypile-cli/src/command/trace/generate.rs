//! `haypile trace generate`

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use haypile_sim::Trace;
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{BuildOptions, Key, Limit, Op, Request, Sink, TraceBuilder};

use crate::args::Generate;
use crate::output::progress::Progress;
use crate::{interrupt, output};

/// Requests written between two checks of the clock and of Ctrl-C.
const BLOCK_REQUESTS: u64 = 1 << 14;

/// Executes `haypile trace generate`: generates a synthetic trace.
pub(crate) fn run(arguments: &Generate) -> anyhow::Result<()> {
    if arguments.writes + arguments.deletes > 1.0 {
        bail!(
            "--writes and --deletes together exceed 100 % of the requests; make one of them smaller"
        );
    }
    let spec = Spec {
        mixture: arguments.pattern.clone(),
        requests: arguments.requests,
        seed: arguments.seed,
        sizes: arguments.sizes,
        writes: arguments.writes,
        deletes: arguments.deletes,
    };
    interrupt::watch()?;
    let Some(path) = arguments.output.as_deref().filter(|path| *path != Path::new("-")) else {
        let out = &mut BufWriter::new(io::stdout().lock());
        return write_csv(&spec, out, &Progress::silent());
    };
    output::target::check(path)?;
    let progress = Progress::towards(spec.requests, format!("writing {}", path.display()));
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("hpt") => write_hpt(&spec, path, progress),
        Some("csv") => {
            // A wrong pattern must not overwrite an existing file.
            spec.generator()?;
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            let written = write_csv(&spec, &mut BufWriter::new(file), &progress);
            progress.finish();
            written.with_context(|| path.display().to_string())
        }
        _ => bail!(
            "{}: the ending of the file to write is unknown (known: .hpt, .csv)",
            path.display()
        ),
    }
}

fn write_hpt(spec: &Spec, path: &Path, progress: Progress) -> anyhow::Result<()> {
    if spec.requests >= u64::from(u32::MAX) {
        bail!("{}: {}", path.display(), Limit::Requests);
    }
    let progress = Arc::new(progress);
    let (generating, shown) = (spec.clone(), Arc::clone(&progress));
    let trace = interrupt::unless_asked(move || build(&generating, &shown));
    progress.finish();
    let Some(trace) = trace else {
        bail!("generating the trace was interrupted; {} was not written", path.display());
    };
    trace?.write_to(path)?;
    Ok(())
}

fn build(spec: &Spec, progress: &Progress) -> anyhow::Result<Trace> {
    let options = BuildOptions { next_use: true, ..BuildOptions::default() };
    let mut builder = TraceBuilder::new(options);
    for (request, done) in spec.generator()?.zip(1_u64..) {
        builder.push(request)?;
        if done.is_multiple_of(BLOCK_REQUESTS) && !interrupt::asked() {
            progress.advance(BLOCK_REQUESTS);
        }
    }
    Ok(builder.finish()?)
}

/// Writes the requests, without columns that would have one value throughout.
fn write_csv(spec: &Spec, out: &mut dyn Write, progress: &Progress) -> anyhow::Result<()> {
    let generator = spec.generator()?;
    let has_ops = spec.writes > 0.0 || spec.deletes > 0.0;
    let has_sizes = spec.sizes.is_some();
    let header = match (has_ops, has_sizes) {
        (false, false) => "key",
        (false, true) => "key,size",
        (true, false) => "op,key",
        (true, true) => "op,key,size",
    };
    writeln!(out, "{header}")?;
    for (request, done) in generator.zip(1_u64..) {
        write_line(out, request, has_ops, has_sizes)?;
        if done.is_multiple_of(BLOCK_REQUESTS) {
            progress.advance(BLOCK_REQUESTS);
            if interrupt::asked() {
                out.flush()?;
                bail!(
                    "generating the trace was interrupted; {done} of {} requests were written",
                    spec.requests
                );
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn write_line(
    out: &mut dyn Write,
    request: Request<'_>,
    has_ops: bool,
    has_sizes: bool,
) -> io::Result<()> {
    if has_ops {
        let op = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Delete => "delete",
        };
        write!(out, "{op},")?;
    }
    match request.key {
        Key::Number(number) => write!(out, "{number}")?,
        Key::Text(text) => out.write_all(text)?,
    }
    match request.size_bytes {
        Some(size) => writeln!(out, ",{size}"),
        // A deletion. Every line has a number, so that any program reads the column.
        None if has_sizes => writeln!(out, ",0"),
        None => writeln!(out),
    }
}
