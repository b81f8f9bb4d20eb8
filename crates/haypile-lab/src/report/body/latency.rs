//! Times of single operations, where rows have them.

use std::collections::BTreeSet;

use haypile_measure::result::{Latency, Sample, Samples};
use haypile_measure::statistics::Summary;
use haypile_number::grouped;
use haypile_sim::plot::MAX_CURVES;
use haypile_sim::plot::drawing::text::printable;

use super::super::case::{Case, Entrant, cases, labels, varying};
use super::super::chart::{Chart, Figure, Lines, Series, Ticks, slug};
use super::super::estimate::Estimate;
use super::super::number::{NBSP, Quantity, count};
use super::super::section::Latencies;
use super::super::table::{NOTHING, Table};
use super::curves::amounts;
use super::figures::{MAX_MULTIPLES, beyond};

/// The limits of such times.
pub(crate) const METHOD: &str = "Times of single operations are from a pass of its own, in which \
    the clock is read around each. They are of a closed loop: the next operation begins when the last one has \
    ended, so that a stall is one long operation, and not the many that would have arrived in the meantime \
    (coordinated omission; METHODOLOGY.md). They say how long a call takes, not how long a user waits at a \
    given rate of arrivals.";

/// A percentile of operations of one kind.
struct Percentile {
    name: &'static str,
    /// One of this number of operations takes longer: its place on the axis. That of the longest
    /// would be another one for each number of operations, so it stands one step further.
    one_of: u64,
    of: fn(&Latency) -> u64,
}

/// Those that rows have.
const PERCENTILES: [Percentile; 5] = [
    Percentile { name: "p50", one_of: 2, of: |latency| latency.p50 },
    Percentile { name: "p90", one_of: 10, of: |latency| latency.p90 },
    Percentile { name: "p99", one_of: 100, of: |latency| latency.p99 },
    Percentile { name: "p99.9", one_of: 1_000, of: |latency| latency.p999 },
    Percentile { name: "max", one_of: 10_000, of: |latency| latency.max },
];
/// The place of `max` among them.
const LONGEST: usize = PERCENTILES.len() - 1;

/// Most kinds of operations of a case; there are as many.
const MAX_OPERATIONS: usize = 16;
/// Most rows of the table.
const MAX_ROWS: usize = 240;

/// The operations of one kind of a subject in a case.
struct Times {
    label: String,
    /// In nanoseconds by percentile: medians over samples, and the longest of all.
    percentiles: [f64; PERCENTILES.len()],
    mean: Option<f64>,
    operations: u64,
    samples: usize,
}

/// Charts and the table of the percentiles of samples, `None` where no sample has any; and what is
/// left out.
pub(crate) fn latencies(samples: &Samples<'_>) -> (Option<Latencies>, Vec<String>) {
    let is_timed = |sample: &&Sample| sample.error.is_none() && sample.latency_ns.is_some();
    if !samples.iter().any(is_timed) {
        return (None, Vec::new());
    }
    let cases = cases(samples);
    let varying = varying(&cases);
    let labels = labels(cases.iter());
    let mut left_out: Vec<String> = Vec::new();
    let mut groups: Vec<(String, &str, Vec<Times>)> = Vec::new();
    for case in &cases {
        let title = case.title(&varying);
        let operations = operations(case);
        left_out.extend(beyond(operations.len(), MAX_OPERATIONS).map(|beyond| {
            format!("{} of operations of {title} are not shown.", count(beyond, "further kind"))
        }));
        for operation in operations.into_iter().take(MAX_OPERATIONS) {
            let of = |entrant: &Entrant<'_>| Times::of(entrant, operation);
            let mut times: Vec<Times> = case.entrants.iter().filter_map(of).collect();
            times.sort_by(|one, other| one.percentiles[0].total_cmp(&other.percentiles[0]));
            groups.push((title.clone(), operation, times));
        }
    }
    let mut figures = Vec::new();
    for (title, operation, times) in groups.iter().take(MAX_MULTIPLES) {
        let (figure, beyond) = figure(title, &printable(operation), times, &labels);
        figures.extend(figure);
        left_out.extend(beyond);
    }
    left_out.extend(beyond(groups.len(), MAX_MULTIPLES).map(|beyond| {
        let charts = count(beyond, "further chart");
        format!("{charts} of percentiles are not drawn; the table has them.")
    }));
    let mut table = table(&groups);
    left_out.extend(
        beyond(table.rows.len(), MAX_ROWS).map(|beyond| {
            format!("{} of percentiles are not shown.", count(beyond, "further row"))
        }),
    );
    table.rows.truncate(MAX_ROWS);
    let latencies = (!table.rows.is_empty()).then_some(Latencies { figures, table });
    (latencies, left_out)
}

/// The kinds of operations that were timed in a case.
fn operations<'a>(case: &Case<'a>) -> BTreeSet<&'a str> {
    let samples = case.entrants.iter().flat_map(Entrant::good);
    let timed = samples.filter_map(|sample| sample.latency_ns.as_ref());
    timed.flat_map(|latencies| latencies.keys().map(String::as_str)).collect()
}

