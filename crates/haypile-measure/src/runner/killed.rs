//! A cache that a killed process has left.

use std::env;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::drive::Tally;
use super::error::RunnerError;
use super::report::JobReport;

/// Tells a process of the same program and arguments that it only prepares: the runner's protocol is between the
/// laboratory and one process, of which this is a part.
const ONLY_PREPARES: &str = "HAYPILE_JOB_ONLY_PREPARES";

/// Returns whether this process of a runner only prepares the cache, and then waits until it is killed, as a job with a
/// kill requires.
pub(super) fn only_prepares() -> bool {
    env::var_os(ONLY_PREPARES).is_some()
}

/// Returns the report of a process that prepared the cache and is to be killed next, with its numbers of errors and
/// wrong values added.
pub(super) fn prepared(mut report: JobReport, others: Tally) -> JobReport {
    report.line("errors", others.errors);
    report.line("wrong", others.wrong);
    report
}

/// Starts another process that prepares the cache of this job in the same directory, and kills it. Returns its report
/// and its failures.
///
/// # Errors
///
/// It cannot be started, did not prepare, or ended before it could be killed.
pub(super) fn prepare() -> Result<(JobReport, Tally), RunnerError> {
    let mut command = Command::new(env::current_exe().map_err(RunnerError::Prepared)?);
    command.args(env::args_os().skip(1)).env(ONLY_PREPARES, "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Killed(command.spawn().map_err(RunnerError::Prepared)?);
    let output = process.0.stdout.take().expect("it is piped");
    let (mut report, mut tally) = (JobReport::default(), Tally::default());
    for line in BufReader::new(output).lines() {
        let line = line.map_err(RunnerError::Prepared)?;
        match line.split_once(' ') {
            None if line == "end" => {
                process.kill()?;
                report.line("killed", 1);
                return Ok((report, tally));
            }
            Some(("error", why)) => return Err(RunnerError::NotPrepared(why.to_owned())),
            Some(("errors", number)) => tally.errors = number.parse().unwrap_or(u64::MAX),
            Some(("wrong", number)) => tally.wrong = number.parse().unwrap_or(u64::MAX),
            Some((name, value)) => report.line(name, value),
            None => return Err(RunnerError::NotPrepared(format!("it said '{line}'"))),
        }
    }
    Err(RunnerError::NotPrepared("it ended".to_owned()))
}

/// A process that is killed when this is dropped.
struct Killed(Child);

impl Killed {
    /// Kills the process, and waits for its end.
    ///
    /// # Errors
    ///
    /// It had ended before in another way.
    fn kill(&mut self) -> Result<(), RunnerError> {
        self.0.kill().map_err(RunnerError::Prepared)?;
        let status = self.0.wait().map_err(RunnerError::Prepared)?;
        match status.signal() {
            Some(signal) if signal == Signal::KILL.as_raw() => Ok(()),
            _ => Err(RunnerError::NotPrepared(format!("it was not killed: {status}"))),
        }
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // One that has ended by itself is dead as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
