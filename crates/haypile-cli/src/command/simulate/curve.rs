//! Text of the LRU curve, and the plot of all results.

use std::fmt::Write;
use std::path::Path;
use std::slice;

use haypile_plot::{Chart, Curve, MAX_CURVES, PlotError, Point, Style, Unit};
use haypile_sim::curve::Estimate;
use haypile_sim::simulate::Accounting;

use super::tables::{capacity_header, outcome_of};
use super::{Results, hit_ratio};
use crate::output;
use crate::output::capacity::capacity;
use crate::output::number::grouped;
use crate::output::table::table;

/// Note under a curve that differs from simulations.
const NOT_EXACT: &str = "Not exact: by bytes the curve of LRU cuts entries at the edge of the cache. For a size that matters, add \
     --policy lru.\n";

/// Note under a sampled curve.
const SPREAD: &str = "The spread of lru is that of the parts of the sample. It bounds no error: what many ask for is in the sample or not. \
     Another --seed takes another sample.\n";

/// Appends a table of the curves of miss ratios, with a column for each policy, if there are any.
pub(crate) fn text(text: &mut String, one: &Results) {
    let simulated = if one.is_of_curve { one.sweep.contenders.as_slice() } else { &[] };
    let sizes = match &one.curve {
        Some((_, sizes)) => sizes,
        None if simulated.is_empty() => return,
        None => &one.sweep.capacities,
    };
    let estimates: Option<Vec<Estimate>> =
        one.curve.as_ref().map(|(curve, sizes)| sizes.iter().map(|size| curve.at(*size)).collect());
    let has_spread = estimates.iter().flatten().any(|estimate| estimate.error > 0.0);
    let mut header = vec![capacity_header(slice::from_ref(one))];
    if simulated.is_empty() {
        let _ = write!(text, "\nMiss ratio of LRU on {}\n", one.name);
        header.push("Miss ratio".to_owned());
    } else {
        let _ = write!(text, "\nMiss ratio on {}\n", one.name);
        header.extend(estimates.iter().map(|_| "lru".to_owned()));
    }
    header.extend(has_spread.then(|| "Spread".to_owned()));
    header.extend(simulated.iter().map(ToString::to_string));
    let rows = sizes.iter().enumerate().map(|(at, size)| {
        let mut row = vec![capacity(one.accounting, *size)];
        if let Some(estimate) = estimates.as_ref().map(|estimates| estimates[at]) {
            row.push(format!("{:.4}", estimate.miss_ratio));
            row.extend(has_spread.then(|| format!("± {:.4}", estimate.error)));
        }
        row.extend((0..simulated.len()).map(|contender| {
            let ratio = outcome_of(one, at, contender).and_then(hit_ratio);
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.4}", 1.0 - ratio))
        }));
        row
    });
    text.push_str(&table(&header, 0, 1, &rows.collect::<Vec<_>>()));
    if has_spread {
        text.push_str(SPREAD);
    }
    if one.curve.is_some() && !one.is_curve_exact() && one.accounting != Accounting::Objects {
        text.push_str(NOT_EXACT);
    }
}

/// Checks that the plot of miss ratios can be written, before anything is simulated.
pub(crate) fn check(path: &Path, curves: usize) -> anyhow::Result<()> {
    if curves > MAX_CURVES {
        return Err(PlotError::TooManyCurves { curves }.into());
    }
    output::plot::check(path)
}

/// Plots the miss ratios of each trace, simulated and from the LRU curve, into a file.
pub(crate) fn plot(results: &[Results], path: &Path) -> anyhow::Result<()> {
    let Some(first) = results.first() else { return Ok(()) };
    let is_one = results.len() == 1;
    let title = if is_one { first.name.clone() } else { "Miss ratio by cache size".to_owned() };
    let subtitle = format!("{} requests for {} keys", grouped(first.requests), grouped(first.keys));
    let chart = Chart {
        title,
        subtitle: is_one.then_some(subtitle),
        x_label: match first.accounting {
            Accounting::Objects => "cache size in objects",
            _ => "cache size",
        }
        .to_owned(),
        unit: match first.accounting {
            Accounting::Objects => Unit::Objects,
            _ => Unit::Bytes,
        },
        curves: results.iter().flat_map(|one| curves(one, is_one)).collect(),
        log_x: true,
    };
    output::plot::write(&chart, path)
}

fn curves(one: &Results, is_one: bool) -> Vec<Curve> {
    let named = |name: String| if is_one { name } else { format!("{name}, {}", one.name) };
    let simulated = one.sweep.contenders.iter().enumerate().map(|(at, contender)| {
        let outcomes = one.cells.iter().filter(|cell| cell.contender == at);
        let points = outcomes.filter_map(|cell| cell.outcome.as_ref()).filter_map(|outcome| {
            let miss_ratio = 1.0 - hit_ratio(outcome)?;
            Some(Point { capacity: outcome.capacity, miss_ratio, error: 0.0 })
        });
        Curve {
            name: named(contender.to_string()),
            points: points.collect(),
            style: Style::LineAndMarkers,
            optimum: contender.is_belady(),
            chosen: None,
        }
    });
    let measured = one.curve.iter().map(|(curve, sizes)| {
        let points = sizes.iter().map(|size| {
            let estimate = curve.at(*size);
            Point { capacity: *size, miss_ratio: estimate.miss_ratio, error: estimate.error }
        });
        Curve {
            name: named("lru curve".to_owned()),
            points: points.collect(),
            style: Style::Line,
            optimum: false,
            chosen: None,
        }
    });
    let all = simulated.chain(measured);
    // An interrupted simulation may have no points.
    all.filter(|curve| !curve.points.is_empty()).collect()
}
