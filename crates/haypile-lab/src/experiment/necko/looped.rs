//! `loop`: one operation, again and again.

use std::path::Path;

use anyhow::bail;
use haypile_measure::job::{self, JobError, Ops, Population};
use haypile_measure::measure::Contender;
use haypile_measure::measure::{Case, Expected};
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;

use super::super::parameters;
use super::over_http::{Requests, loop_cases};
use super::{LoopOptions, NOT_NONE, check_delay, delay, key, printout, settings, setup_over_http};
use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `loop` in results.
pub const NAME: &str = "loop";

/// The number of runs that the user does not say.
const RUNS: u32 = 100_000;

/// A run copies the value several times: this number of bytes of values is enough for one
/// measurement.
const BYTES: u64 = 2 << 30;

/// The experiment `loop`: repeated reads and writes of one resource, as in the Necko benchmarks.
pub(crate) struct LoopExperiment;

impl OnCaches for LoopExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "The cost of a call";
    const FILE: &'static str = include_str!("loop.toml");

    type Options = LoopOptions;

    fn check(options: &LoopOptions, _measuring: &Measuring) -> anyhow::Result<()> {
        let is_request = |case: &String| case == "miss-query";
        if !options.http.http && !options.case.is_empty() && options.case.iter().all(is_request) {
            bail!(
                "miss-query is an HTTP request, which needs an HTTP cache; with --http=false, name \
                 other operations"
            );
        }
        check_delay(options.http, options.origin_delay)
    }

    fn setup(
        options: &LoopOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        if options.http.http {
            let (runs, delay) = (options.runs, delay(options.origin_delay));
            let requests = Requests { runs, delay, seed: measuring.run.seed };
            return setup_over_http(measuring, subjects, requests, |requests, origin| {
                wanted(options, loop_cases(&options.sizes, requests, origin))
            });
        }
        let subjects = options.http.subjects(subjects)?;
        Ok(Setup::new(wanted(options, cases(options, measuring.run.seed)), subjects))
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

/// The cases that were asked for.
fn wanted(options: &LoopOptions, mut cases: Vec<Case>) -> Vec<Case> {
    cases.retain(|case| options.wants(&case.name));
    cases
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopKind {
    Call,
    CallAndClear,
    MissAfterClear,
    MissNoStore,
    Hit,
}

impl LoopKind {
    fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::CallAndClear => "call + clear",
            Self::MissAfterClear => "miss (clear)",
            Self::MissNoStore => "miss (no-store)",
            Self::Hit => "hit",
        }
    }

    fn skips(self) -> &'static [&'static str] {
        if matches!(self, Self::Hit | Self::MissAfterClear) { NOT_NONE } else { &[] }
    }

    fn timed(self, runs: u32) -> Ops {
        let mut ops = Ops::new();
        for _ in 0..runs {
            match self {
                Self::Call | Self::Hit => ops.get(0),
                Self::CallAndClear => {
                    ops.clear();
                    ops.get(0);
                }
                Self::MissAfterClear => {
                    ops.clear();
                    ops.get_set(0);
                }
                Self::MissNoStore => ops.load(0),
            }
        }
        ops
    }
}

/// Returns the measurements (cases) of the experiment `loop`, in the order of the Necko benchmarks.
pub fn cases(options: &LoopOptions, seed: u64) -> Vec<Case> {
    let once = [LoopKind::Call, LoopKind::CallAndClear, LoopKind::MissAfterClear];
    let of_size = |(at, &value_bytes): (usize, &u32)| {
        let kinds = once.into_iter().filter(move |_| at == 0);
        let kinds = kinds.chain([LoopKind::MissNoStore, LoopKind::Hit]);
        let runs = options.runs.unwrap_or(RUNS);
        kinds.map(move |kind| case(kind, value_bytes, runs, seed))
    };
    options.sizes.iter().enumerate().flat_map(of_size).collect()
}

fn case(kind: LoopKind, value_bytes: u32, runs: u32, seed: u64) -> Case {
    let most = u32::try_from(BYTES / u64::from(value_bytes).max(1)).unwrap_or(u32::MAX);
    let runs = runs.min(most).max(1);
    Case {
        experiment: NAME,
        name: kind.name().to_owned(),
        parameters: parameters([("value_bytes", value_bytes.into()), ("runs", runs.into())]),
        processes: 1,
        skips: kind.skips(),
        write: Box::new(move |directory| write(directory, kind, value_bytes, runs, seed)),
    }
}

fn write(
    directory: &Path,
    kind: LoopKind,
    value_bytes: u32,
    runs: u32,
    seed: u64,
) -> Result<Expected, JobError> {
    let mut population = Population::new();
    population.push(key(0).as_bytes(), value_bytes)?;
    let mut prepare = Ops::new();
    if kind == LoopKind::Hit {
        prepare.set(0);
    }
    let timed = kind.timed(runs);
    let is_there = u64::from(kind == LoopKind::Hit);
    let expected = Expected {
        operations: timed.operations(),
        reads: timed.reads(),
        hits: Some(is_there * timed.reads()),
        verified_before: Some(is_there),
        verified_after: Some(u64::from(matches!(kind, LoopKind::Hit | LoopKind::MissAfterClear))),
        ..Expected::default()
    };
    job::write(directory, &settings(seed, value_bytes), &population, &prepare, &[timed])?;
    Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::super::SIZES;
    use super::*;
    use crate::experiment::on_caches::OverHttp;

    /// The sizes of the source, a hundred thousand runs.
    fn options() -> LoopOptions {
        LoopOptions {
            case: Vec::new(),
            sizes: SIZES.to_vec(),
            runs: None,
            http: OverHttp::default(),
            origin_delay: None,
        }
    }

    #[test]
    fn cases_are_those_that_are_asked_for() {
        let of = |case: &str| {
            let options = LoopOptions { case: vec![case.to_owned()], ..options() };
            let all = wanted(&options, cases(&options, 1));
            let names: Vec<_> = all.iter().map(|case| case.name.clone()).collect();
            names.join(",")
        };
        assert_eq!(of("hit"), "hit,hit,hit,hit");
        assert_eq!(of("call-clear"), "call + clear");
        // It is a request alone.
        assert_eq!(of("miss-query"), "");
        let requests = LoopOptions { case: vec!["hit".to_owned()], ..options() };
        assert!(requests.wants("hit over HTTP") && !requests.wants("miss (query) over HTTP"));
    }

    #[test]
    fn what_does_not_depend_on_the_size_is_measured_once() {
        let cases = cases(&options(), 1);
        let named = |name: &str| cases.iter().filter(|case| case.name == name).count();
        let counts = ["call", "call + clear", "miss (clear)", "miss (no-store)", "hit"].map(named);
        assert_eq!(counts, [1, 1, 1, 4, 4]);
    }

    #[test]
    fn large_values_are_read_fewer_times() {
        let cases = cases(&options(), 1);
        let runs = |at: usize| cases[at].parameters["runs"].as_u64().unwrap();
        assert_eq!((runs(0), runs(cases.len() - 1)), (100_000, 4_096));
    }
}
