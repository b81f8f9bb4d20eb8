//! `haypile trace generate`

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{BuildOptions, Key, Op, TraceBuilder};

use crate::args::Generate;
use crate::interrupt;

/// Requests written between two looks at Ctrl-C.
const BLOCK_REQUESTS: usize = 1 << 14;

/// Makes a trace up.
pub(crate) fn run(arguments: &Generate) -> anyhow::Result<()> {
    let spec = Spec {
        mixture: arguments.pattern.clone(),
        requests: arguments.requests,
        seed: arguments.seed,
        sizes: arguments.sizes,
        writes: arguments.writes,
        deletes: arguments.deletes,
    };
    let Some(path) = &arguments.output else {
        return write_csv(&spec, &mut BufWriter::new(io::stdout().lock()));
    };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("hpt") => write_hpt(&spec, path),
        Some("csv") => {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            write_csv(&spec, &mut BufWriter::new(file))
        }
        _ => bail!("{}: the name has to end in .hpt or .csv", path.display()),
    }
}

fn write_hpt(spec: &Spec, path: &Path) -> anyhow::Result<()> {
    let options = BuildOptions { next_use: true, ..BuildOptions::default() };
    let mut builder = TraceBuilder::new(options);
    spec.generator()?.run(&mut builder)?;
    builder.finish()?.write_to(path)?;
    Ok(())
}

/// Columns that say nothing are left out.
fn write_csv(spec: &Spec, out: &mut dyn Write) -> anyhow::Result<()> {
    let generator = spec.generator()?;
    interrupt::watch()?;
    let has_ops = spec.writes > 0.0 || spec.deletes > 0.0;
    let header = match (has_ops, spec.sizes.is_some()) {
        (false, false) => "key",
        (false, true) => "key,size",
        (true, false) => "op,key",
        (true, true) => "op,key,size",
    };
    writeln!(out, "{header}")?;
    for (at, request) in generator.enumerate() {
        if at % BLOCK_REQUESTS == 0 && interrupt::asked() {
            bail!("interrupted after {at} requests");
        }
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
            Some(size) => writeln!(out, ",{size}")?,
            None if spec.sizes.is_some() => writeln!(out, ",")?,
            None => writeln!(out)?,
        }
    }
    out.flush()?;
    Ok(())
}
