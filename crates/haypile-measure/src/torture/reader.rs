//! Processes that read until the case is over, and processes that open the cache again and again.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::context::TestContext;
use super::role::Role;
use crate::measure::{Child, Deadline, Failure};

/// Reads of a round.
const ROUND: u64 = 500;

/// Reads of an opener.
const GLANCE: u64 = 50;

/// While the cache is full, readers read this number of times for each operation of writers, so
/// that hit ratios do not depend on who was faster.
const READS_PER_OPERATION: u64 = 2;

/// Between two looks at whether the writers are as far.
const PAUSE: Duration = Duration::from_micros(500);

/// Between two openers.
const REST: Duration = Duration::from_millis(10);

/// Runs a reader process until the torture case is over. Readers with an odd number open the cache
/// read-only, if it can be.
pub(super) fn stay(context: &TestContext<'_>, number: u64) {
    await_writer(context);
    if is_over(context) {
        return;
    }
    let seed = super::draw::word(context.options.seed, 1_000 + number);
    let done = open(context, number, seed).and_then(|mut child| {
        let at = usize::try_from(context.options.writers + number).expect("a reader");
        context.pids[at].store(child.pid().as_raw_nonzero().get(), Ordering::Release);
        let mut reads = 0;
        while !is_over(context) {
            let operations = context.operations.load(Ordering::Relaxed);
            let share = operations * READS_PER_OPERATION / context.options.readers;
            if context.stage.evicts && reads > share {
                thread::sleep(PAUSE);
                continue;
            }
            round(context, &mut child, ROUND, true)?;
            reads += ROUND;
        }
        context.pids[at].store(0, Ordering::Release);
        end(context, child)
    });
    judge(context, "reader", done);
}

/// Runs short-lived reader processes, which open the cache, read a little and end, one after the
/// other, until the torture case is over.
pub(super) fn come_and_go(context: &TestContext<'_>) {
    await_writer(context);
    for number in 0.. {
        if is_over(context) {
            return;
        }
        let seed = super::draw::word(context.options.seed, 2_000 + number);
        let done = open(context, number, seed).and_then(|mut child| {
            round(context, &mut child, GLANCE, false)?;
            end(context, child)
        });
        judge(context, "opener", done);
        thread::sleep(REST);
    }
}

fn is_over(context: &TestContext<'_>) -> bool {
    context.ends() || context.is_killing_all.load(Ordering::Acquire)
}

/// Until there is something to open.
fn await_writer(context: &TestContext<'_>) {
    while context.ready.load(Ordering::Relaxed) == 0 && !is_over(context) {
        thread::sleep(PAUSE);
    }
}

fn open(context: &TestContext<'_>, number: u64, seed: u64) -> Result<Child, Failure> {
    let command = context.command(Role::Reader, seed, &[("readonly", number % 2)]);
    let mut child = Child::spawn(command, &context.contestant.runner.label)?;
    let deadline = Deadline::after(context.options.timeout);
    let line = child.line(deadline, &|| context.watcher.is_interrupted())?;
    let time = line.strip_prefix("opened ").and_then(|time| time.parse().ok());
    context.tally.lock().opened(time.ok_or_else(|| refused(&line))?);
    let line = child.line(deadline, &|| context.watcher.is_interrupted())?;
    if line == "ready" { Ok(child) } else { Err(refused(&line)) }
}

/// Has it read. Whether it hits counts only in the mix.
fn round(
    context: &TestContext<'_>,
    child: &mut Child,
    reads: u64,
    is_mix: bool,
) -> Result<(), Failure> {
    child.say(&format!("read {reads}\n"));
    let deadline = Deadline::after(context.options.timeout);
    loop {
        let line = child.line(deadline, &|| context.watcher.is_interrupted())?;
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut tally = context.tally.lock();
        match word {
            "wrong" => {
                tally.wrong += 1;
                let (key, wrong) = rest.split_once(' ').ok_or_else(|| refused(&line))?;
                tally.find(|| format!("a reader read key {key}: {wrong}"));
            }
            "failed" => tally.find(|| format!("a reader: {rest}")),
            "round" => {
                let numbers: Vec<u64> =
                    rest.split(' ').filter_map(|number| number.parse().ok()).collect();
                let [reads, hits, busy, failed, longest_ns] = numbers[..] else {
                    return Err(refused(&line));
                };
                if is_mix {
                    tally.reads += reads;
                    tally.hits += hits;
                }
                tally.busy += busy;
                tally.failed += failed;
                tally.read(longest_ns);
                return Ok(());
            }
            _ => return Err(refused(&line)),
        }
    }
}

fn end(context: &TestContext<'_>, mut child: Child) -> Result<(), Failure> {
    let deadline = Deadline::after(context.options.timeout);
    child.finish(deadline, &|| context.watcher.is_interrupted())
}

fn refused(line: &str) -> Failure {
    let shown: String = line.chars().take(200).collect();
    Failure::Failed(format!("it said '{}'", shown.escape_debug()))
}

fn judge(context: &TestContext<'_>, who: &str, done: Result<(), Failure>) {
    if context.is_killing_all.load(Ordering::Acquire) {
        return;
    }
    match done {
        Err(Failure::Failed(error)) => context.crashed(format!("{who}: {error}")),
        Err(Failure::Late(error)) => context.hung(format!("{who}: {error}")),
        Err(Failure::Interrupted) | Ok(()) => {}
    }
}
