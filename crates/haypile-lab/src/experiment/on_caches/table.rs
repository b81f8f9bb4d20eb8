//! The results of experiments on caches for people.

use haypile_measure::figure::{
    CPU, Estimate, Figure, HIT_RATIO, MEMORY, SERVER, WALL, write_factors,
};
use haypile_measure::measure::Contender;
use haypile_measure::parameters;
use haypile_measure::result::Sample;
use haypile_measure::statistics::Effect;
use haypile_number::Quantity;

use super::latency::latencies;
use super::strip::strip;
use crate::experiment::Printout;
use crate::ranking::{Figures, Ranking, rankings};

const NOTHING: &str = "-";

/// Returns a table for each measured case, with a row for each cache and the errors below.
pub(crate) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    printout_of(samples, &names(contenders))
}

/// Returns a table for each measured case, as [`printout`] does, for caches and programs given by
/// name.
pub(crate) fn printout_of(samples: &[Sample], names: &[(String, String)]) -> Printout {
    let several = names.iter().any(|(_, program)| *program != names[0].1);
    let rankings = rankings(samples, names);
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

/// Returns the name of each measured cache with the name of the program that measures it.
pub(crate) fn names(contenders: &[Contender]) -> Vec<(String, String)> {
    let name =
        |contender: &Contender| (contender.subject.to_string(), contender.runner.label.clone());
    contenders.iter().map(name).collect()
}

/// Returns whether a sample is of the same cache and the same measuring program as this contender.
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
    let has_server = ranking.subjects.iter().any(|figures| figures.server.is_some());
    let mut header = vec!["Subject", CPU.title, "Mean", "MAD"];
    // Additional time, if any subject has a server.
    header.extend(has_server.then_some(SERVER.title));
    header.extend([WALL.title, "MAD", "Relative", "95 % interval", HIT_RATIO.title, MEMORY.title]);
    header.push("Samples");
    let named = |figures: &Figures| {
        let subject = &figures.subject;
        if several { subject.identity().to_string() } else { subject.name.clone() }
    };
    let rows: Vec<_> =
        ranking.subjects.iter().map(|one| row(named(one), one, has_server)).collect();
    // How far the samples spread, the wall time's first: the interval says what that does to the result.
    let spare = [header.len() - 6, 3, header.len() - 1, 2];
    printout.text(format!("{heading}\n")).table(header, 1, 1, rows).spare(spare);
    for figures in &ranking.subjects {
        for note in &figures.notes {
            printout.text(format!("{}: {note}\n", named(figures)));
        }
    }
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
    let [relative, interval] = effect(figures.relative.as_ref());
    let mut row = vec![name];
    let [cpu, mad] = spread(&CPU, figures.cpu);
    let mean = figures.cpu.and_then(|cpu| CPU.write_mean(&cpu));
    row.extend([cpu, mean.unwrap_or_else(|| NOTHING.to_owned()), mad]);
    row.extend(has_server.then(|| written(&SERVER, figures.server)));
    row.extend(spread(&WALL, figures.wall));
    row.extend([relative, interval]);
    row.extend([written(&HIT_RATIO, figures.hit_ratio), written(&MEMORY, figures.memory)]);
    let centre = figures.cpu.map_or(0.0, |cpu| cpu.value);
    row.push(strip(&figures.costs, centre).unwrap_or_else(|| NOTHING.to_owned()));
    row
}

/// Returns the estimate of a measured figure (such as processor time) with its unit as text, or a
/// dash for `None`.
pub(crate) fn written(figure: &Figure, estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| NOTHING.to_owned(), |estimate| figure.write(&estimate))
}

/// Returns an effect as two cells.
fn spread(figure: &Figure, estimate: Option<Estimate>) -> [String; 2] {
    let spread = estimate.and_then(|estimate| figure.write_spread(&estimate));
    [written(figure, estimate), spread.unwrap_or_else(|| NOTHING.to_owned())]
}

/// Returns two cells of a table: the ratio of a cache's cost (such as processor time) to that of
/// the first cache, and its 95 % interval.
pub(crate) fn effect(effect: Option<&Effect>) -> [String; 2] {
    let Some(effect) = effect else { return [NOTHING.to_owned(), NOTHING.to_owned()] };
    let interval = effect.interval().map_or_else(|| NOTHING.to_owned(), write_factors);
    [Quantity::Factor.write(effect.ratio()), interval]
}
