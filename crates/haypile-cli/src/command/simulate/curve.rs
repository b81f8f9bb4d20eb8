//! The LRU curve in text, and the plot of everything.

use std::fmt::Write;
use std::path::Path;
use std::slice;

use super::Results;
use super::tables::capacity_header;
use crate::output::capacity::capacity;
use crate::output::table::table;

/// The curve as a table, if it was asked for.
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
    header.extend(is_sampled.then(|| "95 % interval".to_owned()));
    text.push_str(&table(&header, 0, 1, &rows.collect::<Vec<_>>()));
}

/// Draws everything into a file.
pub(crate) fn plot(results: &[Results], path: &Path) -> anyhow::Result<()> {
    let _ = (results, path);
    anyhow::bail!("plots are not built yet")
}
