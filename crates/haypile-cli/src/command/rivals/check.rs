//! `haypile rivals check`

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use haypile::ByteSize;
use haypile_lab::experiment::Host;
use haypile_lab::experiment::micro::{self, Capacity, CaseKind, Distribution, MicroError};
use haypile_lab::experiment::necko;
use haypile_measure::measure::{Case, Contender, Places, Plan, RunnerLimits, measure};
use haypile_measure::result::{Run, Sample, command_line};
use haypile_measure::rival::{Rival, Rivals, State};
use serde::Serialize;
use serde_json::json;

use super::{advice, list, states};
use crate::args::rivals::Check;
use crate::command::lab::experiment::Terminal;
use crate::output::table::table;
use crate::{NEGATIVE, interrupt, output};

/// Number of keys, and of the operations of each case.
const KEYS: u32 = 300;
const OPERATIONS: u32 = 1_000;
/// Number of requests of each case of a cache over HTTP.
const REQUESTS: u32 = 50;

/// Sizes of values and of the cache, which holds all keys under any accounting.
const VALUE_BYTES: u32 = 160;
const CAPACITY: ByteSize = ByteSize(4 << 20);

const SEED: u64 = 1;

/// Result of a subject.
#[derive(Serialize)]
struct Checked {
    rival: String,
    subject: String,
    version: Option<String>,
    /// The first error of the subject.
    error: Option<String>,
}

