//! Charts and tables that several experiments share.

use haypile_measure::figure::{self, Estimate, Figure};
use haypile_measure::statistics::Interval;
use haypile_number::{NBSP, Quantity};

use super::super::case::{Case, Entrant};
use super::super::chart::{Bar, Bars, Chart, Picture, slug};
use super::super::number::count;
use super::super::table::{NOTHING, Table, Tone};
use super::front::{ends, is_floor, verdict};

/// Largest number of bars in a chart of the report.
pub(crate) const MAX_BARS: usize = 16;
pub(crate) const MAX_MULTIPLES: usize = 8;
/// Largest number of cases in a section of the report that have a table of their own.
pub(crate) const MAX_TABLES: usize = 60;
/// Two clocks that agree within this part are shown as one.
const SAME: f64 = 0.02;

/// Returns a bar chart of the caches measured in a case, ranked by the figure `order` (such as
/// processor time), the lowest first; and a message about caches that it leaves out.
pub(crate) fn bars(
    case: &Case<'_>,
    title: String,
    measures: &[&Figure],
    order: &Figure,
) -> (Option<Picture>, Option<String>) {
    let mut entrants: Vec<&Entrant<'_>> =
        case.ranking(order).into_iter().map(|(entrant, _)| entrant).collect();
    if entrants.is_empty() {
        return (None, None);
    }
    // Only errors, or not measured: named all the same.
    let missing = case.entrants.iter().filter(|one| one.estimate(order).is_none());
    entrants.extend(missing);
    let left_out = beyond(entrants.len(), MAX_BARS).map(|beyond| {
        format!("{} of {title} are in the table alone.", count(beyond, "further subject"))
    });
    entrants.truncate(MAX_BARS);
    let bar = |entrant: &&Entrant<'_>| Bar {
        label: entrant.label.clone(),
        values: measures.iter().map(|figure| entrant.estimate(figure)).collect(),
        blocks: measures.iter().map(|figure| figure.in_blocks(&entrant.samples)).collect(),
    };
    let mut bars: Vec<Bar> = entrants.iter().map(bar).collect();
    let mut same = None;
    if let [_, second] = measures
        && bars.iter().all(says_nothing_more)
    {
        same = Some(format!("{} is the same within 2{NBSP}%.", capital(second.what)));
        for bar in &mut bars {
            bar.values.truncate(1);
            bar.blocks.truncate(1);
        }
    }
    let names = measures.iter().take(bars[0].values.len()).map(|one| one.what.to_owned());
    let mut figure = picture(title, measures[0].quantity, names.collect(), bars);
    if let Some(same) = same {
        figure.caption = format!("{} {same}", figure.caption);
    }
    (Some(figure), left_out)
}

/// Whether the second of two values is the first once more.
fn says_nothing_more(bar: &Bar) -> bool {
    match bar.values.as_slice() {
        [Some(first), Some(second)] => (second.value / first.value).ln().abs() < SAME.ln_1p(),
        [first, second] => first.is_none() && second.is_none(),
        _ => false,
    }
}

/// Returns the text with a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// Returns a bar chart with its caption and description.
pub(crate) fn picture(
    title: String,
    quantity: Quantity,
    measures: Vec<String>,
    bars: Vec<Bar>,
) -> Picture {
    let description = describe(quantity, &measures, &bars);
    let measure = match measures.as_slice() {
        [one] => format!("{}.", capital(one)),
        _ => String::new(),
    };
    let chart = Bars { quantity, measures, rows: bars };
    let mut caption = vec![match (quantity, chart.is_log()) {
        (Quantity::Rate, true) => "Points on a logarithmic axis: further to the right is better.",
        (Quantity::Rate | Quantity::Share | Quantity::HitRatio, _) => "Longer is better.",
        (_, false) => "Shorter is better.",
        (_, true) => "Points on a logarithmic axis: further to the left is better.",
    }];
    let mut intervals = chart.rows.iter().flat_map(|bar| &bar.values).flatten();
    if intervals.any(|estimate| estimate.interval.is_some()) {
        caption.push("Lines across the ends are 95\u{A0}% intervals.");
    }
    if chart.rows.iter().any(|bar| bar.blocks.iter().any(|blocks| !blocks.is_empty())) {
        caption.push("Each dot is a block; those beyond the axis lie at its end.");
    }
    Picture {
        slug: slug(&title),
        title,
        caption: format!("{measure} {}", caption.join(" ")).trim_start().to_owned(),
        description,
        chart: Chart::Bars(chart),
    }
}

/// Returns a bar chart of as many columns of a table as fit, and a message about those that it
/// leaves out.
pub(crate) fn of_columns(
    title: String,
    quantity: Quantity,
    measures: Vec<String>,
    mut bars: Vec<Bar>,
) -> (Option<Picture>, Option<String>) {
    let left_out = beyond(bars.len(), MAX_BARS).map(|beyond| {
        format!("{} of {title} are in the table alone.", count(beyond, "further column"))
    });
    bars.truncate(MAX_BARS);
    ((!bars.is_empty()).then(|| picture(title, quantity, measures, bars)), left_out)
}

