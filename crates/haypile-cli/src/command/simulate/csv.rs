//! Results of a simulation as CSV: one line per simulation or point of a curve.

use super::Results;

const HEADER: [&str; 22] = [
    "trace",
    "policy",
    "accounting",
    "capacity",
    "hit_ratio",
    "byte_hit_ratio",
    "hits",
    "misses",
    "cold_misses",
    "capacity_misses",
    "hit_bytes",
    "miss_bytes",
    "writes",
    "deletes",
    "evictions",
    "refused",
    "used",
    "cpu_ns",
    "metadata_bytes",
    "shards",
    "cost_saved_ratio",
    "miss_cost_ns",
];

/// Returns the results of simulations as lines of CSV. A point of a curve has only a hit ratio.
pub(crate) fn lines(results: &[Results]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for one in results {
        for cell in &one.cells {
            let Some(outcome) = &cell.outcome else { continue };
            let counts = &outcome.counts;
            let byte_hit_ratio = super::hit_ratio(outcome)
                .filter(|_| one.has_sizes)
                .map(|_| counts.byte_hit_ratio());
            let numbers = [
                counts.hits,
                counts.misses,
                counts.cold_misses,
                counts.capacity_misses(),
                counts.hit_bytes,
                counts.miss_bytes,
                counts.writes,
                counts.deletes,
                counts.evictions,
                counts.refused,
                outcome.used,
                u64::try_from(outcome.cpu.as_nanos()).unwrap_or(u64::MAX),
                outcome.metadata_bytes,
                outcome.shards as u64,
            ];
            let mut record = vec![
                one.name.clone(),
                one.sweep.contenders[cell.contender].to_string(),
                one.accounting.to_string(),
                outcome.capacity.to_string(),
                number(super::hit_ratio(outcome)),
                number(byte_hit_ratio),
            ];
            record.extend(numbers.map(|number| number.to_string()));
            record.extend([
                number(one.cost_saved_ratio(outcome)),
                number(one.miss_cost.map(|cost| cost.lost_ns(counts))),
            ]);
            writer.write_record(record)?;
        }
        if let Some((curve, sizes)) = &one.curve {
            for capacity in sizes {
                let mut record = vec![
                    one.name.clone(),
                    "lru curve".to_owned(),
                    one.accounting.to_string(),
                    capacity.to_string(),
                    hit_ratio(curve.at(*capacity).miss_ratio).to_string(),
                ];
                record.resize(HEADER.len(), String::new());
                writer.write_record(record)?;
            }
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Returns a number, or nothing where there is none.
fn number(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// Returns 1 minus a miss ratio without errors of binary fractions: 0.1, not 0.09999999999999998.
fn hit_ratio(miss_ratio: f64) -> f64 {
    const DIGITS: f64 = 1e12;
    ((1.0 - miss_ratio) * DIGITS).round() / DIGITS
}
