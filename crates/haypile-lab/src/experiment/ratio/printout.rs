//! The results of `ratio` for people.

use haypile_measure::figure::SECOND_NS;
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;

use super::{Agreement, SUBJECTS, abbreviation, cmpthese, source_tables};
use crate::experiment::Printout;
use crate::experiment::on_caches::table;
use crate::ranking::{Figures, Ranking, rankings};

/// Returns the tables of the Perl cache benchmark with our results, the tables that every
/// experiment prints, and a comparison of the two rankings.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let rankings = rankings(samples, &table::names(contenders));
    let mut printout = Printout::default();
    for ranking in &rankings {
        printout.gap().text(format!(
            "Operations per second of client CPU: {}\n{}",
            ranking.case,
            cmpthese(&rates(ranking))
        ));
    }
    printout.gap().append(table::printout(samples, contenders));
    if let Some(agreement) = agreement(&rankings) {
        printout.gap().text(agreement);
    }
    printout
}

/// Returns operations per second of the client's processor time, by the source's names if it has
/// the subjects.
fn rates(ranking: &Ranking) -> Vec<(String, f64)> {
    let rate = |figures: &Figures| {
        let rate = figures.cpu?.inverse(SECOND_NS).value;
        let name = &figures.subject.name;
        let name = abbreviation(name).map_or_else(|| name.clone(), str::to_owned);
        Some((name, rate))
    };
    ranking.subjects.iter().filter_map(rate).collect()
}

/// Returns the agreement of the source's tables with ours; `None` if not all its subjects are here.
fn agreement(rankings: &[Ranking]) -> Option<String> {
    let mut text = String::new();
    for table in source_tables() {
        let Some(ranking) = rankings.iter().find(|one| one.case == table.ratio.name()) else {
            continue;
        };
        let here = rates(ranking);
        let both = SUBJECTS.iter().zip(table.rates).map(|((_, name), source)| {
            let (_, here) = here.iter().find(|(found, _)| found == name)?;
            Some(((*name).to_owned(), source, *here))
        });
        // A subject of the source is missing, or has only errors.
        let Some(both) = both.collect::<Option<Vec<_>>>() else { continue };
        let agreement = Agreement::of(&both);
        let same = agreement.pairs - agreement.inversions.len();
        text = format!(
            "{text}  {}: {same} of {} {} in the same order, Kendall's tau {:.2}\n",
            ranking.case,
            agreement.pairs,
            if agreement.pairs == 1 { "pair" } else { "pairs" },
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
