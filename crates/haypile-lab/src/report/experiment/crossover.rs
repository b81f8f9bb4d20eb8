//! `crossover`: from which size of an entry on one subject is slower than another.

use haypile_sim::plot::Unit;
use haypile_sim::plot::axis::capacity;

use super::super::case::{Case, Entrant, labels};
use super::super::chart::Spot;
use super::super::number::Quantity;
use super::super::section::Body;
use super::curves::{VALUE_BYTES, figure, series};
use super::{cost, front, micro};
use crate::statistics::Verdict;

/// The section, with the places that were found: whoever looks for them, by bisection or among the
/// sizes that were measured, says them as spots.
pub(super) fn body(cases: &[Case<'_>], spots: &[Spot]) -> Body {
    let axis = ("processor time of a hit", Quantity::Time);
    let series = series(&cases.iter().collect::<Vec<_>>(), VALUE_BYTES, cost::cpu, "");
    let title = "The cost of a hit by the size of its value".to_owned();
    let (figure, left_out) = figure(title, VALUE_BYTES, axis, series, spots.to_vec());
    let varying = super::super::case::varying(cases);
    let what = "processor time of a hit";
    let mut body = Body {
        answer: answer(cases, spots),
        figures: figure.into_iter().collect(),
        left_out: left_out.into_iter().collect(),
        tables: vec![front::table(cases.iter(), &varying, cost::cpu, Quantity::Time, what)],
        ..Body::default()
    };
    micro::details(&mut body, cases, &varying);
    body
}

fn answer(cases: &[Case<'_>], spots: &[Spot]) -> String {
    let size = |bytes| capacity(bytes, Unit::Bytes);
    let said = |spot: &Spot| match spot.interval {
        Some((low, high)) => format!(
            "{} from {} on (that begins between {} and {})",
            spot.label,
            size(spot.at),
            size(low),
            size(high)
        ),
        None => format!("{} at every size from {} on", spot.label, size(spot.at)),
    };
    match (labels(cases.iter()).as_slice(), spots) {
        ([], _) => "Nothing was measured.".to_owned(),
        ([one], _) => format!("{one} alone was measured, so that nothing can be said."),
        (_, []) => "No size is shown from which on one is slower than another.".to_owned(),
        (_, spots) => {
            let said: Vec<String> = spots.iter().map(said).collect();
            format!("By processor time, {}.", said.join("; "))
        }
    }
}

/// Among the sizes that were measured: for each subject, from which on it is slower than the first
/// one at every size. It lies between the last size where that is not shown and this one.
pub(super) fn bracket(cases: &[Case<'_>]) -> Vec<Spot> {
    let labels = labels(cases.iter());
    let Some((first, others)) = labels.split_first() else { return Vec::new() };
    let mut by_size: Vec<(u64, &Case<'_>)> =
        cases.iter().filter_map(|case| Some((case.number(VALUE_BYTES.parameter)?, case))).collect();
    by_size.sort_by_key(|(size, _)| *size);
    let is_slower = |case: &Case<'_>, label: &String| {
        let both: Option<(&Entrant<'_>, &Entrant<'_>)> =
            case.entrant(first).zip(case.entrant(label));
        let next = both.and_then(|(first, other)| other.over(first, cost::cpu));
        next.is_some_and(|next| next.verdict == Verdict::Slower)
    };
    let spot = |label: &String| {
        let slower: Vec<bool> = by_size.iter().map(|(_, case)| is_slower(case, label)).collect();
        let from = slower.iter().rposition(|is| !is).map_or(0, |last| last + 1);
        let (at, _) = by_size.get(from)?;
        let below = from.checked_sub(1).map(|last| by_size[last].0).filter(|below| below < at);
        Some(Spot {
            at: *at,
            interval: below.map(|below| (below, *at)),
            label: format!("{label} is slower than {first}"),
        })
    };
    others.iter().filter_map(spot).collect()
}
