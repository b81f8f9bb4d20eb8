//! The supervisor's process: the laboratory's side of it, and its own.

use std::fs;
use std::io::{BufRead, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use haypile_measure::measure::{Child, Deadline, Failure, Runner};

use super::cgroup::ControlGroup;
use super::orders::{StartOrders, StartReport};
use super::orphans::Orphanage;
use super::supervise::supervise;
use super::tree::Process;

/// Beyond the time-outs of a start: its end, and that of its processes.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(30);

/// The longest wait for the end of a start that the user has interrupted.
const INTERRUPTION_PATIENCE: Duration = Duration::from_millis(1_500);

/// The longest time for which a supervisor may be stopped, as by a command that stops its parent.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);

/// The line that a supervisor says at the end.
const DONE: &str = "done";

/// Starts a command in a separate supervisor process, and returns the report with the measurements;
/// `None` if the user interrupts the start.
///
/// # Errors
///
/// The supervisor cannot be started, or failed. What is wrong with the command is in the report.
pub fn start(
    runner: &Runner,
    orders: &StartOrders,
    is_interrupted: &dyn Fn() -> bool,
) -> anyhow::Result<Option<StartReport>> {
    let command = runner.command("run-start");
    let group = ControlGroup::create();
    if let Some(group) = &group {
        // The supervisor counts processes; this stops those that multiply faster than it counts.
        group.limit_tasks(orders.most_tasks());
    }
    let orphanage = Orphanage::open();
    let outcome = supervised(command, orders, group.as_ref(), is_interrupted);
    if orphanage.is_some_and(|orphanage| !orphanage.close()) {
        bail!(
            "some of the command's processes do not end, not even after SIGKILL: they wait in \
             the kernel, for example for a disk; ps shows them"
        );
    }
    if let Some(group) = group
        && !group.remove()
    {
        bail!(
            "the control group of the command's processes cannot be removed, because some of them \
             do not end; ps shows them"
        );
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
    // The check before the start has as much time as the start.
    let limit = 2 * Duration::from_millis(orders.timeout_ms) + SUPERVISOR_PATIENCE;
    let said = line(&mut child, Deadline::after(limit), is_interrupted);
    // Its standard input closes, upon which it ends the tree.
    let mut end = |patience| child.finish(Deadline::after(patience), &|| false);
    match said {
        Err(Failure::Interrupted) => {
            // One that does not end is killed.
            let _ = end(INTERRUPTION_PATIENCE);
            return Ok(None);
        }
        Err(failure) => return Err(failed(failure)),
        Ok(line) if line == DONE => end(SUPERVISOR_PATIENCE).map_err(failed)?,
        Ok(line) => {
            bail!(
                "the process that supervises the command's start printed an unexpected line \
                 '{line}'"
            )
        }
    }
    let report = fs::read(&orders.report).context("the supervisor left no report")?;
    Ok(Some(serde_json::from_slice(&report).context("the supervisor left a damaged report")?))
}

/// Waits for a line of the supervisor, which does not come from one that was stopped.
fn line(
    child: &mut Child,
    deadline: Deadline,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<String, Failure> {
    let pid = child.pid().as_raw_nonzero().get();
    let mut stopped_at = None;
    loop {
        if let Some(line) = child.line_soon(deadline, is_interrupted)? {
            return Ok(line);
        }
        if !Process::of(pid).is_some_and(|process| process.is_stopped) {
            stopped_at = None;
            continue;
        }
        if stopped_at.get_or_insert_with(Instant::now).elapsed() > STOPPED_PATIENCE {
            let text = "the supervisor was stopped by a signal, which the command may have sent; \
                it was killed";
            return Err(Failure::Failed(text.to_owned()));
        }
    }
}

/// Supervises one start of a command: reads the settings, a line of JSON, from standard input, and
/// writes the report to the file that they name. The end of standard input ends the start.
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
        Failure::Interrupted => anyhow::anyhow!("the start of the command was interrupted"),
        Failure::Late(text) | Failure::Failed(text) => anyhow::anyhow!(text),
    }
}
