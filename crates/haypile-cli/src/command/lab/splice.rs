//! `haypile lab splice`

use std::process::ExitCode;

use crate::args::lab::Splice;

pub(crate) fn run(_arguments: &Splice) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
