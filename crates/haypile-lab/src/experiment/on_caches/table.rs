//! Results for people.

use haypile_measure::measure::Contender;
use haypile_measure::parameters;
use haypile_measure::result::Sample;
use haypile_measure::statistics::{Effect, Summary};
use haypile_number::bytes;

use super::latency::latencies;
use crate::experiment::Printout;
use crate::experiment::printout::ratio;
use crate::ranking::{Figures, Ranking, rankings};

const NOTHING: &str = "-";

/// Returns a table for each case, with errors below it.
pub(crate) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let names = names(contenders);
    let several = names.iter().any(|(_, program)| *program != names[0].1);
    let rankings = rankings(samples, &names);
    let (same, varying) = parameters::part(rankings.iter().map(|one| &one.parameters));
    let mut printout = Printout::default();
    if !same.is_empty() {
        printout.text(format!("{}\n", parameters::describe(&same)));
    }
    for ranking in &rankings {
        printout.gap();
        case(&mut printout, ranking, &varying, several);
    }
    latencies(samples, &mut printout);
    printout
}

/// Returns the subjects and programs of contenders, as standings take them.
pub(crate) fn names(contenders: &[Contender]) -> Vec<(String, String)> {
    let name =
        |contender: &Contender| (contender.subject.to_string(), contender.runner.label.clone());
    contenders.iter().map(name).collect()
}

/// Whether a sample is of this contender.
pub(crate) fn is_of(sample: &Sample, contender: &Contender) -> bool {
    sample.subject.name == contender.subject.as_str()
        && sample.subject.program == contender.runner.label
}

fn case(printout: &mut Printout, ranking: &Ranking, varying: &[String], several: bool) {
    let mut heading = ranking.case.clone();
    for name in varying {
        if let Some(value) = ranking.parameters.get(name) {
            heading = format!("{heading} {name}={}", parameters::text(value));
        }
    }
    let has_server = ranking.subjects.iter().any(|figures| figures.server_ns.is_some());
    let mut header = vec!["Subject", "CPU ns", "MAD"];
    // Additional time, if any subject has a server.
    header.extend(has_server.then_some("Server ns"));
    header.extend(["Wall ns", "MAD", "Relative", "95 % interval", "Hits", "Memory"]);
    let named = |figures: &Figures| {
        let subject = &figures.subject;
        if several { subject.identity().to_string() } else { subject.name.clone() }
    };
    let rows: Vec<_> =
        ranking.subjects.iter().map(|one| row(named(one), one, has_server)).collect();
    // How far the samples spread, the wall time's first: the interval says what that does to the result.
    let mads = [header.len() - 5, 2];
    printout.text(format!("{heading}\n")).table(header, 1, 1, rows).spare(mads);
    for figures in &ranking.subjects {
        if let Some(error) = &figures.first_error {
            let errors = match figures.errors {
                1 => "error".to_owned(),
                errors => format!("{errors} errors, the first"),
            };
            printout.text(format!("{}: {errors}: {error}\n", named(figures)));
        }
    }
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
