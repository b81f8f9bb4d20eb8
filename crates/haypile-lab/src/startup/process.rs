//! The supervisor's process: the laboratory's side, and its own.

use std::fs;
use std::io::{BufRead, Write};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::cgroup::ControlGroup;
use super::orders::{StartOrders, StartReport};
use super::supervise::supervise;
use crate::measure::{Child, Deadline, Failure, Observer, Runner};
use crate::result::Sample;

/// Beyond the time-out of a start: its end, and that of its processes.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(30);

/// The line that a supervisor says at the end.
const DONE: &str = "done";

/// Starts a command in a supervisor of its own, and returns the report; `None` if the user wants to
/// stop.
///
/// # Errors
///
/// The supervisor cannot be started, or failed. What is wrong with the command is in the report.
pub fn start(
    runner: &Runner,
    orders: &StartOrders,
    is_interrupted: &dyn Fn() -> bool,
) -> anyhow::Result<Option<StartReport>> {
    let mut command = Command::new(&runner.program);
    command.args(&runner.arguments).arg("run-start");
    let group = ControlGroup::create();
    let outcome = supervised(command, orders, group.as_ref(), is_interrupted);
    if let Some(group) = group
        && !group.remove()
    {
        bail!("a control group with processes of the command cannot be removed");
    }
    outcome
}

fn supervised(
    command: Command,
    orders: &StartOrders,
    group: Option<&ControlGroup>,
    is_interrupted: &dyn Fn() -> bool,
) -> anyhow::Result<Option<StartReport>> {
    let mut child = Child::spawn(command, "the supervisor").map_err(failed)?;
    let pid = u32::try_from(child.pid().as_raw_nonzero().get())?;
    let group = group.filter(|group| group.join(pid).is_ok()).cloned();
    let orders = StartOrders { group, ..orders.clone() };
    child.say(&format!("{}\n", serde_json::to_string(&orders)?));
    let limit = Duration::from_millis(orders.timeout_ms) + SUPERVISOR_PATIENCE;
    let said = child.line(Deadline::after(limit), &Interrupted(is_interrupted));
    // Its standard input closes, upon which it ends the tree.
    let ended = child.finish(Deadline::after(SUPERVISOR_PATIENCE), &Interrupted(&|| false));
    match said {
        Err(Failure::Interrupted) => return Ok(None),
        Err(failure) => return Err(failed(failure)),
        Ok(line) if line == DONE => ended.map_err(failed)?,
        Ok(line) => bail!("the supervisor said '{line}'"),
    }
    let report = fs::read(&orders.report).context("the supervisor left no report")?;
    Ok(Some(serde_json::from_slice(&report).context("the supervisor left a damaged report")?))
}

/// Supervises one start: reads the orders, a line of JSON, from standard input, and writes the report
/// to the file that they name. The end of standard input ends the start.
///
/// # Errors
///
/// The orders cannot be read, or the report cannot be written.
pub fn serve() -> anyhow::Result<()> {
    let stdin = std::io::stdin();
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    let orders: StartOrders = serde_json::from_str(&line).context("these are not orders")?;
    let report = supervise(&orders, &stdin);
    fs::write(&orders.report, serde_json::to_vec(&report)?)
        .with_context(|| orders.report.display().to_string())?;
    writeln!(std::io::stdout(), "{DONE}")?;
    Ok(())
}

fn failed(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Interrupted => anyhow::anyhow!("interrupted"),
        Failure::Late(text) | Failure::Failed(text) => anyhow::anyhow!(text),
    }
}

/// Asks whether the user wants to stop.
struct Interrupted<'a>(&'a dyn Fn() -> bool);

impl Observer for Interrupted<'_> {
    fn finished(&mut self, _: &Sample) {}

    fn is_interrupted(&self) -> bool {
        (self.0)()
    }
}
