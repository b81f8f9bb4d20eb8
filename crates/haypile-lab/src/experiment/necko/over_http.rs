//! `loop` and `sequence` over HTTP: requests that an HTTP cache answers, or an origin server.
//!
//! | case | one run | caches |
//! |---|---|---|
//! | `call` | a request through the layer to a service that answers at once, empty | all |
//! | `call + clear` | the same after clearing the cache | all |
//! | `miss (clear)` | clearing, and a request whose response is stored | all but none |
//! | `miss (no-store)` | a request whose response must not be stored | all |
//! | `miss (query)` | a request for a URL that was never asked for | all |
//! | `hit` | a request whose response is stored | all but none |
//!
//! The origin is a server in the laboratory's process, on the loopback device. It counts requests,
//! and a sample for which it counted another number than the definition says is an error.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use haypile_measure::job::{self, JobError, JobOrigin, Ops, Population};
use haypile_measure::measure::{Case, Expected};

use super::served::{CaseOrigin, Served};
use super::{NOT_NONE, key, settings};
use crate::experiment::parameters;

/// Behind the name of a case over HTTP.
const SUFFIX: &str = " over HTTP";

/// Returns the name of a case without the suffix ` over HTTP`, and whether it had that suffix.
pub(super) fn without_suffix(name: &str) -> (&str, bool) {
    name.strip_suffix(SUFFIX).map_or((name, false), |name| (name, true))
}

/// Bytes of bodies that are enough for one measurement.
const BYTES: u64 = 128 << 20;
/// The time that the delays of a slow origin may take in one measurement.
const DELAYS: Duration = Duration::from_secs(2);
/// Requests of a measurement that does not state another number.
const RUNS: u32 = 2_000;
const CALLS: u32 = 50_000;

/// May be stored, for longer than a measurement takes.
const STORED: &str = "max-age=86400";
const NOT_STORED: &str = "no-store";

/// Up to this many bytes of bodies fit every cache of the source, its memory cache of 51,200 KiB too.
const FITS: u64 = 45 << 20;

/// The caches that have no file.
const NOT_ON_DISK: &[&str] = &["none", "memory"];

/// The settings of a run's measurements over HTTP: the number of repetitions, the time that the
/// origin takes to answer, and the seed of random choices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    /// Number of repetitions of an operation that the user asked for; `None` for the default.
    pub(super) runs: Option<u32>,
    /// The time that the HTTP origin takes to answer a request.
    pub(super) delay: Duration,
    pub(super) seed: u64,
}

/// One case, of one size.
struct RequestCase {
    experiment: &'static str,
    name: &'static str,
    keys: u32,
    value_bytes: u32,
    /// The number of runs, for parameters.
    runs: (&'static str, u32),
    prepare: Ops,
    timed: Ops,
    /// The responses of the origin; `None` for a service within the runner.
    served: Option<Served>,
    /// The requests that reach it.
    requests: u64,
    is_hit: bool,
    /// The keys that are there before and after the timed part; `None` if they are not read.
    verified: (Option<u64>, Option<u64>),
    is_cold: bool,
    skips: &'static [&'static str],
}

/// Returns the cases of the experiment `loop` over HTTP, in the order of the Necko benchmarks.
pub(super) fn loop_cases(sizes: &[u32], requests: Requests, origin: &Rc<CaseOrigin>) -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, &value_bytes) in sizes.iter().enumerate() {
        let runs = requests.of(value_bytes);
        if at == 0 {
            cases.push(call("call", requests.runs.unwrap_or(CALLS), value_bytes, false));
            cases.push(call("call + clear", requests.runs.unwrap_or(RUNS), value_bytes, true));
            cases.push(miss_after_clear(runs, value_bytes));
        }
        cases.push(miss_no_store(runs, value_bytes));
        cases.push(miss_query(runs, value_bytes));
        cases.push(hit(requests.runs.unwrap_or(RUNS).min(most(value_bytes)), value_bytes));
    }
    cases.into_iter().map(|case| case.finish(requests, origin)).collect()
}