fn describe(quantity: Quantity, measures: &[String], bars: &[Bar]) -> String {
    let sentence = |bar: &Bar| {
        let value = |(name, value): (&String, &Option<Estimate>)| {
            let written = match value {
                None => "not measured".to_owned(),
                Some(Estimate { value, interval: Some(Interval { low, high }), .. })
                    if high.is_finite() =>
                {
                    let ends = quantity.write_range(*low, *high);
                    format!("{} (95 % interval {ends})", quantity.write(*value))
                }
                Some(estimate) => quantity.write(estimate.value),
            };
            if measures.len() > 1 { format!("{name} {written}") } else { written }
        };
        let values: Vec<String> = measures.iter().zip(&bar.values).map(value).collect();
        format!("{}: {}.", bar.label, values.join(", "))
    };
    let sentences: Vec<String> = bars.iter().map(sentence).collect();
    sentences.join(" ")
}

/// Returns by how much `number` exceeds the limit `most`; `None` if it does not.
pub(crate) fn beyond(number: usize, most: usize) -> Option<usize> {
    number.checked_sub(most).filter(|beyond| *beyond > 0)
}

/// Returns the table of all figures of the caches measured in a case, with each cache's `cost`
/// relative to that of the cheapest one.
pub(crate) fn table(case: &Case<'_>, title: &str, cost: &Figure, wall: &Figure) -> Table {
    let has_server = has_server(std::slice::from_ref(case));
    let ranking = case.ranking(cost);
    let first = ranking.iter().map(|(entrant, _)| *entrant).find(|entrant| !is_floor(entrant));
    let measured = ranking.iter().map(|(entrant, _)| *entrant);
    let missing = case.entrants.iter().filter(|one| one.estimate(cost).is_none());
    let row = |entrant: &Entrant<'_>| {
        let [cpu, cpu_mad] = times(entrant, cost);
        let mean = entrant.estimate(cost).and_then(|estimate| cost.write_mean(&estimate));
        let [wall, wall_mad] = times(entrant, wall);
        let reference = first.filter(|first| !std::ptr::eq(*first, entrant));
        let over = reference.and_then(|first| entrant.over(first, cost));
        // What is wanted most stands on the left, where a narrow screen begins.
        let verdict = over.as_ref().map_or_else(nothing, verdict);
        let mut row =
            vec![entrant.label.clone(), verdict, cpu, mean.unwrap_or_else(nothing), cpu_mad];
        row.extend(match &over {
            None => [nothing(), nothing()],
            Some(over) => [
                format!("{}{NBSP}×", Quantity::Factor.write(over.difference.centre.ratio())),
                ends(&over.difference).unwrap_or_else(nothing),
            ],
        });
        if has_server {
            row.push(written(entrant, &figure::SERVER));
        }
        row.extend([wall, wall_mad]);
        row.extend([&figure::HIT_RATIO, &figure::MEMORY].map(|figure| written(entrant, figure)));
        row.push(samples(entrant));
        row.push(version(entrant));
        (row, over.as_ref().map_or(Tone::Open, |over| Tone::of(over.verdict)))
    };
    let (rows, tones) = measured.chain(missing).map(row).unzip();
    let mut names =
        vec!["Subject", "Verdict", cost.title, "Mean", "MAD", "Over the first", "99 % interval"];
    names.extend(has_server.then_some(figure::SERVER.title));
    names.extend([
        wall.title,
        "MAD",
        figure::HIT_RATIO.title,
        figure::MEMORY.title,
        "Samples",
        "Version",
    ]);
    let last = names.len() - 1;
    let caption =
        format!("{title}: {} and {}, with the median absolute deviation", cost.what, wall.what);
    Table::of_numbers(caption, &names, rows).with_text_in(&[last]).with_verdicts(1, tones).detail()
}

fn nothing() -> String {
    NOTHING.to_owned()
}

/// Returns the value of a figure (such as processor time) of a measured cache as text for a table's
/// cell.
pub(crate) fn written(entrant: &Entrant<'_>, figure: &Figure) -> String {
    entrant.estimate(figure).map_or_else(nothing, |estimate| figure.write(&estimate))
}

fn times(entrant: &Entrant<'_>, cost: &Figure) -> [String; 2] {
    let estimate = entrant.estimate(cost);
    let spread = estimate.and_then(|estimate| cost.write_spread(&estimate));
    [written(entrant, cost), spread.unwrap_or_else(nothing)]
}

/// Whether any cache measured in these cases uses a server.
pub(crate) fn has_server(cases: &[Case<'_>]) -> bool {
    let mut entrants = cases.iter().flat_map(|case| &case.entrants);
    entrants.any(|entrant| entrant.estimate(&figure::SERVER).is_some())
}

fn samples(entrant: &Entrant<'_>) -> String {
    match entrant.errors() {
        0 => entrant.samples.len().to_string(),
        errors => format!("{}, {}", entrant.samples.len(), count(errors, "error")),
    }
}

/// The version and language, as the last sample that succeeded knows them.
fn version(entrant: &Entrant<'_>) -> String {
    let known = entrant.good().last().or_else(|| entrant.samples.last().copied());
    known.map_or_else(nothing, |sample| {
        let subject = &sample.subject;
        haypile_plot::drawing::text::printable(&format!(
            "{} ({})",
            subject.version, subject.language
        ))
    })
}
