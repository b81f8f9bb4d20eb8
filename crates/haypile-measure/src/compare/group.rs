//! The samples of one side that belong together.

use std::collections::BTreeMap;

use super::metric::Metric;
use super::select::Selector;
use crate::figure::CaseNotes;
use crate::result::{CaseKey, Parameters, Sample, Samples, Values};
use crate::statistics::Timing;

/// The key by which old samples are matched with new ones: experiment, case, parameters, and
/// subject.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct GroupKey<'a> {
    pub(super) case: CaseKey<'a>,
    /// The subject's name or label; empty where subjects of different names are compared.
    subject: String,
}

/// The choice of what distinguishes subjects (caches under test) in a comparison: nothing, the name, or name and
/// program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SubjectNaming {
    /// No part: each side is one subject.
    One,
    /// The name alone: each side is one program.
    Name,
    /// The name and the program.
    Label,
}

/// The samples of one side (old or new) that share experiment, case, parameters and subject.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    /// The parameters of the case of the group's first sample.
    pub(super) parameters: &'a Parameters,
    /// The name of the subject (cache under test) of the group's first sample.
    pub(super) subject: &'a str,
    /// The names of the programs (runners) that measured the cache of these samples; a comparison is an
    /// error if there are several.
    pub(super) programs: Vec<String>,
    pub(super) values: Values<'a>,
    pub(super) seeds: Vec<u64>,
    pub(super) samples: u64,
    pub(super) unmeasured: u64,
    pub(super) errors: u64,
    pub(super) first_error: Option<String>,
    /// The median length of the blocks (rounds) of these samples, and whether their times are confirmed; unknown if the
    /// metric is not a time.
    pub(super) timing: Timing,
    /// Notes for people on the times of these samples, such as a trend; none if the metric is not a time.
    pub(super) notes: Vec<String>,
    pub(super) has_slow_samples: bool,
}

impl<'a> GroupKey<'a> {
    fn of(sample: &'a Sample, naming: SubjectNaming) -> Self {
        Self {
            case: CaseKey::of(sample),
            subject: match naming {
                SubjectNaming::One => String::new(),
                SubjectNaming::Name => sample.subject.name.clone(),
                SubjectNaming::Label => sample.subject.identity().to_string(),
            },
        }
    }
}

impl<'a> Group<'a> {
    /// The group of samples, of which there is at least one.
    fn of(samples: &Samples<'a>, notes: Option<&CaseNotes<'_>>, metric: Metric) -> Self {
        let mut group = Self {
            parameters: &samples[0].parameters,
            subject: &samples[0].subject.name,
            programs: Vec::new(),
            values: metric.figure().values(samples),
            seeds: Vec::new(),
            samples: samples.len() as u64,
            unmeasured: 0,
            errors: 0,
            first_error: None,
            timing: if metric.is_time() { samples.timing() } else { Timing::default() },
            notes: notes.map_or_else(Vec::new, |notes| notes.on(samples)),
            has_slow_samples: notes
                .is_some_and(|notes| notes.has_slow_samples(metric.figure(), samples)),
        };
        for sample in samples.iter() {
            if !group.seeds.contains(&sample.seed) {
                group.seeds.push(sample.seed);
            }
            if !group.programs.contains(&sample.subject.program) {
                group.programs.push(sample.subject.program.clone());
            }
            if let Some(error) = &sample.error {
                group.errors += 1;
                group.first_error.get_or_insert_with(|| error.clone());
            } else if metric.figure().of_sample(sample).is_none() {
                group.unmeasured += 1;
            }
        }
        group
    }
}

/// Returns the chosen subjects' samples in groups of the same case and subject (cache under test), in the order in
/// which the first samples of the groups come.
pub(super) fn groups<'a>(
    samples: &'a [Sample],
    selector: &Selector,
    naming: SubjectNaming,
    metric: Metric,
) -> Vec<(GroupKey<'a>, Group<'a>)> {
    let cases = || samples.iter().collect::<Samples<'_>>().grouped(CaseKey::of);
    let notes: BTreeMap<_, _> = if metric.is_time() {
        cases().into_iter().map(|(key, case)| (key, CaseNotes::of(&case))).collect()
    } else {
        BTreeMap::new()
    };
    let chosen = samples.iter().filter(|sample| selector.takes(&sample.subject));
    let groups = chosen.collect::<Samples<'_>>().grouped(|sample| GroupKey::of(sample, naming));
    let group = |(key, samples): (GroupKey<'a>, _)| {
        let group = Group::of(&samples, notes.get(&key.case), metric);
        (key, group)
    };
    groups.into_iter().map(group).collect()
}