impl Times {
    fn of(entrant: &Entrant<'_>, operation: &str) -> Option<Self> {
        let latency = |sample: &'_ Sample| sample.latency_ns.as_ref()?.get(operation).cloned();
        let all: Vec<Latency> = entrant.good().filter_map(latency).collect();
        let median = |values: Vec<f64>| Some(Summary::of(&values)?.median);
        let mut percentiles = [0.0; PERCENTILES.len()];
        for (value, percentile) in percentiles.iter_mut().zip(&PERCENTILES) {
            let values = all.iter().map(|latency| (percentile.of)(latency) as f64);
            *value = median(values.collect())?;
        }
        let longest = all.iter().map(|latency| latency.max).max()? as f64;
        percentiles[LONGEST] = longest;
        // It is the one number of rows that can be anything.
        let is_time = |mean: &f64| (0.0..=longest).contains(mean);
        let means = all.iter().map(|latency| latency.mean).filter(is_time);
        Some(Self {
            label: entrant.label.clone(),
            percentiles,
            mean: median(means.collect()),
            operations: all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count)),
            samples: all.len(),
        })
    }

    /// The chart, in words.
    fn describe(&self) -> String {
        let values = PERCENTILES.iter().zip(self.percentiles);
        let values: Vec<String> = values
            .map(|(percentile, ns)| format!("{} {}", percentile.name, Quantity::Time.write(ns)))
            .collect();
        format!("{}: {}.", self.label, values.join(", "))
    }

    fn series(&self, labels: &[String]) -> Series {
        let points = PERCENTILES.iter().zip(self.percentiles).filter(|(_, ns)| *ns > 0.0);
        Series {
            name: self.label.clone(),
            points: points.map(|(one, ns)| (one.one_of, Estimate::exact(ns))).collect(),
            knows_future: false,
            place: labels.iter().position(|label| *label == self.label).unwrap_or(0),
        }
    }
}

/// A line for each subject, unless all took no time that a clock would show; and what is left out.
fn figure(
    case: &str,
    operation: &str,
    times: &[Times],
    labels: &[String],
) -> (Option<Figure>, Option<String>) {
    let title = format!("Percentiles of {operation}: {case}");
    let mut drawn: Vec<(&Times, Series)> =
        times.iter().map(|times| (times, times.series(labels))).collect();
    drawn.retain(|(_, series)| !series.points.is_empty());
    // As in the other charts of the row.
    drawn.sort_by_key(|(_, series)| series.place);
    if amounts(drawn.iter().map(|(_, series)| series)).len() < 2 {
        return (None, None);
    }
    let left_out = beyond(drawn.len(), MAX_CURVES).map(|beyond| {
        format!("{} of {title} are in the table alone.", count(beyond, "further line"))
    });
    drawn.truncate(MAX_CURVES);
    let (mut described, series): (Vec<&Times>, Vec<Series>) = drawn.into_iter().unzip();
    described.sort_by(|one, other| one.percentiles[0].total_cmp(&other.percentiles[0]));
    let sentences: Vec<String> = described.into_iter().map(Times::describe).collect();
    let y_label = format!("time of a single {operation}");
    let ticks = PERCENTILES.map(|percentile| (percentile.one_of, percentile.name.to_owned()));
    let description = format!("Percentiles of the {y_label}. {}", sentences.join(" "));
    let caption = format!("Percentiles of the {y_label}, on a logarithmic axis; lower is better.");
    let lines = Lines {
        x_label: "percentile".to_owned(),
        ticks: Ticks::Named(ticks.into()),
        y_label,
        quantity: Quantity::Time,
        series,
        spots: Vec::new(),
    };
    let (slug, chart) = (slug(&title), Chart::Lines(lines));
    (Some(Figure { slug, title, caption, description, chart }), left_out)
}

/// A row for each subject and kind of operation; cases have a column where there are several.
fn table(groups: &[(String, &str, Vec<Times>)]) -> Table {
    let is_one = groups.windows(2).all(|pair| pair[0].0 == pair[1].0);
    let mut rows = Vec::new();
    for (case, operation, times) in groups {
        for times in times {
            let write = |ns: f64| Quantity::Time.write(ns);
            let mut row = if is_one { Vec::new() } else { vec![case.clone()] };
            row.extend([times.label.clone(), printable(operation)]);
            row.extend(times.percentiles.map(write));
            row.push(times.mean.map_or_else(|| NOTHING.to_owned(), write));
            row.extend([grouped(times.operations), times.samples.to_string()]);
            rows.push(row);
        }
    }
    let mut names = if is_one { vec!["Subject"] } else { vec!["Case", "Subject"] };
    names.push("Operation");
    names.extend(PERCENTILES.map(|percentile| percentile.name));
    names.extend(["Mean", "Count", "Samples"]);
    let of = match groups.first() {
        Some((case, _, _)) if is_one => format!("{case}: times"),
        _ => "Times".to_owned(),
    };
    let caption = format!(
        "{of} of single operations: p90 is what 90{NBSP}% of them take at most. Medians over samples, but of \
         max, which is the longest of all"
    );
    let text: &[usize] = if is_one { &[1] } else { &[1, 2] };
    Table::of_numbers(caption, &names, rows).with_text_in(text)
}
