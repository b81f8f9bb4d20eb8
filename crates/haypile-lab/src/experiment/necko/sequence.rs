//! `sequence`: many resources, one after the other, and then all of them again.

use std::path::Path;

use haypile_measure::job::{self, JobError, Ops, Population};
use haypile_measure::measure::Contender;
use haypile_measure::measure::{Case, Expected};
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;

use super::super::parameters;
use super::over_http::{Requests, sequence_cases};
use super::{
    NOT_NONE, SequenceOptions, check_delay, delay, key, printout, settings, setup_over_http,
};
use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `sequence` in results.
pub const NAME: &str = "sequence";

/// The number of resources that the experiment `sequence` reads one after the other.
pub const KEYS: u32 = 101;

/// The experiment `sequence`: reading 101 resources one after the other.
pub(crate) struct SequenceExperiment;

impl OnCaches for SequenceExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "A sequence of calls";
    const FILE: &'static str = include_str!("sequence.toml");

    type Options = SequenceOptions;

    fn check(options: &SequenceOptions, _measuring: &Measuring) -> anyhow::Result<()> {
        check_delay(options.http, options.origin_delay)
    }

    fn setup(
        options: &SequenceOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        if options.http.http {
            let delay = delay(options.origin_delay);
            let requests = Requests { runs: None, delay, seed: measuring.run.seed };
            return setup_over_http(measuring, subjects, requests, |requests, origin| {
                sequence_cases(&options.sizes, KEYS, requests, origin)
            });
        }
        let subjects = options.http.subjects(subjects)?;
        Ok(Setup::new(cases(&options.sizes, measuring.run.seed), subjects))
    }

    fn print(samples: &[Sample], contenders: &[Contender]) -> Printout {
        printout::printout(samples, contenders)
    }

    fn body(
        _samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        super::section::body(cases)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SequenceKind {
    MissNoStore,
    Miss,
    Hit,
}

impl SequenceKind {
    const ALL: [Self; 3] = [Self::MissNoStore, Self::Miss, Self::Hit];

    fn name(self) -> &'static str {
        match self {
            Self::MissNoStore => "miss (no-store)",
            Self::Miss => "miss",
            Self::Hit => "hit",
        }
    }
}

/// Returns the cases of the experiment `sequence` (resources read one after the other) for values
/// of these sizes, in bytes.
pub fn cases(sizes: &[u32], seed: u64) -> Vec<Case> {
    let of_size = |&value_bytes: &u32| SequenceKind::ALL.map(|kind| case(kind, value_bytes, seed));
    sizes.iter().flat_map(of_size).collect()
}

fn case(kind: SequenceKind, value_bytes: u32, seed: u64) -> Case {
    Case {
        experiment: NAME,
        name: kind.name().to_owned(),
        parameters: parameters([("value_bytes", value_bytes.into()), ("keys", KEYS.into())]),
        processes: 1,
        skips: if kind == SequenceKind::MissNoStore { &[] } else { NOT_NONE },
        write: Box::new(move |directory| write(directory, kind, value_bytes, seed)),
    }
}

fn write(
    directory: &Path,
    kind: SequenceKind,
    value_bytes: u32,
    seed: u64,
) -> Result<Expected, JobError> {
    let mut population = Population::new();
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    for number in 0..KEYS {
        population.push(key(number).as_bytes(), value_bytes)?;
        match kind {
            SequenceKind::MissNoStore => timed.load(number),
            SequenceKind::Miss => timed.get_set(number),
            SequenceKind::Hit => {
                prepare.set(number);
                timed.get(number);
            }
        }
    }
    let all = u64::from(KEYS);
    let is_hit = kind == SequenceKind::Hit;
    let expected = Expected {
        operations: all,
        reads: all,
        hits: Some(if is_hit { all } else { 0 }),
        verified_before: is_hit.then_some(all),
        verified_after: Some(if kind == SequenceKind::MissNoStore { 0 } else { all }),
        ..Expected::default()
    };
    // Looking at every key before would bring what a miss needs into the processor's caches.
    let settings = settings(seed, value_bytes).with_verification(is_hit, true);
    job::write(directory, &settings, &population, &prepare, &[timed])?;
    Ok(expected)
}
