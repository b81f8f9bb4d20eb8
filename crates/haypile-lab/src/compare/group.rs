//! The samples of one side that belong together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::metric::Metric;
use super::select::{Selector, label};
use crate::result::{Parameters, Sample};
use crate::statistics::Summary;

/// Samples of the same experiment, case and parameters, and of what counts as the same subject,
/// are compared with each other.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    pub(super) experiment: String,
    pub(super) case: String,
    /// By name, values as JSON: what compares and sorts without regard to the order in the file.
    parameters: BTreeMap<String, String>,
    /// The subject's name or label; empty where subjects of different names are compared.
    subject: String,
}

/// What tells subjects apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Naming {
    /// Nothing: each side is one subject.
    One,
    /// The name: each side is one program.
    Name,
    /// The name and the program.
    Label,
}

/// Where a sample was measured. Samples of both sides from the same place were measured side by
/// side.
pub(super) type Place = (String, u64);

/// The samples of a side that share a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) parameters: Parameters,
    pub(super) subject: String,
    /// The programs that ran it. One, or the comparison is refused.
    pub(super) programs: Vec<String>,
    pub(super) values: BTreeMap<Place, Vec<f64>>,
    pub(super) seeds: Vec<u64>,
    pub(super) samples: u64,
    pub(super) unmeasured: u64,
    pub(super) errors: u64,
    pub(super) first_error: Option<String>,
}

impl Key {
    fn of(sample: &Sample, naming: Naming) -> Self {
        let as_text = |(name, value): (&String, &Value)| (name.clone(), value.to_string());
        Self {
            experiment: sample.experiment.clone(),
            case: sample.case.clone(),
            parameters: sample.parameters.iter().map(as_text).collect(),
            subject: match naming {
                Naming::One => String::new(),
                Naming::Name => sample.subject.name.clone(),
                Naming::Label => label(&sample.subject),
            },
        }
    }
}

impl Group {
    fn add(&mut self, sample: &Sample, metric: Metric) {
        self.samples += 1;
        if !self.seeds.contains(&sample.seed) {
            self.seeds.push(sample.seed);
        }
        if !self.programs.contains(&sample.subject.program) {
            self.programs.push(sample.subject.program.clone());
        }
        if let Some(error) = &sample.error {
            self.errors += 1;
            self.first_error.get_or_insert_with(|| error.clone());
        } else if let Some(value) = metric.of(sample) {
            let place = (sample.run.clone(), sample.block);
            self.values.entry(place).or_default().push(value);
        } else {
            self.unmeasured += 1;
        }
    }

    /// The value of each place. A subject that was measured several times in a block counts once,
    /// by the median: its samples are no more independent of each other than a block has places.
    pub(super) fn by_place(&self) -> BTreeMap<&Place, f64> {
        let median = |values: &[f64]| Summary::of(values).map(|summary| summary.median);
        let places = self.values.iter();
        places.filter_map(|(place, values)| Some((place, median(values)?))).collect()
    }
}

/// Groups in the order in which their first samples come.
pub(super) fn groups(
    samples: &[Sample],
    selector: &Selector,
    naming: Naming,
    metric: Metric,
) -> Vec<(Key, Group)> {
    let mut groups: Vec<(Key, Group)> = Vec::new();
    let mut places: BTreeMap<Key, usize> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| selector.takes(&sample.subject)) {
        let key = Key::of(sample, naming);
        let at = *places.entry(key).or_insert_with_key(|key| {
            let subject = sample.subject.name.clone();
            let parameters = sample.parameters.clone();
            groups.push((key.clone(), Group { parameters, subject, ..Group::default() }));
            groups.len() - 1
        });
        groups[at].1.add(sample, metric);
    }
    groups
}
