//! Results for people.

use haypile_lab::measure::Contender;
use haypile_lab::parameters;
use haypile_lab::result::Sample;
use haypile_lab::standings::{Figures, Standing, standings};
use haypile_lab::statistics::{Effect, Summary};

use crate::output::number::{bytes, ratio};
use crate::output::table::table;

const NOTHING: &str = "-";

/// Returns a table for each case, with errors below it.
pub(crate) fn text(samples: &[Sample], contenders: &[Contender]) -> String {
    let names = super::names(contenders);
    let several = names.iter().any(|(_, program)| *program != names[0].1);
    let standings = standings(samples, &names);
    let (same, varying) = parameters::part(standings.iter().map(|one| &one.parameters));
    let mut texts = Vec::new();
    if !same.is_empty() {
        texts.push(format!("{}\n", parameters::describe(&same)));
    }
    for standing in &standings {
        texts.push(case(standing, &varying, several));
    }
    texts.join("\n")
}

fn case(standing: &Standing, varying: &[String], several: bool) -> String {
    let mut heading = standing.case.clone();
    for name in varying {
        if let Some(value) = standing.parameters.get(name) {
            heading = format!("{heading} {name}={}", parameters::text(value));
        }
    }
    let has_server = standing.subjects.iter().any(|figures| figures.server_ns.is_some());
    let mut header = vec!["Subject", "CPU ns", "MAD"];
    // Additional time, if any subject has a server.
    header.extend(has_server.then_some("Server ns"));
    header.extend(["Wall ns", "MAD", "Relative", "95 % interval", "Hits", "Memory"]);
    let header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    let named = |figures: &Figures| {
        let subject = &figures.subject;
        if several { subject.identity().to_string() } else { subject.name.clone() }
    };
    let rows: Vec<_> =
        standing.subjects.iter().map(|one| row(named(one), one, has_server)).collect();
    let mut text = format!("{heading}\n{}", table(&header, 1, 1, &rows));
    for figures in &standing.subjects {
        if let Some(error) = &figures.first_error {
            let errors = match figures.errors {
                1 => "error".to_owned(),
                errors => format!("{errors} errors, the first"),
            };
            text = format!("{text}{}: {errors}: {error}\n", named(figures));
        }
    }
    text
}

fn row(name: String, figures: &Figures, has_server: bool) -> Vec<String> {
    let [cpu, cpu_mad] = times(figures.cpu_ns.as_ref());
    let [wall, wall_mad] = times(figures.wall_ns.as_ref());
    let [relative, interval] = effect(figures.relative.as_ref());
    let hits = figures.hit_ratio.map_or_else(|| NOTHING.to_owned(), ratio);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes for people")]
    let memory = figures.memory_bytes.map(|summary| bytes(summary.median as u64));
    let memory = memory.unwrap_or_else(|| NOTHING.to_owned());
    let mut row = vec![name, cpu, cpu_mad];
    row.extend(has_server.then(|| times(figures.server_ns.as_ref())[0].clone()));
    row.extend([wall, wall_mad, relative, interval, hits, memory]);
    row
}

/// Returns the median, and the median deviation from it as a share.
fn times(summary: Option<&Summary>) -> [String; 2] {
    summary.map_or_else(
        || [NOTHING.to_owned(), NOTHING.to_owned()],
        |summary| [format!("{:.1}", summary.median), format!("{:.1} %", summary.spread() * 100.0)],
    )
}

/// Returns the ratio to the first subject, with its interval.
fn effect(effect: Option<&Effect>) -> [String; 2] {
    let Some(effect) = effect else { return [NOTHING.to_owned(), NOTHING.to_owned()] };
    let interval = effect.interval().map_or_else(
        || NOTHING.to_owned(),
        |interval| format!("{:.3} to {:.3}", 1.0 + interval.low, 1.0 + interval.high),
    );
    [format!("{:.3}", effect.ratio()), interval]
}