/// Returns the cases of the experiment `sequence` (resources read one after the other) over HTTP.
pub(super) fn sequence_cases(
    sizes: &[u32],
    keys: u32,
    requests: Requests,
    origin: &Rc<CaseOrigin>,
) -> Vec<Case> {
    let of_size = |&value_bytes: &u32| {
        let pass = |name| RequestCase::pass(name, keys, value_bytes);
        let all = u64::from(keys);
        let served = Some(Served::Values { cache_control: NOT_STORED });
        let first = (None, Some(0));
        [
            RequestCase { served, requests: 2 * all, verified: first, ..pass("miss (no-store)") },
            RequestCase { skips: NOT_NONE, ..pass("miss") },
            RequestCase { skips: NOT_NONE, ..pass("hit").again() },
            RequestCase { is_cold: true, skips: NOT_ON_DISK, ..pass("hit, cold").again() },
        ]
    };
    sizes.iter().flat_map(of_size).map(|case| case.finish(requests, origin)).collect()
}

/// Returns the number of requests for bodies of a size that are enough for one measurement.
fn most(value_bytes: u32) -> u32 {
    u32::try_from(BYTES / u64::from(value_bytes).max(1)).unwrap_or(u32::MAX).max(1)
}

impl Requests {
    /// Returns the number of runs with bodies of a size that come from the origin.
    fn of(self, value_bytes: u32) -> u32 {
        let delayed = DELAYS.as_nanos().checked_div(self.delay.as_nanos());
        let delayed = delayed.map_or(u32::MAX, |runs| u32::try_from(runs).unwrap_or(u32::MAX));
        self.runs.unwrap_or_else(|| RUNS.min(most(value_bytes)).min(delayed).max(1))
    }
}

fn repeated(runs: u32, mut add: impl FnMut(&mut Ops, u32)) -> Ops {
    let mut ops = Ops::new();
    for run in 0..runs {
        add(&mut ops, run);
    }
    ops
}

fn call(name: &'static str, runs: u32, value_bytes: u32, clears: bool) -> RequestCase {
    let timed = repeated(runs, |ops, _| {
        if clears {
            ops.clear();
        }
        ops.get(0);
    });
    let looped = RequestCase::looped(name, runs, value_bytes, timed);
    RequestCase { served: None, requests: 0, ..looped }
}

fn miss_after_clear(runs: u32, value_bytes: u32) -> RequestCase {
    let timed = repeated(runs, |ops, _| {
        ops.clear();
        ops.get(0);
    });
    RequestCase {
        // That of the verification before stores it.
        requests: u64::from(runs) + 1,
        verified: (Some(0), Some(1)),
        skips: NOT_NONE,
        ..RequestCase::looped("miss (clear)", runs, value_bytes, timed)
    }
}

fn miss_no_store(runs: u32, value_bytes: u32) -> RequestCase {
    let timed = repeated(runs, |ops, _| ops.get(0));
    RequestCase {
        served: Some(Served::Values { cache_control: NOT_STORED }),
        // Those of the verifications come to it.
        requests: u64::from(runs) + 2,
        ..RequestCase::looped("miss (no-store)", runs, value_bytes, timed)
    }
}

fn miss_query(runs: u32, value_bytes: u32) -> RequestCase {
    let timed = repeated(runs, Ops::get);
    let bytes = value_bytes.into();
    RequestCase {
        keys: runs,
        served: Some(Served::Any { cache_control: STORED, bytes }),
        requests: runs.into(),
        verified: (None, None),
        ..RequestCase::looped("miss (query)", runs, value_bytes, timed)
    }
}

fn hit(runs: u32, value_bytes: u32) -> RequestCase {
    let timed = repeated(runs, |ops, _| ops.get(0));
    RequestCase {
        prepare: repeated(1, Ops::get),
        requests: 1,
        is_hit: true,
        verified: (Some(1), Some(1)),
        skips: NOT_NONE,
        ..RequestCase::looped("hit", runs, value_bytes, timed)
    }
}

