//! `icons`: what a shared cache of icons saves, and which part of it does.

mod game;
mod gtk;
mod loader;
mod measure;
mod options;
mod printout;
#[cfg(feature = "report")]
mod section;
mod theme;
mod way;

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command};
use serde_json::json;

pub use loader::serve;
pub use options::{IconSet, IconsOptions};

use super::fill::Filled;
use super::{Ended, Experiment, Host};
use crate::measure::Runner;
use crate::result::{Asked, ResultsWriter, Row, Run, command_line, disturbance_of};
use measure::{IconRun, Kept};
use theme::Theme;

/// Name of the experiment.
pub const NAME: &str = "icons";

/// The experiment.
pub(crate) struct IconsExperiment;

impl Experiment for IconsExperiment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Icons"
    }

    fn file(&self) -> &'static str {
        include_str!("icons.toml")
    }

    fn arguments(&self, command: Command) -> Command {
        IconsOptions::augment_args(command)
    }

    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        let filled = Filled::new(self, line)?;
        let options: IconsOptions = filled.get()?;
        let of_icons = ["theme", "icons", "size", "processes", "cold"];
        if options.set == IconSet::Game
            && let Some(other) = of_icons.into_iter().find(|it| filled.is_written(it))
        {
            bail!("--{other} is of icons; --set game has its own drawings and sizes");
        }
        run(&options, filled.asked, host)
    }

    #[cfg(feature = "report")]
    fn body(
        &self,
        samples: &crate::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(samples, cases)
    }
}

fn run(options: &IconsOptions, asked: Option<Asked>, host: &dyn Host) -> anyhow::Result<Ended> {
    if let Some(path) = &options.out {
        host.check_output(path)?;
    }
    let folder = std::path::absolute(options.directory.clone().unwrap_or_else(std::env::temp_dir))?;
    let scratch = tempfile::Builder::new().prefix("haypile-icons-").tempdir_in(&folder);
    let scratch =
        scratch.with_context(|| format!("no folder can be created in {}", folder.display()))?;
    let mut themes = Vec::new();
    let names = if options.set == IconSet::Icons { options.theme.as_slice() } else { &[] };
    for name in names {
        match Theme::find(name, scratch.path(), options.seed)? {
            Some(theme) => themes.push(theme),
            None => host.note(&format!(
                "not measured: the theme '{name}' is not installed (Debian's packages breeze-icon-theme, \
                 adwaita-icon-theme)"
            )),
        }
    }
    if themes.is_empty() && options.set == IconSet::Icons {
        host.note("measured instead: a generated theme");
        themes.extend(Theme::find(theme::GENERATED, scratch.path(), options.seed)?);
    }
    for theme in &themes {
        if let Some(reason) = &theme.without_gtk {
            host.note(&format!(
                "not measured: GTK's cache of '{}': {reason} (gtk-update-icon-cache writes it, Debian's \
                 package of this name)",
                theme.name
            ));
        }
    }
    let mut results = options.out.as_deref().map(ResultsWriter::append).transpose()?;
    let run = Run { asked, ..Run::begin(NAME, command_line(), options.seed) };
    for warning in run.warnings() {
        host.note(&format!("warning: {warning}"));
    }
    if let Some(results) = &mut results {
        results.write(&Row::Run(run.clone()))?;
    }
    let runner = Runner::own()?;
    let icons = IconRun { options, runner: &runner, run: &run, host, scratch: scratch.path() };
    let mut kept = Kept { samples: Vec::new(), results: results.as_mut() };
    let measured = measure(&icons, &themes, &mut kept);
    host.finish();
    let samples = kept.samples;
    let is_complete = *measured.as_ref().unwrap_or(&false);
    if options.json {
        host.print_json(&json!({ "run": run, "complete": is_complete, "samples": samples }))?;
    } else if !samples.is_empty() {
        host.print(&printout::printout(&samples))?;
    }
    if let Some(warning) = disturbance_of(&run, &samples) {
        host.note(&format!("warning: {warning}"));
    }
    if !measured? {
        bail!("interrupted; printed what {} measurements came to", samples.len());
    }
    Ok(Ended::with_errors(samples.iter().any(|sample| sample.error.is_some())))
}

/// Measures everything; returns whether the user let it finish.
fn measure(icons: &IconRun<'_>, themes: &[Theme], kept: &mut Kept<'_>) -> anyhow::Result<bool> {
    let options = icons.options;
    if options.set == IconSet::Game {
        icons.host.begin(2 * options.blocks, "playing a game".to_owned())?;
        let is_finished = icons.game(kept)?;
        icons.host.finish();
        return Ok(is_finished);
    }
    let each = options.processes.len() as u64 * (1 + u64::from(options.cold)) * options.blocks;
    for theme in themes {
        for &number in &options.icons {
            let steps = each * theme.ways.len() as u64;
            icons.host.begin(steps, format!("getting {number} icons of {}", theme.name))?;
            let is_finished = icons.case(theme, number, kept)?;
            icons.host.finish();
            if !is_finished {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
