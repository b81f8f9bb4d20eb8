//! Tables of documents as Markdown.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use haypile_measure::result::{CaseKey, Sample, Samples};
use haypile_number::{Quantity, with_plain_spaces};

use super::cell::{self, Cell};
use super::error::MarkerProblem;
use super::marker::{Figure, Marker, SpliceColumn};
use super::select::{names, value};

/// Values of names, in the names' order. They sort as people count: numbers by their value.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Values(Vec<String>);

impl Ord for Values {
    fn cmp(&self, other: &Self) -> Ordering {
        let pairs = self.0.iter().zip(&other.0);
        pairs.map(|(a, b)| compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Values {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Numbers by value and before text; text by its letters.
fn compare(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

/// A row: what it is about, and a cell for each combination of what stands across.
type SplicedRow<'a> = BTreeMap<Values, Cell<'a>>;

/// Returns a document's table of these samples as Markdown text.
pub(super) fn table(samples: &[&Sample], marker: &Marker) -> Result<String, MarkerProblem> {
    let name_columns: Vec<String> = marker.names().cloned().collect();
    let values = |sample: &Sample, names: &[String]| {
        Values(names.iter().map(|name| value(sample, name).unwrap_or_default()).collect())
    };
    let mut rows: BTreeMap<Values, SplicedRow<'_>> = BTreeMap::new();
    for sample in samples {
        let row = rows.entry(values(sample, &name_columns)).or_default();
        row.entry(values(sample, &marker.across)).or_default().samples.push(sample);
    }
    let all = names(samples.iter().copied());
    for cell in rows.values().flat_map(BTreeMap::values) {
        refuse_mixture(&cell.samples, &all)?;
    }
    if let Some(baseline) = &marker.baseline {
        add_baseline(&mut rows, samples, baseline, &all)?;
    }
    let mut across: Vec<&Values> = rows.values().flat_map(BTreeMap::keys).collect();
    across.sort();
    across.dedup();
    let sorted = sort(&rows, &name_columns, marker, &across)?;
    let mut lines = vec![header(marker, &across)];
    let figures = |column: &SpliceColumn| if stands_across(column) { across.len() } else { 1 };
    let rule = |column: &SpliceColumn| if is_figure(column) { "---:|" } else { "---|" };
    let rules = marker.columns.iter().map(|column| rule(column).repeat(figures(column)));
    lines.push(format!("|{}", rules.collect::<String>()));
    for (key, row) in sorted {
        let mut names = name_columns.iter().zip(&key.0);
        let mut cells: Vec<String> = Vec::new();
        for column in &marker.columns {
            match column {
                SpliceColumn::Name(_) => {
                    let (name, text) = names.next().expect("a value for each name");
                    cells.push(text_cell(name, text));
                }
                SpliceColumn::Figure(figure) if figure.is_of_row() => {
                    cells.push(cell::ratio(mean_byte_hit_ratio(row, &across)));
                }
                SpliceColumn::Figure(figure) => cells.extend(across.iter().map(|values| {
                    row.get(*values).map_or("-".to_owned(), |cell| cell.figure(figure, marker))
                })),
            }
        }
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    // Documents are searched and compared: their spaces are plain.
    Ok(with_plain_spaces(&lines.join("\n")) + "\n")
}

fn is_figure(column: &SpliceColumn) -> bool {
    matches!(column, SpliceColumn::Figure(_))
}

/// Whether it has a column for each combination of what stands across.
fn stands_across(column: &SpliceColumn) -> bool {
    matches!(column, SpliceColumn::Figure(figure) if !figure.is_of_row())
}

/// The mean over all cells of the table's width; `None` where one has none, for it would be of others.
fn mean_byte_hit_ratio(row: &SplicedRow<'_>, across: &[&Values]) -> Option<f64> {
    let sum: Option<f64> = across.iter().map(|values| row.get(*values)?.byte_hit_ratio()).sum();
    Some(sum? / across.len() as f64)
}

/// All samples of a cell are of one subject and one case.
fn refuse_mixture(samples: &[&Sample], names: &[String]) -> Result<(), MarkerProblem> {
    let Some((first, others)) = samples.split_first() else { return Ok(()) };
    // A runner that failed may not have said which version it runs.
    let is_unknown = |sample: &Sample, name: &str| {
        sample.error.is_some() && matches!(name, "version" | "language")
    };
    let is_same = |name: &String, other: &&&Sample| {
        value(first, name) == value(other, name)
            || is_unknown(first, name)
            || is_unknown(other, name)
    };
    for name in names {
        if let Some(other) = others.iter().find(|other| !is_same(name, other)) {
            let text = |sample| value(sample, name).unwrap_or_else(|| "none".to_owned());
            let (one, other) = (text(first), text(other));
            return Err(MarkerProblem::Mixed { name: name.clone(), one, other });
        }
    }
    Ok(())
}

/// Gives each cell the baseline's samples of the same case and parameters.
fn add_baseline<'a>(
    rows: &mut BTreeMap<Values, SplicedRow<'a>>,
    samples: &[&'a Sample],
    baseline: &str,
    names: &[String],
) -> Result<(), MarkerProblem> {
    let own = samples.iter().copied().filter(|sample| sample.subject.name == baseline);
    let own: Samples<'_> = own.collect();
    let known: BTreeMap<CaseKey<'_>, Samples<'_>> = own.grouped(CaseKey::of).into_iter().collect();
    if known.is_empty() {
        let mut subjects: Vec<String> = samples.iter().map(|it| it.subject.name.clone()).collect();
        subjects.sort();
        subjects.dedup();
        let filter = format!("the baseline's subject {baseline}");
        return Err(MarkerProblem::NothingLeft { filter, known: subjects });
    }
    for samples in known.values() {
        refuse_mixture(samples, names)?;
    }
    for cell in rows.values_mut().flat_map(BTreeMap::values_mut) {
        cell.baseline = known.get(&CaseKey::of(cell.samples[0])).cloned().unwrap_or_default();
    }
    Ok(())
}

/// Rows in the order that was asked for; by their names otherwise.
fn sort<'r, 'a>(
    rows: &'r BTreeMap<Values, SplicedRow<'a>>,
    names: &[String],
    marker: &Marker,
    across: &[&Values],
) -> Result<Vec<(&'r Values, &'r SplicedRow<'a>)>, MarkerProblem> {
    let mut sorted: Vec<(&Values, &SplicedRow<'a>)> = rows.iter().collect();
    // From the last to the first: sorting keeps the order of equals.
    for name in marker.sort.iter().rev() {
        let unknown = || MarkerProblem::UnknownSort { name: name.clone() };
        if let Some(at) = names.iter().position(|column| column == name) {
            sorted.sort_by(|(a, _), (b, _)| compare(&a.0[at], &b.0[at]));
        } else {
            let figure = Figure::named(name).ok_or_else(unknown)?;
            if !marker.columns.contains(&SpliceColumn::Figure(figure.clone())) {
                return Err(unknown());
            }
            let rank = |row: &SplicedRow<'_>| {
                if figure.is_of_row() {
                    return mean_byte_hit_ratio(row, across).map_or(f64::INFINITY, |mean| -mean);
                }
                row.get(across[0]).map_or(f64::INFINITY, |cell| cell.rank(&figure, marker))
            };
            sorted.sort_by(|(_, a), (_, b)| rank(a).total_cmp(&rank(b)));
        }
    }
    Ok(sorted)
}

fn header(marker: &Marker, across: &[&Values]) -> String {
    let mut cells = Vec::new();
    for column in &marker.columns {
        match column {
            SpliceColumn::Name(name) => cells.push(escape(name)),
            SpliceColumn::Figure(figure) => {
                let title = title(figure, marker);
                if figure.is_of_row() {
                    cells.push(title);
                    continue;
                }
                for values in across {
                    let settings = marker.across.iter().zip(&values.0);
                    let settings: Vec<String> =
                        settings.map(|(name, value)| format!("{name}={value}")).collect();
                    let parts = [title.as_str(), &settings.join(" ")];
                    let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
                    cells.push(escape(&parts.join(", ")));
                }
            }
        }
    }
    format!("| {} |", cells.join(" | "))
}

/// The name of a figure, with its unit.
fn title(figure: &Figure, marker: &Marker) -> String {
    match figure {
        Figure::Of(figure) if figure.quantity == Quantity::Time => {
            format!("{} (MAD)", small(figure.title))
        }
        Figure::Of(figure) => small(figure.title),
        Figure::Times => format!("{} relative (95 %)", marker.metric),
        Figure::MeanByteHitRatio => "mean byte hit ratio".to_owned(),
        Figure::Samples => "samples".to_owned(),
        Figure::Count(name) => {
            let name = name.strip_suffix("_ns").unwrap_or(name);
            escape(&name.replace('_', " "))
        }
    }
}

/// A title as the names of columns in documents are: in small letters, unless it is an abbreviation.
fn small(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain([second]).chain(letters).collect()
        }
        _ => title.to_owned(),
    }
}

/// Names of subjects are code.
fn text_cell(name: &str, text: &str) -> String {
    let is_code = name == "subject" && !text.contains('`');
    if is_code { format!("`{}`", escape(text)) } else { escape(text) }
}

/// Escapes everything that would end a cell or a line.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
