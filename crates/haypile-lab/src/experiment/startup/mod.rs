//! `startup`: the time that a cache saves when a program starts; and, by the same method, the comparison of two
//! commands ([`bench`]).

pub(crate) mod bench;
mod cold_start;
mod condition;
mod difference;
mod drawing;
mod evidence;
mod explain;
mod exports;
mod figures;
mod hooks;
mod hyperfine;
mod measure;
mod options;
mod plan;
mod printout;
mod row;
mod section;
mod source;
mod tables;
mod timelines;
mod traces;
mod watch;

use std::path::Path;

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, ValueEnum};
use haypile_measure::figure::{Figure, Findings};
use haypile_measure::measure::Runner;
use haypile_measure::result::{Asked, Sample, Samples};
use haypile_number::{Quantity, with_plain_spaces};
use serde_json::{Map, Value, json};

pub use bench::BenchOptions;
pub use exports::{ExportOptions, HyperfineSchema};
pub use options::{Preset, StartupOptions, Variable};

use super::fill::Filled;
use super::session::{Interrupted, Session};
use super::{Ended, Experiment, ExperimentFile, Host};
use measure::Measuring;
use plan::StartPlan;

/// Name of the experiment `startup` in results.
pub const NAME: &str = "startup";

/// The experiment `startup`: how much earlier a program is ready with its cache than without.
pub(crate) struct StartupExperiment;

impl Experiment for StartupExperiment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Start-up with and without a cache"
    }

    fn file(&self) -> &'static str {
        include_str!("startup.toml")
    }

    fn arguments(&self, command: Command) -> Command {
        StartupOptions::augment_args(command)
    }

    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        let filled = Filled::new(self, line)?;
        let options: StartupOptions = filled.get()?;
        let asked = filled.asked.clone();
        let has_command = options.with_command.is_some() || options.off_command.is_some();
        if has_command || !options.command.is_empty() {
            return run(&[options], asked, host);
        }
        let is_chosen = filled.is_written("preset");
        let presets = if options.preset.is_empty() {
            Preset::value_variants().to_vec()
        } else {
            options.preset.clone()
        };
        let mut all = Vec::new();
        for preset in &presets {
            let file = ExperimentFile::parse(preset.text()).map_err(anyhow::Error::msg)?;
            let filled = Filled::from_file(self, &file, preset.name(), line)?;
            all.push(filled.get()?);
        }
        let missing = |options: &StartupOptions| missing(&options.requires);
        for options in &all {
            if let Some(missing) = missing(options) {
                let name = options.name.as_deref().unwrap_or_default();
                host.note(&format!("the start of '{name}' is not measured: {missing}"));
            }
        }
        if !is_chosen {
            let left_out = Preset::value_variants().iter().filter(|it| !presets.contains(it));
            let left_out: Vec<&str> = left_out.map(|preset| preset.name()).collect();
            if !left_out.is_empty() {
                host.note(&format!(
                    "further programs are measured only if named, by --preset {}",
                    left_out.join(",")
                ));
            }
        }
        all.retain(|options| missing(options).is_none());
        if all.is_empty() {
            let text = "none of these caches can be measured here; write a command after --";
            if is_chosen {
                bail!(text);
            }
            // `lab all` goes on with other experiments.
            host.note(text);
            return Ok(Ended::Well);
        }
        run(&all, asked, host)
    }

    fn findings(&self, samples: &Samples<'_>) -> Findings {
        difference::findings(samples)
    }

    fn body(
        &self,
        samples: &Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(samples, cases)
    }
}

