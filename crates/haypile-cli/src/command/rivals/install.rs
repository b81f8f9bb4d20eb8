//! `haypile rivals install`

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use haypile_measure::rival::{Rival, Rivals};

use crate::args::rivals::Install;
use crate::{NEGATIVE, output};

/// Executes `haypile rivals install`: installs rivals (other caches to compare with), and prints
/// which of them run afterwards.
pub(crate) fn run(arguments: &Install) -> anyhow::Result<ExitCode> {
    let rivals = Rivals::find(arguments.place.checkout.as_deref())?;
    let chosen = rivals.named(&arguments.names)?;
    let mut failed = Vec::new();
    for target in targets(&chosen) {
        output::text(&format!("make -C {} {target}\n", rivals.checkout().display()))?;
        let mut make = Command::new("make");
        make.arg("--no-print-directory").arg("-C").arg(rivals.checkout()).arg(target);
        if !make.status().context("cannot start make; install it")?.success() {
            failed.push(target);
        }
    }
    if !failed.is_empty() {
        bail!("make could not install {}; its output above names the cause", failed.join(", "));
    }
    let mut status = ExitCode::SUCCESS;
    for (rival, state) in super::states(&chosen, || false) {
        if let Some(why) = state.why_not() {
            status = ExitCode::from(NEGATIVE);
            output::text(&format!("{}\n", super::advice(rival, why)))?;
        } else {
            output::text(&format!("{}: runs\n", rival.name()))?;
        }
    }
    Ok(status)
}

/// Returns each target once, in the order of the rivals.
fn targets<'a>(rivals: &[&'a Rival]) -> Vec<&'a str> {
    let mut targets = Vec::new();
    for rival in rivals {
        let target = rival.manifest().make.as_str();
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}