impl RequestCase {
    /// A case of `loop`, on one key.
    fn looped(name: &'static str, runs: u32, value_bytes: u32, timed: Ops) -> Self {
        Self {
            experiment: super::looped::NAME,
            name,
            keys: 1,
            value_bytes,
            runs: ("runs", runs),
            prepare: Ops::new(),
            timed,
            served: Some(Served::Values { cache_control: STORED }),
            requests: 0,
            is_hit: false,
            verified: (Some(0), Some(0)),
            is_cold: false,
            skips: &[],
        }
    }

    /// A pass over the keys of `sequence`.
    fn pass(name: &'static str, keys: u32, value_bytes: u32) -> Self {
        let all = u64::from(keys);
        Self {
            experiment: super::sequence::NAME,
            keys,
            runs: ("keys", keys),
            requests: all,
            verified: (None, Some(all)),
            ..Self::looped(name, keys, value_bytes, repeated(keys, Ops::get))
        }
    }

    /// The same after a first pass, when everything is written.
    fn again(mut self) -> Self {
        self.prepare = self.timed.clone();
        self.prepare.flush();
        Self { is_hit: true, ..self }
    }

    fn finish(self, requests: Requests, origin: &Rc<CaseOrigin>) -> Case {
        let (runs, number) = self.runs;
        let mut parameters =
            parameters([("value_bytes", self.value_bytes.into()), (runs, number.into())]);
        if !requests.delay.is_zero() && self.served.is_some() {
            let delay_us = u64::try_from(requests.delay.as_micros()).unwrap_or(u64::MAX);
            parameters.insert("origin_delay_us".to_owned(), delay_us.into());
        }
        let origin = Rc::clone(origin);
        Case {
            experiment: self.experiment,
            name: format!("{}{SUFFIX}", self.name),
            parameters,
            processes: 1,
            skips: self.skips,
            write: Box::new(move |directory| self.write(directory, requests, &origin)),
        }
    }

    /// Whether all that is asked for again fits the caches of the source.
    fn fits(&self) -> bool {
        let is_asked_again = self.is_hit || self.verified.1.is_some_and(|keys| keys > 0);
        !is_asked_again || u64::from(self.keys) * u64::from(self.value_bytes) <= FITS
    }

    fn write(
        &self,
        directory: &Path,
        requests: Requests,
        origin: &CaseOrigin,
    ) -> Result<Expected, JobError> {
        let mut population = Population::new();
        for number in 0..self.keys {
            population.push(key(number).as_bytes(), self.value_bytes)?;
        }
        let (before, after) = self.verified;
        let base = settings(requests.seed, self.value_bytes);
        let mut settings = base.with_verification(before.is_some(), after.is_some());
        if self.is_cold {
            settings = settings.cold();
        }
        let write = |settings| {
            job::write(
                directory,
                &settings,
                &population,
                &self.prepare,
                std::slice::from_ref(&self.timed),
            )
        };
        if let Some(served) = self.served {
            // The bodies are the values of the job, which is written for the second time then, with
            // the address.
            write(settings.clone())?;
            let script = served.script(directory, requests.delay)?;
            let started = origin.start(script, self.fits().then_some(self.requests));
            let address = started.map_err(JobError::io(directory))?;
            write(settings.with_origin(address))?;
        } else {
            origin.end();
            write(settings.with_origin(JobOrigin::Inner))?;
        }
        // A cache requests again those bodies that it had no room for.
        let exactly = |count| self.fits().then_some(count);
        Ok(Expected {
            operations: self.timed.operations(),
            reads: self.timed.reads(),
            hits: exactly(if self.is_hit { self.timed.reads() } else { 0 }),
            verified_before: before,
            verified_after: after.and_then(exactly),
            ..Expected::default()
        })
    }
}