/// Returns a text about the first program, path or variable that is missing.
fn missing(requires: &[String]) -> Option<String> {
    requires.iter().find_map(|text| {
        let (program, hint) = text.split_once('=').unwrap_or((text, "install it"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        if let Some(variable) = program.strip_prefix('$') {
            let is_set = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
            return (!is_set).then(|| format!("{variable} is not set; {hint}"));
        }
        let is_there = if program.contains('/') {
            std::fs::read_dir(program).map_or_else(
                |_| Path::new(program).exists(),
                |mut entries| entries.next().is_some(),
            )
        } else {
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        };
        (!is_there).then(|| format!("{program} is not there; {hint}"))
    })
}

/// Measures commands one after the other. The first has the options that all have in common.
fn run(all: &[StartupOptions], asked: Option<Asked>, host: &dyn Host) -> anyhow::Result<Ended> {
    let first = all.first().context("there is no command")?;
    let mut session = Session::new(NAME, asked, &first.run, host)?;
    first.exports.check(host)?;
    if !cfg!(target_os = "linux") {
        bail!("the starts of commands can be measured on Linux only");
    }
    session.begin(None)?;
    let runner = Runner::own()?;
    let mut measured = Ok(());
    for (number, options) in all.iter().enumerate() {
        let one = one(options, number, &runner, &mut session);
        host.finish();
        match one {
            Ok(()) => {}
            Err(error) if error.is::<Interrupted>() => {
                measured = Err(error);
                break;
            }
            Err(error) if all.len() == 1 => return Err(error),
            // One that cannot be measured keeps no other from being measured.
            Err(error) => {
                let name = options.name.as_deref().unwrap_or_default();
                host.note(&format!("the start of '{name}' could not be measured: {error:#}"));
                measured = measured.and(Err(error));
            }
        }
    }
    let written = first.exports.write(session.samples(), host);
    // What was measured is printed even if a file cannot be written.
    let ended =
        session.end(measured, differences, |samples| printout::printout(samples, first.explain))?;
    written?;
    Ok(ended)
}

/// Measures one command.
fn one(
    options: &StartupOptions,
    number: usize,
    runner: &Runner,
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    let host = session.host;
    if let Some(missing) = missing(&options.requires) {
        bail!("{missing}");
    }
    let scratch = options.run.scratch("haypile-startup-")?;
    let plan = StartPlan::new(options, scratch.path())?;
    for note in &plan.notes {
        host.note(note);
    }
    if options.cold.is_some() {
        let folder = options.run.absolute_directory()?;
        match super::cold::read_latency(scratch.path())? {
            Some(latency) => host.note(&format!(
                "for comparison with cold starts: reading 4 KiB at a random place of a file in {} \
                 takes {:.3} ms, if it is not in memory",
                folder.display(),
                latency.as_secs_f64() * 1e3
            )),
            None => host.note(&format!(
                "files in {} stay in memory, so that a cold start cannot be measured there; name a \
                 directory on a disk",
                folder.display()
            )),
        }
    }
    Measuring::new((&plan, number), options.schedule(), runner, session).measure()
}

/// Returns the differences of each case, as fields of the JSON.
fn differences(samples: &[Sample]) -> Map<String, Value> {
    let of_case = |case: &difference::StartCase<'_>| {
        let differences = case.differences().into_iter().map(|found| {
            let (figure, unit) = in_json(found.figure);
            json!({
                "condition": found.condition.name(),
                "figure": figure,
                "pairs": found.later.count,
                "median_difference": found.later.median / unit,
                "interval": found.interval().map(|it| [it.low / unit, it.high / unit]),
                "mean_difference": found.mean / unit,
                "verdict": found.verdict.name(),
                "significant": found.verdict.is_significant(),
                "saved": found.saved_by_cache(),
                "change": found.change,
            })
        });
        let differences: Vec<Value> = differences.collect();
        match &case.pair {
            Some([a, b]) => json!({
                "case": case.name, "a": a, "b": b, "ready": case.ready, "differences": differences,
                "answer": bench::sentence(case).as_deref().map(with_plain_spaces),
            }),
            None => json!({
                "case": case.name, "page_cache": case.page_cache, "ready": case.ready,
                "differences": differences, "explained": explain::in_json(case),
                "cold": cold_start::ColdVerdict::of(case).map(|verdict| json!({
                    "verdict": verdict.name(), "resident_share": verdict.resident,
                    "drops_folders": verdict.drops_folders,
                })),
            }),
        }
    };
    let cases: Vec<Value> = difference::cases(samples).iter().map(of_case).collect();
    [("cases".to_owned(), json!(cases))].into_iter().collect()
}

/// Returns the name of a figure in the JSON, which ends with its unit, and the size of that unit.
fn in_json(figure: &Figure) -> (String, f64) {
    let (unit, size) = match figure.quantity {
        Quantity::Time => ("_ms", 1e6),
        Quantity::Bytes => ("_mib", f64::from(1 << 20)),
        _ => ("", 1.0),
    };
    let name = figure.name.trim_start_matches("tree-").trim_start_matches("peak-");
    (name.replace('-', "_") + unit, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_an_experiment_file_with_options_of_this_command() {
        for preset in Preset::value_variants() {
            let file = ExperimentFile::parse(preset.text()).unwrap();
            assert_eq!((file.experiment.as_str(), file.question.ends_with('?')), (NAME, true));
            let line = StartupExperiment.arguments(Command::new(NAME).no_binary_name(true));
            let line = line.try_get_matches_from(["--blocks", "7"]).unwrap();
            let filled =
                Filled::from_file(&StartupExperiment, &file, preset.name(), &line).unwrap();
            let options: StartupOptions = filled.get().unwrap();
            assert_eq!(options.name.as_deref(), Some(preset.name()));
            assert_eq!(options.blocks, 7, "the command line takes precedence");
            let has_command = options.with_command.is_some() && options.off_command.is_some();
            assert!(has_command == options.command.is_empty() && !options.requires.is_empty());
            StartPlan::new(&options, Path::new("/scratch")).unwrap();
        }
    }

    #[test]
    fn programs_that_are_missing_are_named_with_how_to_get_them() {
        let of = |text: &str| missing(&[text.to_owned()]);
        assert_eq!(of("sh=buy one"), None);
        assert_eq!(of("/tmp=make one"), None);
        assert_eq!(of("no-such-program=buy one").unwrap(), "no-such-program is not there; buy one");
        assert!(of("/no/such/path").unwrap().contains("install it"));
        assert_eq!(of("$PATH=set it"), None);
        assert_eq!(of("$NO_SUCH_ONE=set it").unwrap(), "NO_SUCH_ONE is not set; set it");
    }
}
