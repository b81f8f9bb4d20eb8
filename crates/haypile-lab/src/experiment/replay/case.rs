//! The cases of `replay`.

use std::path::Path;
use std::rc::Rc;

use haypile_measure::job::{self, JobError, Ops, Settings};
use haypile_measure::measure::{Case, Expected};
use haypile_measure::result::Parameters;

use super::job::Replay;

/// Returns the cases of the experiment `replay`, one for each of these cache capacities, in per
/// cent of the total size of the values of the trace's distinct keys. `name` is the trace's name in
/// results.
pub fn cases(name: &str, replay: Replay, percents: &[f64], seed: u64) -> Vec<Case> {
    let replay = Rc::new(replay);
    let case = |&percent: &f64| {
        let replay = Rc::clone(&replay);
        let capacity_bytes = share(replay.trace_bytes(), percent);
        Case {
            experiment: super::NAME,
            name: name.to_owned(),
            parameters: parameters(&replay, percent, capacity_bytes),
            processes: 1,
            skips: &[],
            write: Box::new(move |directory| write(directory, &replay, capacity_bytes, seed)),
        }
    };
    percents.iter().map(case).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of bytes; a byte more or less makes no difference"
)]
fn share(bytes: u64, percent: f64) -> u64 {
    (bytes as f64 * percent / 100.0) as u64
}

fn parameters(replay: &Replay, percent: f64, capacity_bytes: u64) -> Parameters {
    let numbers = [
        ("capacity_bytes", capacity_bytes),
        ("requests", replay.ops().reads()),
        (super::REQUESTED_BYTES, replay.requested_bytes()),
        ("keys", u64::from(replay.population().len())),
        ("trace_bytes", replay.trace_bytes()),
        ("threads", 1),
        ("processes", 1),
    ];
    let mut parameters: Parameters =
        numbers.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect();
    parameters.insert(super::CAPACITY_PERCENT.to_owned(), percent.into());
    parameters
}

/// Writes the job that replays a trace on a cache into an empty directory, and returns the results
/// to expect. The number of hits depends on the subject and its policy.
///
/// Nothing is read before the first request: that would be a request for every key.
///
/// # Errors
///
/// [`JobError::Io`].
pub fn write(
    directory: &Path,
    replay: &Replay,
    capacity_bytes: u64,
    seed: u64,
) -> Result<Expected, JobError> {
    let population = replay.population();
    let mean_bytes = population.bytes() / u64::from(population.len()).max(1);
    let settings = Settings::new(seed, capacity_bytes, capacity_bytes / mean_bytes.max(1))
        .with_verification(false, true);
    let timed = std::slice::from_ref(replay.ops());
    job::write(directory, &settings, population, &Ops::new(), timed)?;
    Ok(Expected {
        operations: replay.ops().operations(),
        reads: replay.ops().reads(),
        ..Expected::default()
    })
}
