//! `haypile lab ratio`

use std::process::ExitCode;

use haypile_lab::experiment::ratio::{
    self, Agreement, Options, Ratio, SUBJECTS, abbreviation, cmpthese, source_tables,
};
use haypile_lab::measure::Contender;
use haypile_lab::result::Sample;
use haypile_lab::standings::{Standing, standings};

use super::measuring;
use crate::args::lab::Ratios;

/// Measures sets and gets by ratio.
pub(crate) fn run(arguments: &Ratios) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let ratios = match &arguments.cases[..] {
        [] => &Ratio::ALL,
        ratios => ratios,
    };
    let options = Options { operations: arguments.operations, seed: measuring.seed };
    let cases = ratio::cases(ratios, &options);
    let subjects = measuring.subjects("memory,file,memcached,memory+memcached");
    measuring::run(ratio::NAME, cases, &subjects, measuring, text)
}

/// Returns the source's tables, the tables of every experiment, and the agreement of the orders.
fn text(samples: &[Sample], contenders: &[Contender]) -> String {
    let standings = standings(samples, &measuring::names(contenders));
    let mut texts = Vec::new();
    for standing in &standings {
        texts.push(format!(
            "Operations per second of client CPU: {}\n{}",
            standing.case,
            cmpthese(&rates(standing))
        ));
    }
    texts.push(measuring::table::text(samples, contenders));
    texts.extend(agreement(&standings));
    texts.join("\n")
}

/// Returns operations per second of the client's processor time, by the source's names if it has
/// the subjects.
fn rates(standing: &Standing) -> Vec<(String, f64)> {
    let rate = |figures: &haypile_lab::standings::Figures| {
        let cpu_ns = figures.cpu_ns.as_ref()?.median;
        let name = &figures.subject.name;
        let name = abbreviation(name).map_or_else(|| name.clone(), str::to_owned);
        (cpu_ns > 0.0).then(|| (name, 1e9 / cpu_ns))
    };
    standing.subjects.iter().filter_map(rate).collect()
}

/// Returns the agreement of the source's tables with ours; `None` if not all its subjects are here.
fn agreement(standings: &[Standing]) -> Option<String> {
    let mut text = String::new();
    for table in source_tables() {
        let Some(standing) = standings.iter().find(|one| one.case == table.ratio.name()) else {
            continue;
        };
        let here = rates(standing);
        let both = SUBJECTS.iter().zip(table.rates).map(|((_, name), source)| {
            let (_, here) = here.iter().find(|(found, _)| found == name)?;
            Some(((*name).to_owned(), source, *here))
        });
        // A subject of the source is missing, or has only errors.
        let Some(both) = both.collect::<Option<Vec<_>>>() else { continue };
        let agreement = Agreement::of(&both);
        let same = agreement.pairs - agreement.inversions.len();
        text = format!(
            "{text}  {}: {same} of {} pairs in the same order, Kendall's tau {:.2}\n",
            standing.case,
            agreement.pairs,
            agreement.tau()
        );
        for inversion in &agreement.inversions {
            text = format!(
                "{text}    {} is {:.0} % faster than {} in the source and {:.0} % slower here\n",
                inversion.faster,
                inversion.source * 100.0,
                inversion.slower,
                -inversion.here * 100.0
            );
        }
    }
    (!text.is_empty()).then(|| format!("Compared with the Perl cache benchmark\n{text}"))
}
