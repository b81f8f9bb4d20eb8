//! `haypile lab all`

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

use anyhow::{Context, bail};
use haypile_lab::experiment::ExperimentFile;

use crate::args::lab::All;
use crate::output::progress::Progress;
use crate::output::target;
use crate::{FAILURE, NEGATIVE, interrupt, output};

/// Does every experiment, each by this program in a process of its own.
pub(crate) fn run(arguments: &All) -> anyhow::Result<ExitCode> {
    let files = chosen(&arguments.only)?;
    let directory = &arguments.output;
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("{shown}: cannot be made"))?;
    interrupt::watch()?;
    let program = env::current_exe().context("this program cannot find itself")?;
    let progress = Progress::towards(files.len() as u64, "measuring everything".to_owned());
    let mut status = ExitCode::SUCCESS;
    let mut has_failed = false;
    for file in files {
        let name = &file.experiment;
        let results = directory.join(format!("{name}.jsonl"));
        // Results are appended; what an earlier run has left would be mixed with these.
        remove(&results)?;
        target::check(&results)?;
        let text = directory.join(format!("{name}.txt"));
        let mut command = Command::new(&program);
        command.args(["lab", name, "--out"]).arg(&results);
        command.args(arguments.quick.then_some("--quick"));
        // It is about files that processes share, and names no others.
        command.args((arguments.embedded && name != "torture").then_some("--embedded"));
        command.stdout(File::create(&text).with_context(|| text.display().to_string())?);
        let begin = Instant::now();
        let ended = command.status().with_context(|| format!("{name} cannot be started"))?;
        progress.advance(1);
        let (outcome, code) = outcome(ended);
        output::text(&format!(
            "{name:<10} {:>5.1} s  {outcome}: {}\n",
            begin.elapsed().as_secs_f64(),
            text.display()
        ))?;
        has_failed |= code == Some(FAILURE);
        if code == Some(NEGATIVE) {
            status = ExitCode::from(NEGATIVE);
        }
        if interrupt::asked() {
            bail!("interrupted; what is finished is in {shown}");
        }
    }
    progress.finish();
    Ok(if has_failed { ExitCode::from(FAILURE) } else { status })
}

/// The experiments of these names, or all.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static ExperimentFile>> {
    let all = ExperimentFile::all();
    if let Some(name) = names.iter().find(|name| ExperimentFile::built_in(name).is_none()) {
        let allowed: Vec<_> = all.iter().map(|file| file.experiment.as_str()).collect();
        bail!("'{name}' is no experiment; there are {}", allowed.join(", "));
    }
    let is_chosen = |file: &&ExperimentFile| names.is_empty() || names.contains(&file.experiment);
    Ok(all.iter().filter(is_chosen).collect())
}

fn outcome(ended: ExitStatus) -> (&'static str, Option<u8>) {
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    let text = match code {
        Some(0) => "done",
        Some(NEGATIVE) => "done, with errors",
        _ => "failed",
    };
    (text, code.or(Some(FAILURE)))
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("{}: cannot be replaced", path.display())),
    }
}
