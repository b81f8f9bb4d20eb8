//! `haypile lab first`

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use haypile_lab::experiment::topics;
use haypile_lab::first::{self, Step};
use haypile_lab::report;
use haypile_measure::result::{self, Machine, Sample};

use super::child::wait;
use super::experiment;
use crate::args::lab::First;
use crate::output::note;
use crate::output::progress::Progress;
use crate::output::{self, target};
use crate::{FAILURE, NEGATIVE, interrupt};

/// Executes `haypile lab first`: runs a few short experiments, and prints each answer as soon as it
/// is known.
pub(crate) fn run(arguments: &First) -> anyhow::Result<ExitCode> {
    if let Some(out) = &arguments.out {
        target::check(out)?;
    }
    interrupt::watch()?;
    let program = env::current_exe().context("cannot find this program's own file")?;
    let place = tempfile::tempdir()?;
    let rows = place.path().join("first.jsonl");
    let here = Machine::here();
    if !arguments.json {
        output::text(&first::machine(&here))?;
    }
    let (others, notes) = first::others();
    for note in notes {
        note!("{note}");
    }
    let progress = Progress::towards(Step::ALL.len() as u64, "taking a first look".to_owned());
    let mut codes = Vec::new();
    for step in Step::ALL {
        if let Some(command) = step.command(&others) {
            codes.push(measure(&program, &command, &rows)?);
        }
        progress.advance(1);
        if interrupt::asked() {
            break;
        }
        if !arguments.json {
            let samples = samples(&rows)?;
            if step == Step::Others {
                let text = experiment::text(&first::table(&samples, here.cores));
                output::text(&format!("\n{text}\n"))?;
            }
            output::text(&first::line(step, &samples).unwrap_or_default())?;
        }
    }
    progress.finish();
    if let Some(out) = &arguments.out {
        append(&rows, out).with_context(|| out.display().to_string())?;
    }
    if interrupt::asked() {
        bail!(
            "{}",
            if arguments.json { "interrupted" } else { "interrupted; what was measured is above" }
        );
    }
    if arguments.json {
        output::json(&report::read(&[rows])?.findings(&topics()).to_json())?;
    } else {
        output::text(
            "\nAll experiments, in a few minutes: haypile lab all --quick --output results\n",
        )?;
    }
    let worst = [FAILURE, NEGATIVE].into_iter().find(|code| codes.contains(code));
    Ok(worst.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Runs a command of the laboratory, which adds its rows to a file, and returns its status. It is silent unless it
/// fails.
fn measure(program: &Path, command: &[String], rows: &Path) -> anyhow::Result<u8> {
    let said = rows.with_extension("txt");
    let child = Command::new(program)
        .arg("lab")
        .args(command)
        .arg("--out")
        .arg(rows)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&said)?)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let code = wait(child)?;
    if ![0, NEGATIVE].contains(&code) && !interrupt::asked() {
        let said = fs::read_to_string(&said).unwrap_or_default();
        note!("haypile lab {} failed: {}", command.join(" "), said.trim());
    }
    Ok(code)
}

fn samples(rows: &Path) -> anyhow::Result<Vec<Sample>> {
    Ok(if rows.exists() { result::read(rows)?.samples } else { Vec::new() })
}

fn append(rows: &Path, out: &Path) -> anyhow::Result<()> {
    // Without a row there is no file.
    let rows = if rows.exists() { fs::read(rows)? } else { Vec::new() };
    OpenOptions::new().create(true).append(true).open(out)?.write_all(&rows)?;
    Ok(())
}
