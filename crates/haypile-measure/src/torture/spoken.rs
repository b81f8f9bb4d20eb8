//! Processes that answer line by line: those that compute, and clients that perform orders.

use super::context::TestContext;
use super::role::Role;
use crate::measure::{Child, Deadline, Failure};

/// The error of a cache that lacks an operation which the torture case needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsupported;

/// Starts a process of the torture, waits until it has opened the cache, and returns it with the
/// nanoseconds that opening took.
pub(super) fn start(
    context: &TestContext<'_>,
    role: Role,
    seed: u64,
    numbers: &[(&str, u64)],
) -> Result<(Child, u64), Failure> {
    let command = context.command(role, seed, numbers);
    let mut child = Child::spawn(command, &context.contestant.runner.label)?;
    let opened = line(context, &mut child)?;
    let time = opened.strip_prefix("opened ").and_then(|time| time.parse().ok());
    Ok((child, time.ok_or_else(|| nonsense(role, &opened))?))
}

/// Waits for the next line of a torture process's output, and returns it.
pub(super) fn line(context: &TestContext<'_>, child: &mut Child) -> Result<String, Failure> {
    let deadline = Deadline::after(context.options.timeout);
    child.line(deadline, &|| context.watcher.is_interrupted())
}

/// Returns the error that a torture process in this role has printed an unexpected line.
pub(super) fn nonsense(role: Role, line: &str) -> Failure {
    let shown: String = line.chars().take(200).collect();
    Failure::Failed(format!("a {} said '{}'", role.name(), shown.escape_debug()))
}
