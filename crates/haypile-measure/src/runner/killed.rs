//! A cache that a killed process has left.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::drive::Tally;
use super::error::RunnerError;
use super::report::JobReport;

/// Tells a process of the same program and arguments that it only prepares: the runner's protocol is between the
/// laboratory and one process, of which this is a part.
const ONLY_PREPARES: &str = "HAYPILE_JOB_ONLY_PREPARES";

/// Returns whether this process only prepares, until it is killed.
pub(super) fn only_prepares() -> bool {
    env::var_os(ONLY_PREPARES).is_some()
}

/// Says what the preparation came to, and waits for the end.
pub(super) fn await_end(
    (report, others): (&mut JobReport, Tally),
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<(), RunnerError> {
    report.line("errors", others.errors);
    report.line("wrong", others.wrong);
    let said = output.write_all(report.text().as_bytes()).and_then(|()| output.flush());
    said.map_err(RunnerError::Parent)?;
    // It is killed while it reads.
    input.read_until(b'\n', &mut Vec::new()).map_err(RunnerError::Parent)?;
    Ok(())
}

/// Has another process prepare the cache of this job in this directory, and kills it. Returns what it said, and its
/// failures.
///
/// # Errors
///
/// It cannot be started, or did not prepare.
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

impl Drop for Killed {
    fn drop(&mut self) {
        // One that has ended by itself is dead as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
