//! Selection of samples, and their fields by name.

use std::collections::BTreeSet;

use haypile_measure::parameters;
use haypile_measure::result::Sample;

use super::error::MarkerProblem;
use super::marker::{Figure, Marker, SpliceColumn};

/// Fields that every sample has in addition to its parameters and its run: its identity.
const FIELDS: [&str; 6] = ["experiment", "case", "subject", "program", "version", "language"];
/// The most values that an error lists.
const MOST_LISTED: usize = 12;

/// Returns the value of the sample's field or parameter with this name, as text; `None` if it has
/// none.
pub(super) fn value(sample: &Sample, name: &str) -> Option<String> {
    let subject = &sample.subject;
    Some(match name {
        "experiment" => sample.experiment.clone(),
        "case" => sample.case.clone(),
        "subject" => subject.name.clone(),
        "program" => subject.program.clone(),
        "version" => subject.version.clone(),
        "language" => subject.language.clone(),
        "run" => sample.run.clone(),
        _ => parameters::text(sample.parameters.get(name)?),
    })
}

/// Returns the names of the samples' fields and parameters, which must be equal within a row of a
/// table. Samples of several runs may be in one row.
pub(super) fn names<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<String> {
    let mut names: Vec<String> = FIELDS.map(str::to_owned).to_vec();
    let parameters: BTreeSet<&String> =
        samples.into_iter().flat_map(|sample| sample.parameters.keys()).collect();
    names.extend(parameters.into_iter().cloned());
    names
}

/// Returns the samples that match the filters of a table's marker. A name that no sample has is an
/// error.
pub(super) fn select<'a>(
    samples: &'a [Sample],
    marker: &Marker,
) -> Result<Vec<&'a Sample>, MarkerProblem> {
    let filters = marker.filters.iter().map(|(name, _)| name);
    for name in marker.names().chain(&marker.across).chain(filters) {
        if !samples.iter().any(|sample| value(sample, name).is_some()) {
            let known = names(samples);
            return Err(MarkerProblem::UnknownName { name: name.clone(), known });
        }
    }
    for column in &marker.columns {
        let SpliceColumn::Figure(Figure::Count(name)) = column else { continue };
        let known: BTreeSet<&String> = samples.iter().flat_map(|it| it.counts.keys()).collect();
        if !known.contains(name) {
            let known = known.into_iter().take(MOST_LISTED).map(|it| format!("count:{it}"));
            let name = format!("count:{name}");
            return Err(MarkerProblem::UnknownName { name, known: known.collect() });
        }
    }
    let mut left: Vec<&Sample> = samples.iter().collect();
    for (name, allowed) in &marker.filters {
        let known: BTreeSet<String> =
            left.iter().filter_map(|sample| value(sample, name)).take(100_000).collect();
        left.retain(|sample| value(sample, name).is_some_and(|value| allowed.contains(&value)));
        if left.is_empty() {
            let filter = format!("{name}={}", allowed.join(","));
            let known = known.into_iter().take(MOST_LISTED).collect();
            return Err(MarkerProblem::NothingLeft { filter, known });
        }
    }
    Ok(left)
}
