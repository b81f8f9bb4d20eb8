//! Runs the experiments of `haypile lab` on a terminal.

use std::path::Path;
use std::process::ExitCode;

use haypile_lab::experiment::{Block, Ended, Host, Printout};
use haypile_measure::measure::Watcher;
use haypile_sim::Trace;
use haypile_sim::trace::format::Format;
use parking_lot::Mutex;
use serde_json::Value;

use crate::args::Reading;
use crate::args::lab::ExperimentCommand;
use crate::output::note;
use crate::output::progress::Progress;
use crate::output::table::fitting_table;
use crate::output::{self, target};
use crate::{NEGATIVE, input, interrupt};

/// Runs an experiment of the laboratory. The exit status is 1 if some of its results are errors.
pub(crate) fn run(arguments: &ExperimentCommand) -> anyhow::Result<ExitCode> {
    // Before the first folder or server is there, which have to be removed.
    interrupt::watch()?;
    let ended = arguments.experiment.run(&arguments.line, &Terminal::default())?;
    Ok(match ended {
        Ended::Well => ExitCode::SUCCESS,
        Ended::WithErrors => ExitCode::from(NEGATIVE),
    })
}

/// The terminal of this program, on which an experiment shows its progress and results.
#[derive(Default)]
pub(crate) struct Terminal {
    progress: Mutex<Option<Progress>>,
}

impl Watcher for Terminal {
    fn advance(&self, steps: u64) {
        if let Some(progress) = &*self.progress.lock() {
            progress.advance(steps);
        }
    }

    fn is_interrupted(&self) -> bool {
        interrupt::asked()
    }
}

impl Host for Terminal {
    fn begin(&self, steps: u64, what: String) -> anyhow::Result<()> {
        interrupt::watch()?;
        *self.progress.lock() = Some(Progress::towards(steps, what));
        Ok(())
    }

    fn finish(&self) {
        if let Some(progress) = self.progress.lock().take() {
            progress.finish();
        }
    }

    fn note(&self, line: &str) {
        note!("{line}");
    }

    fn check_output(&self, path: &Path) -> anyhow::Result<()> {
        target::check(path)
    }

    fn print(&self, printout: &Printout) -> anyhow::Result<()> {
        output::text(&text(printout))?;
        Ok(())
    }

    fn print_json(&self, value: &Value) -> anyhow::Result<()> {
        output::json(value)
    }

    fn trace(&self, path: &Path, format: Option<Format>) -> anyhow::Result<(String, Trace)> {
        let reading = Reading { format, ..Reading::default() };
        let paths = [path.to_owned()];
        let trace = input::open(&paths, &reading, input::Wanted::default())?;
        Ok((input::name(&paths), trace))
    }
}

/// Returns a printout as text, with its tables as wide as the terminal allows.
pub(super) fn text(printout: &Printout) -> String {
    let block = |block: &Block| match block {
        Block::Text(text) => text.clone(),
        Block::Table { header, text_columns, key_columns, rows, spare_columns } => {
            fitting_table(header, *text_columns, *key_columns, rows, spare_columns)
        }
    };
    printout.blocks().iter().map(block).collect()
}