/// Executes `haypile rivals check`: runs small jobs on each cache of the rivals (other caches to
/// compare with).
pub(crate) fn run(arguments: &Check) -> anyhow::Result<ExitCode> {
    interrupt::watch()?;
    let rivals = Rivals::find(arguments.place.checkout.as_deref())?;
    let chosen = rivals.named(&arguments.names)?;
    let states = states(&chosen, interrupt::asked);
    if states.len() < chosen.len() {
        bail!(
            "the check of the rivals was interrupted before its first measurement; nothing was \
             checked"
        );
    }
    let places = || {
        Places::new(&env::temp_dir()).context(
            "cannot create a directory for the caches' files; set TMPDIR to a writable directory",
        )
    };
    let (places, http_places) = (places()?, places()?);
    let limits = RunnerLimits { prepare: arguments.timeout, timed: arguments.timeout };
    let plan = |cases, contenders, surroundings| Plan {
        then: None,
        cases,
        contenders,
        blocks: 1,
        seed: SEED,
        warm_up: 0,
        limits,
        surroundings: Some(surroundings),
        keeps_runners: true,
    };
    let by_calls = plan(cases()?, contenders(&states, false)?, Box::new(places));
    let (cases, surroundings) = necko::http_check(http_places, REQUESTS, VALUE_BYTES, SEED);
    let over_http = plan(cases, contenders(&states, true)?, surroundings);
    let all_samples = by_calls.samples() + over_http.samples();
    let terminal = Terminal::default();
    terminal.begin(all_samples, "checking rivals".to_owned())?;
    let run = Run::begin(micro::NAME, command_line(), SEED);
    let mut samples = Vec::new();
    let mut keep = |sample| {
        samples.push(sample);
        Ok(())
    };
    let is_complete = match measure(&by_calls, &run, &terminal, &mut keep) {
        Ok(true) => measure(&over_http, &run, &terminal, &mut keep),
        incomplete => incomplete,
    };
    terminal.finish();
    let is_complete = is_complete?;
    let checked = checked(&states, &samples, [by_calls.cases.len(), over_http.cases.len()]);
    if arguments.json {
        let skipped = skipped(&states).map(|(rival, why)| {
            json!({ "rival": rival.name(), "why": why, "how_to_get": rival.how_to_get() })
        });
        let skipped: Vec<_> = skipped.collect();
        output::json(&json!({ "complete": is_complete, "subjects": checked, "skipped": skipped }))?;
    } else {
        output::text(&text(&checked, &states))?;
    }
    if !is_complete {
        bail!(
            "the check of the rivals was interrupted; results of {} of {} measurements were \
             printed",
            samples.len(),
            all_samples
        );
    }
    let is_wrong = checked.iter().any(|checked| checked.error.is_some());
    Ok(if is_wrong { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

/// Returns the cases: reads of existing keys, reads and writes in turn, and writes. All that a run
/// compares is compared.
fn cases() -> Result<Vec<Case>, MicroError> {
    let options = micro::MicroOptions {
        case: vec![CaseKind::GetHit, CaseKind::Mix { sets: 1, gets: 1 }, CaseKind::Overwrite],
        keys: vec![KEYS],
        key_bytes: vec![12],
        value_bytes: vec![VALUE_BYTES],
        distribution: vec![Distribution::Uniform],
        capacity: vec![Capacity::Bytes(CAPACITY)],
        threads: vec![1],
        processes: vec![1],
        operations: OPERATIONS,
        latency: false,
    };
    micro::cases(&options, SEED, None)
}

/// Returns the subjects of the rivals that run, and that are HTTP caches or not.
fn contenders(states: &[(&Rival, State)], http: bool) -> anyhow::Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    let is_asked = |(rival, state): &&(&Rival, State)| {
        matches!(state, State::Runs(_)) && rival.manifest().http == http
    };
    for (rival, _) in states.iter().filter(is_asked) {
        let runner = Arc::new(rival.runner());
        for subject in &rival.manifest().subjects {
            let subject = subject.parse().map_err(|wrong: String| anyhow!(wrong))?;
            contenders.push(Contender { subject, runner: Arc::clone(&runner) });
        }
    }
    Ok(contenders)
}

/// Returns the result of each subject that did all its `cases`, plain or over HTTP, or failed in one, and of each whose
/// rival is broken.
fn checked(states: &[(&Rival, State)], samples: &[Sample], cases: [usize; 2]) -> Vec<Checked> {
    let mut all = Vec::new();
    for (rival, state) in states {
        let cases = cases[usize::from(rival.manifest().http)];
        for subject in &rival.manifest().subjects {
            let own = samples.iter().filter(|sample| sample.subject.name == *subject);
            let wrong = own.clone().find_map(|sample| {
                let error = sample.error.as_ref()?;
                Some(format!("{}: {error}", sample.case))
            });
            let error = match state {
                State::Missing(_) => continue,
                State::Runs(_) if wrong.is_none() && own.count() < cases => continue,
                State::Runs(_) => wrong,
                state => state.why_not().map(str::to_owned),
            };
            all.push(Checked {
                rival: rival.name().to_owned(),
                subject: subject.clone(),
                version: list::version(state, subject).map(str::to_owned),
                error,
            });
        }
    }
    all
}

/// Returns the rivals that are not installed, with the reason.
fn skipped<'a>(states: &'a [(&Rival, State)]) -> impl Iterator<Item = (&'a Rival, &'a str)> {
    states.iter().filter_map(|(rival, state)| match state {
        State::Missing(why) => Some((*rival, why.as_str())),
        _ => None,
    })
}

fn text(checked: &[Checked], states: &[(&Rival, State)]) -> String {
    let header = ["Rival", "Subject", "Version", "Result"].map(str::to_owned);
    let row = |one: &Checked| {
        let version = one.version.as_deref().unwrap_or("-");
        let result = if one.error.is_some() { "failed" } else { "ok" };
        [&one.rival, &one.subject, version, result].map(str::to_owned).to_vec()
    };
    let rows: Vec<_> = checked.iter().map(row).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text = table(&header, header.len(), 2, &rows);
    }
    for one in checked {
        if let Some(error) = &one.error {
            text = format!("{text}{}: {error}\n", one.subject);
        }
    }
    for (rival, why) in skipped(states) {
        text = format!("{text}Skipped: {}\n", advice(rival, why));
    }
    text
}
