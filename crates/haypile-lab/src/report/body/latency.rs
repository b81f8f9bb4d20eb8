//! Times of single operations, where rows have them.

use haypile_measure::figure::{Estimate, Operations, PERCENTILES};
use haypile_measure::result::{Sample, Samples};
use haypile_number::grouped;
use haypile_number::{NBSP, Quantity};
use haypile_plot::MAX_CURVES;
use haypile_plot::drawing::text::printable;

use super::super::case::{Entrant, cases, labels, varying};
use super::super::chart::{Chart, Lines, Picture, Series, Ticks, slug};
use super::super::number::count;
use super::super::section::Latencies;
use super::super::table::{NOTHING, Table};
use super::curves::amounts;
use super::figures::{MAX_MULTIPLES, beyond};

/// The report's text on the limits of latencies of single operations.
pub(crate) const METHOD: &str = "Times of single operations are from a pass of its own, in which \
    the clock is read around each. They are of a closed loop: the next operation begins when the last one has \
    ended, so that a stall is one long operation, and not the many that would have arrived in the meantime \
    (coordinated omission; METHODOLOGY.md). They say how long a call takes, not how long a user waits at a \
    given rate of arrivals.";

/// One of this number of operations takes longer than a percentile: its place on the axis. That of the
/// longest would be another one for each number of operations, so it stands one step further.
const ONE_OF: [u64; PERCENTILES.len()] = [2, 10, 100, 1_000, 10_000];

/// Most kinds of operations of a case; there are as many.
const MAX_OPERATIONS: usize = 16;
/// Most rows of the table.
const MAX_ROWS: usize = 240;

/// The operations of one kind of a subject in a case.
struct Times {
    label: String,
    operations: Operations,
}

/// Returns charts and a table of the percentiles of single operations' latencies, `None` if no
/// sample has any; and messages about results that are left out.
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
        let samples = case.entrants.iter().flat_map(|entrant| entrant.samples.iter().copied());
        let operations = Operations::kinds(&samples.collect());
        left_out.extend(beyond(operations.len(), MAX_OPERATIONS).map(|beyond| {
            format!("{} of operations of {title} are not shown.", count(beyond, "further kind"))
        }));
        for operation in operations.into_iter().take(MAX_OPERATIONS) {
            let of = |entrant: &Entrant<'_>| {
                let operations = Operations::of(&entrant.samples, operation)?;
                Some(Times { label: entrant.label.clone(), operations })
            };
            let mut times: Vec<Times> = case.entrants.iter().filter_map(of).collect();
            times.sort_by(|one, other| one.shortest().total_cmp(&other.shortest()));
            groups.push((title.clone(), operation, times));
        }
    }
    let mut figures = Vec::new();
    for (title, operation, times) in groups.iter().take(MAX_MULTIPLES) {
        let (figure, beyond) = picture(title, &printable(operation), times, &labels);
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

impl Times {
    fn percentiles(&self) -> impl Iterator<Item = (&'static str, u64, f64)> {
        let named = PERCENTILES.iter().zip(ONE_OF).zip(self.operations.percentiles);
        named.map(|((percentile, one_of), ns)| (percentile.name, one_of, ns))
    }

    /// The first percentile, by which subjects are sorted.
    fn shortest(&self) -> f64 {
        self.operations.percentiles[0]
    }

    /// The chart, in words.
    fn describe(&self) -> String {
        let write = |(name, _, ns)| format!("{name} {}", Quantity::Time.write(ns));
        let values: Vec<String> = self.percentiles().map(write).collect();
        format!("{}: {}.", self.label, values.join(", "))
    }

    fn series(&self, labels: &[String]) -> Series {
        let points = self.percentiles().filter(|(.., ns)| *ns > 0.0);
        Series {
            name: self.label.clone(),
            points: points.map(|(_, one_of, ns)| (one_of, Estimate::exact(ns))).collect(),
            knows_future: false,
            place: labels.iter().position(|label| *label == self.label).unwrap_or(0),
        }
    }
}

/// A line for each subject, unless all took no time that a clock would show; and what is left out.
fn picture(
    case: &str,
    operation: &str,
    times: &[Times],
    labels: &[String],
) -> (Option<Picture>, Option<String>) {
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
    described.sort_by(|one, other| one.shortest().total_cmp(&other.shortest()));
    let sentences: Vec<String> = described.into_iter().map(Times::describe).collect();
    let y_label = format!("time of a single {operation}");
    let ticks = ONE_OF.into_iter().zip(PERCENTILES.iter().map(|one| one.name.to_owned()));
    let description = format!("Percentiles of the {y_label}. {}", sentences.join(" "));
    let caption = format!("Percentiles of the {y_label}, on a logarithmic axis; lower is better.");
    let lines = Lines {
        x_label: "percentile".to_owned(),
        ticks: Ticks::Named(ticks.collect()),
        y_label,
        quantity: Quantity::Time,
        series,
        spots: Vec::new(),
    };
    let (slug, chart) = (slug(&title), Chart::Lines(lines));
    (Some(Picture { slug, title, caption, description, chart }), left_out)
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
            let operations = &times.operations;
            row.extend(operations.percentiles.map(write));
            row.push(operations.mean.map_or_else(|| NOTHING.to_owned(), write));
            row.extend([grouped(operations.count), operations.samples.to_string()]);
            rows.push(row);
        }
    }
    let mut names = if is_one { vec!["Subject"] } else { vec!["Case", "Subject"] };
    names.push("Operation");
    names.extend(PERCENTILES.iter().map(|percentile| percentile.name));
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
