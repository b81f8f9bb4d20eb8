//! Text of the LRU curve, and the plot of all results.

use std::fmt::Write;
use std::path::Path;
use std::slice;

use haypile_sim::plot::{self, Chart, Curve, MAX_CURVES, PlotError, Point, Style, Unit};
use haypile_sim::simulate::{Accounting, Contender};

use super::tables::capacity_header;
use super::{Results, hit_ratio};
use crate::output;
use crate::output::capacity::capacity;
use crate::output::number::grouped;
use crate::output::table::table;

/// Note under a curve that differs from simulations.
const NOT_EXACT: &str = "Not exact: by bytes the curve cuts entries at the edge of the cache. For a size that matters, add \
     --policy lru.\n";

/// Note under a sampled curve.
const SPREAD: &str = "The spread is that of the parts of the sample. It bounds no error: what many ask for is in the sample or not. \
     Another --seed takes another sample.\n";

/// Appends the curve as a table, if there is one.
pub(crate) fn text(text: &mut String, one: &Results) {
    let Some((curve, sizes)) = &one.curve else { return };
    let _ = write!(text, "\nMiss ratio of LRU on {}\n", one.name);
    let estimates: Vec<_> = sizes.iter().map(|size| curve.at(*size)).collect();
    let is_sampled = estimates.iter().any(|estimate| estimate.error > 0.0);
    let rows = sizes.iter().zip(&estimates).map(|(size, estimate)| {
        let mut row = vec![capacity(one.accounting, *size), format!("{:.4}", estimate.miss_ratio)];
        row.extend(is_sampled.then(|| format!("± {:.4}", estimate.error)));
        row
    });
    let mut header = vec![capacity_header(slice::from_ref(one)), "Miss ratio".to_owned()];
    header.extend(is_sampled.then(|| "Spread".to_owned()));
    text.push_str(&table(&header, 0, 1, &rows.collect::<Vec<_>>()));
    if is_sampled {
        text.push_str(SPREAD);
    }
    if !one.is_curve_exact() {
        text.push_str(NOT_EXACT);
    }
}

/// Checks that the plot can be written, before anything is simulated for it.
pub(crate) fn check(path: &Path, curves: usize) -> anyhow::Result<()> {
    if curves > MAX_CURVES {
        return Err(PlotError::TooManyCurves { curves }.into());
    }
    plot::check_path(path)?;
    output::target::check(path)
}

/// Plots the simulated policies and the LRU curve of each trace into a file.
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
    chart.write(path)?;
    Ok(())
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
            optimum: matches!(contender, Contender::Belady { .. }),
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
        }
    });
    let all = simulated.chain(measured);
    // An interrupted simulation may have no points.
    all.filter(|curve| !curve.points.is_empty()).collect()
}
