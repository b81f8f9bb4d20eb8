//! `icons`: the time and memory that a shared cache of icons saves, and the part of the cache that
//! saves them.

mod full;
mod game;
mod gtk;
mod loader;
mod measure;
mod options;
mod orders;
mod printout;
mod section;
mod theme;
mod way;

use anyhow::bail;
use clap::{ArgMatches, Args, Command};
use haypile_measure::measure::Runner;
use haypile_measure::result::Asked;

pub use loader::serve;
pub use options::{IconSet, IconsOptions};

use super::fill::Filled;
use super::session::{Session, no_fields};
use super::{Ended, Experiment, Host};
use measure::IconRun;
use theme::Theme;

/// Name of the experiment `icons` in results.
pub const NAME: &str = "icons";

/// The experiment `icons`: loading icons of a desktop theme with and without caches.
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
        let of_icons = ["theme", "icons", "size", "processes", "cold", "full"];
        if options.set == IconSet::Game
            && let Some(other) = of_icons.into_iter().find(|it| filled.is_written(it))
        {
            bail!("--{other} applies to icons only; --set game has its own drawings and sizes");
        }
        run(&options, filled.asked, host)
    }

    fn body(
        &self,
        samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(samples, cases)
    }
}

fn run(options: &IconsOptions, asked: Option<Asked>, host: &dyn Host) -> anyhow::Result<Ended> {
    let mut session = Session::new(NAME, asked, &options.run, host)?;
    let scratch = options.run.scratch("haypile-icons-")?;
    let mut themes = Vec::new();
    let names = if options.set == IconSet::Icons { options.theme.as_slice() } else { &[] };
    for name in names {
        match Theme::find(name, scratch.path(), options.run.seed)? {
            Some(theme) => themes.push(theme),
            None => host.note(&format!(
                "the icon theme '{name}' is not measured, because it is not installed (Debian's \
                 packages breeze-icon-theme, adwaita-icon-theme)"
            )),
        }
    }
    if themes.is_empty() && options.set == IconSet::Icons {
        host.note("because none of the named themes is installed, a generated theme is measured");
        themes.extend(Theme::find(theme::GENERATED, scratch.path(), options.run.seed)?);
    }
    for theme in &themes {
        if let Some(reason) = &theme.without_gtk {
            host.note(&format!(
                "GTK's icon cache of the theme '{}' is not measured: {reason} \
                 (gtk-update-icon-cache, of Debian's package of this name, writes it)",
                theme.name
            ));
        }
    }
    session.begin(None)?;
    let (runner, run) = (Runner::own()?, session.run.clone());
    let icons = IconRun { options, runner: &runner, run, host, scratch: scratch.path() };
    let measured = measure(&icons, &themes, &mut session);
    session.end(measured, no_fields, printout::printout)
}

/// Measures everything.
fn measure(icons: &IconRun<'_>, themes: &[Theme], session: &mut Session<'_>) -> anyhow::Result<()> {
    let options = icons.options;
    if options.set == IconSet::Game {
        icons.host.begin(2 * options.blocks, "playing a game".to_owned())?;
        icons.game(session)?;
        icons.host.finish();
        return Ok(());
    }
    let each = options.processes.len() as u64 * (1 + u64::from(options.cold)) * options.blocks;
    for theme in themes {
        for &number in &options.icons {
            let steps = each * theme.ways.len() as u64;
            icons.host.begin(steps, format!("getting {number} icons of {}", theme.name))?;
            icons.case(theme, number, session)?;
            icons.host.finish();
        }
    }
    Ok(())
}
