//! The tables of a simulation, in the shape of RelStorage's: a row per file and size, a column per
//! policy.

use std::fmt::Write;

use haypile_sim::simulate::{Accounting, Cell, Outcome};

use super::Results;
use crate::output::number::{bytes, grouped, percent, ratio, seconds};
use crate::output::table::table;

/// Marks the best of a row.
const BEST: &str = "*";

/// Everything that people get to see.
pub(crate) fn text(results: &[Results], details: bool) -> String {
    let mut text = String::new();
    for one in results {
        header(&mut text, one);
    }
    if results.iter().any(|one| !one.sweep.contenders.is_empty()) {
        if details {
            text.push_str(&counts(results));
        } else {
            matrices(&mut text, results);
        }
    }
    for one in results {
        super::curve::text(&mut text, one);
    }
    text
}

fn header(text: &mut String, one: &Results) {
    let (requests, keys) = (grouped(one.requests), grouped(one.keys));
    let _ = write!(text, "{}: {requests} requests for {keys} keys", one.name);
    if let Some(outcome) = outcomes(one).next() {
        let counts = &outcome.counts;
        if counts.reads() > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a share for people")]
            let cold = counts.cold_misses as f64 / counts.reads() as f64;
            let _ = write!(
                text,
                "; {} reads, {} of them cold misses, which no cache avoids",
                grouped(counts.reads()),
                percent(cold)
            );
        }
    }
    text.push('\n');
}

fn outcomes(one: &Results) -> impl Iterator<Item = &Outcome> {
    one.cells.iter().filter_map(|cell| cell.outcome.as_ref())
}

fn matrices(text: &mut String, results: &[Results]) {
    let _ = write!(text, "\nHit ratio of reads ({BEST} best)\n");
    matrix(text, results, |one| one.counts.hit_ratio(), |one| ratio(one.counts.hit_ratio()));
    if results.iter().any(|one| one.has_sizes) {
        let _ = write!(text, "\nByte hit ratio\n");
        let value = |one: &Outcome| one.counts.byte_hit_ratio();
        matrix(text, results, value, |one| ratio(one.counts.byte_hit_ratio()));
    }
    let _ = write!(text, "\nProcessor time\n");
    matrix(text, results, |one| -one.cpu.as_secs_f64(), |one| seconds(one.cpu));
    let _ = write!(text, "\nUsed at the end\n");
    matrix(text, results, |_| 0.0, |one| grouped(one.used));
}

/// A row per file and size, a column per policy. The best of a row is the one of the greatest
/// value; where all are alike, none is.
fn matrix(
    text: &mut String,
    results: &[Results],
    value: impl Fn(&Outcome) -> f64,
    show: impl Fn(&Outcome) -> String,
) {
    let Some(first) = results.first() else { return };
    let mut header = vec!["File".to_owned(), "Size".to_owned()];
    header.extend(first.sweep.contenders.iter().map(ToString::to_string));
    let mut rows = Vec::new();
    for one in results {
        for (at, capacity) in one.sweep.capacities.iter().enumerate() {
            let cells: Vec<&Cell> = one.cells.iter().filter(|cell| cell.capacity == at).collect();
            let values: Vec<f64> =
                cells.iter().filter_map(|cell| cell.outcome.as_ref()).map(&value).collect();
            let best = values.iter().copied().fold(f64::MIN, f64::max);
            let worst = values.iter().copied().fold(f64::MAX, f64::min);
            let mut row = vec![one.name.clone(), size(one, *capacity)];
            for contender in 0..one.sweep.contenders.len() {
                let cell = cells.iter().find(|cell| cell.contender == contender);
                let outcome = cell.and_then(|cell| cell.outcome.as_ref());
                row.push(outcome.map_or_else(
                    || "-".to_owned(),
                    |outcome| {
                        let is_best = best > worst && value(outcome) >= best;
                        format!("{}{}", show(outcome), if is_best { BEST } else { " " })
                    },
                ));
            }
            rows.push(row);
        }
    }
    text.push_str(&table(header, 1, rows));
}

/// A row per simulation, with exact counts.
fn counts(results: &[Results]) -> String {
    let header = [
        "File",
        "Policy",
        "Size",
        "Hit ratio",
        "Byte hit ratio",
        "Hits",
        "Cold misses",
        "Capacity misses",
        "Writes",
        "Deletes",
        "Evictions",
        "Refused",
        "Entries",
        "Used",
        "Time",
        "Metadata",
    ];
    let mut rows = Vec::new();
    for one in results {
        for cell in &one.cells {
            let Some(outcome) = &cell.outcome else { continue };
            let counts = &outcome.counts;
            rows.push(vec![
                one.name.clone(),
                one.sweep.contenders[cell.contender].to_string(),
                size(one, outcome.capacity),
                ratio(counts.hit_ratio()),
                if one.has_sizes { ratio(counts.byte_hit_ratio()) } else { "-".to_owned() },
                grouped(counts.hits),
                grouped(counts.cold_misses),
                grouped(counts.capacity_misses()),
                grouped(counts.writes),
                grouped(counts.deletes),
                grouped(counts.evictions),
                grouped(counts.refused),
                grouped(outcome.entries),
                grouped(outcome.used),
                seconds(outcome.cpu),
                bytes(outcome.metadata_bytes),
            ]);
        }
    }
    format!("\n{}", table(header.map(str::to_owned).to_vec(), 2, rows))
}

/// A capacity, as it was probably written.
pub(crate) fn size(one: &Results, capacity: u64) -> String {
    match one.accounting {
        Accounting::Objects => grouped(capacity),
        _ if capacity.is_multiple_of(1000) || capacity.is_multiple_of(1024) => {
            haypile::ByteSize(capacity).to_string()
        }
        _ => grouped(capacity),
    }
}
