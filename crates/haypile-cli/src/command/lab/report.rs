//! `haypile lab report`

use std::fs;
use std::path::Path;

use anyhow::Context;
use haypile_lab::experiment::topics;
use haypile_lab::report::{self, Plot};

use crate::args::lab::Report;
use crate::output::note;
use crate::output::{self, target};

/// Name of standard output.
const STDOUT: &str = "-";

/// Executes `haypile lab report`: writes the HTML page and the requested plots, and prints their
/// paths. It renders everything before it writes anything.
pub(crate) fn run(arguments: &Report) -> anyhow::Result<()> {
    if arguments.findings {
        let input = report::read(&arguments.results)?;
        for warning in input.warnings() {
            note!("warning: {warning}");
        }
        return output::json(&input.findings(&topics()).to_json());
    }
    let is_stdout = arguments.output.as_os_str() == STDOUT;
    if !is_stdout {
        target::check(&arguments.output)?;
    }
    let report = report::Report::new(&report::read(&arguments.results)?, &topics());
    let page = report.html()?;
    if let Some(directory) = &arguments.plots {
        let plots = report.plots()?;
        write_plots(&plots, directory).with_context(|| directory.display().to_string())?;
        if !is_stdout {
            output::text(&format!("{}: {} files\n", directory.display(), plots.len()))?;
        }
    }
    if is_stdout {
        output::text(&page)?;
    } else {
        let name = arguments.output.display();
        target::replace(&arguments.output, page.as_bytes())?;
        output::text(&format!("{name}\n"))?;
    }
    Ok(())
}

fn write_plots(plots: &[Plot], directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    for plot in plots {
        target::replace(&directory.join(format!("{}.svg", plot.name)), plot.svg.as_bytes())?;
    }
    Ok(())
}
