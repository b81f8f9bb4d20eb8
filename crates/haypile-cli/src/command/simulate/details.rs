//! The exact counts of simulations, a row per simulation.

use std::time::Duration;

use super::Results;
use super::tables::{byte_hit_ratio, capacity_header, cost_saved_text, hit_ratio_text};
use crate::output::capacity::capacity;
use crate::output::number::{bytes, grouped, seconds};
use crate::output::table::table;

/// Headers of the columns with a simulation's results.
const COUNTS: [&str; 13] = [
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

/// Returns a table with the exact counts of simulations, one row per simulation.
pub(crate) fn counts(results: &[Results]) -> String {
    let files = usize::from(results.len() > 1);
    let mut header = vec!["File".to_owned(); files];
    header.extend(["Policy".to_owned(), capacity_header(results)]);
    header.extend(COUNTS.map(str::to_owned));
    let has_cost = results.iter().any(|one| one.miss_cost.is_some());
    if has_cost {
        header.extend(["Cost saved", "Cost of misses"].map(str::to_owned));
    }
    let mut rows = Vec::new();
    for one in results {
        for cell in &one.cells {
            let Some(outcome) = &cell.outcome else { continue };
            let counts = &outcome.counts;
            let mut row = vec![one.name.clone(); files];
            row.extend([
                one.sweep.contenders[cell.contender].to_string(),
                capacity(one.accounting, outcome.capacity),
                hit_ratio_text(outcome),
                byte_hit_ratio(one, outcome),
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
            if let Some(cost) = one.miss_cost {
                row.push(cost_saved_text(one, outcome));
                let lost = Duration::try_from_secs_f64(cost.lost_ns(counts) / 1e9);
                row.push(seconds(lost.unwrap_or(Duration::MAX)));
            }
            rows.push(row);
        }
    }
    format!("\n{}", table(&header, files + 1, files + 2, &rows))
}
