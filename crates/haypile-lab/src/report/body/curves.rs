//! Lines of subjects over a parameter's amounts.

use std::collections::BTreeSet;

use haypile_measure::figure::{Estimate, Figure};
use haypile_number::Quantity;
use haypile_plot::axis::capacity;
use haypile_plot::{MAX_CURVES, Unit};

use super::super::case::{Case, labels};
use super::super::chart::{Chart, Lines, Picture, Series, Spot, Ticks, slug};
use super::super::number::count;
use super::figures::beyond;

/// A numeric parameter of measured cases, such as the size of values, as the horizontal axis of a
/// line chart.
#[derive(Clone, Copy)]
pub(crate) struct Over {
    /// The name of the parameter on the horizontal axis, such as `value_bytes`.
    pub(crate) parameter: &'static str,
    /// The label of the chart's horizontal axis.
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
}

/// The size of values, as the parameter of a chart's horizontal axis.
pub(crate) const VALUE_BYTES: Over =
    Over { parameter: "value_bytes", label: "size of a value", unit: Unit::Bytes };

/// Returns a line of a chart for each cache: its cost (such as processor time) in each of these
/// cases; `suffix` is added to the cache's name.
pub(crate) fn series(cases: &[&Case<'_>], over: Over, cost: &Figure, suffix: &str) -> Vec<Series> {
    let of = |(place, label): (usize, &String)| {
        let point = |case: &Case<'_>| {
            let amount = case.number(over.parameter).filter(|amount| *amount > 0)?;
            Some((amount, case.entrant(label)?.estimate(cost)?))
        };
        let mut points: Vec<(u64, Estimate)> = cases.iter().copied().filter_map(point).collect();
        points.sort_by_key(|(amount, _)| *amount);
        let name = format!("{label}{suffix}");
        (!points.is_empty()).then_some(Series { name, points, knows_future: false, place })
    };
    labels(cases.iter().copied()).iter().enumerate().filter_map(of).collect()
}

/// Returns the distinct positions of the lines' points on the horizontal axis; a chart needs at
/// least two.
pub(crate) fn amounts<'a>(series: impl Iterator<Item = &'a Series>) -> BTreeSet<u64> {
    series.flat_map(|series| &series.points).map(|(amount, _)| *amount).collect()
}

/// Returns a line chart with its caption and description, if there is any line; and a message about
/// results that it leaves out.
pub(crate) fn picture(
    title: String,
    over: Over,
    (y_label, quantity): (&str, Quantity),
    mut series: Vec<Series>,
    spots: Vec<Spot>,
) -> (Option<Picture>, Option<String>) {
    let amounts: Vec<u64> = amounts(series.iter()).into_iter().collect();
    match amounts.as_slice() {
        [] => return (None, None),
        [one] => {
            let at = capacity(*one, over.unit);
            let left_out = format!(
                "{title} is not drawn, for all of it is at {at}: the tables have the figures."
            );
            return (None, Some(left_out));
        }
        _ => {}
    }
    let left_out = beyond(series.len(), MAX_CURVES).map(|beyond| {
        format!("{} of {title} are in the table alone.", count(beyond, "further line"))
    });
    series.truncate(MAX_CURVES);
    let mut sentences: Vec<String> =
        series.iter().map(|series| describe(series, over.unit, quantity)).collect();
    sentences.extend(
        spots.iter().map(|spot| format!("{} at {}.", spot.label, capacity(spot.at, over.unit))),
    );
    let mut caption = match quantity {
        Quantity::Share | Quantity::HitRatio => {
            format!("{y_label} by {}; lower is better.", over.label)
        }
        Quantity::Rate => {
            format!("{y_label} by {}, both on logarithmic axes; higher is better.", over.label)
        }
        _ => format!("{y_label} by {}, both on logarithmic axes; lower is better.", over.label),
    };
    let mut points = series.iter().flat_map(|series| &series.points);
    if points.any(|(_, estimate)| estimate.interval.is_some()) {
        caption.push_str(" Vertical lines are 95\u{A0}% intervals.");
    }
    if let Some(first) = caption.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let chart = Lines {
        x_label: over.label.to_owned(),
        ticks: Ticks::Round(over.unit),
        y_label: y_label.to_owned(),
        quantity,
        series,
        spots,
    };
    let description = format!("{y_label} by {}. {}", over.label, sentences.join(" "));
    let slug = slug(&title);
    (Some(Picture { slug, title, caption, description, chart: Chart::Lines(chart) }), left_out)
}

fn describe(series: &Series, unit: Unit, quantity: Quantity) -> String {
    let end = |(amount, estimate): &(u64, Estimate)| {
        format!("{} at {}", quantity.write(estimate.value), capacity(*amount, unit))
    };
    match series.points.as_slice() {
        [] => String::new(),
        [one] => format!("{}: {}.", series.name, end(one)),
        [first, .., last] => format!("{}: {}, {}.", series.name, end(first), end(last)),
    }
}
