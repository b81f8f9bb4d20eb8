//! `haypile trace convert`

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, bail};
use haypile_sim::trace::{Op, TraceError};

use crate::args::Convert;
use crate::output::note;
use crate::output::number::grouped;
use crate::{input, interrupt, output};

/// Ending of the prepared form.
const HPT: &str = ".hpt";

/// Ending of the form that libCacheSim reads.
const ORACLE_GENERAL: &str = ".oracleGeneral.bin";

/// Executes `haypile trace convert`: converts a trace to another format.
pub(crate) fn run(arguments: &Convert) -> anyhow::Result<()> {
    let target = &arguments.target;
    let name = target.to_string_lossy();
    let is_hpt = name.ends_with(HPT);
    if !is_hpt && !name.ends_with(ORACLE_GENERAL) {
        bail!(
            "{name}: the last path names the file to write, and has to end in {HPT} or \
             {ORACLE_GENERAL}"
        );
    }
    output::target::check(target)?;
    interrupt::watch()?;
    let next_use = is_hpt && !arguments.no_next_use;
    let wanted = input::Wanted { part: arguments.part, next_use };
    let trace = input::open(&arguments.traces, &arguments.reading, wanted)?;
    if is_hpt {
        trace.write_to(target)?;
    } else {
        // Checked before an existing file is overwritten.
        let is_delete = |number: &u8| Op::from_number(*number) == Op::Delete;
        if trace.ops().is_some_and(|ops| ops.iter().all(is_delete)) {
            return Err(TraceError::OnlyDeletes).context(name.into_owned());
        }
        let file = File::create(target).with_context(|| format!("cannot write {name}"))?;
        let losses = trace
            .write_oracle_general(&mut BufWriter::new(file))
            .context(name.clone().into_owned())?;
        for loss in losses.describe() {
            note!("haypile: {name}: {loss}");
        }
    }
    let written = if let Some(sample) = trace.sampled() {
        format!("{sample}, of {} requests", grouped(trace.whole_requests()))
    } else {
        let keys = grouped(u64::from(trace.keys()));
        format!("{} requests for {keys} keys", grouped(trace.requests() as u64))
    };
    output::text(&format!("{name}: {written}\n"))?;
    Ok(())
}
