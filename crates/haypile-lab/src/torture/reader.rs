//! Readers, which stay, and openers, which come and go.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::ground::{Ground, Patience};
use super::role::Role;
use crate::measure::{Child, Deadline, Failure};

/// Reads of a round.
const ROUND: u64 = 500;

/// Reads of an opener.
const GLANCE: u64 = 50;

/// While the cache is full, readers read so many times for each operation of writers, so that hit
/// ratios do not depend on who was faster.
const READS_PER_OPERATION: u64 = 2;

/// Between two looks at whether the writers are as far.
const PAUSE: Duration = Duration::from_micros(500);

/// Between two openers.
const REST: Duration = Duration::from_millis(10);

/// A reader, until all is over. Those with an odd number open the cache for reading alone, where
/// it can do that.
pub(super) fn stay(ground: &Ground<'_>, number: u64) {
    await_writer(ground);
    if is_over(ground) {
        return;
    }
    let seed = super::draw::word(ground.options.seed, 1_000 + number);
    let done = open(ground, number, seed).and_then(|mut child| {
        let at = usize::try_from(ground.options.writers + number).expect("a reader");
        ground.pids[at].store(child.pid().as_raw_nonzero().get(), Ordering::Release);
        let mut reads = 0;
        while !is_over(ground) {
            let operations = ground.operations.load(Ordering::Relaxed);
            let share = operations * READS_PER_OPERATION / ground.options.readers;
            if ground.stage.evicts && reads > share {
                thread::sleep(PAUSE);
                continue;
            }
            round(ground, &mut child, ROUND, true)?;
            reads += ROUND;
        }
        ground.pids[at].store(0, Ordering::Release);
        end(ground, child)
    });
    judge(ground, "reader", done);
}

/// Processes that open the cache, read a little and end, one after the other, until all is over.
pub(super) fn come_and_go(ground: &Ground<'_>) {
    await_writer(ground);
    for number in 0.. {
        if is_over(ground) {
            return;
        }
        let seed = super::draw::word(ground.options.seed, 2_000 + number);
        let done = open(ground, number, seed).and_then(|mut child| {
            round(ground, &mut child, GLANCE, false)?;
            end(ground, child)
        });
        judge(ground, "opener", done);
        thread::sleep(REST);
    }
}

fn is_over(ground: &Ground<'_>) -> bool {
    ground.ends() || ground.is_massacre.load(Ordering::Acquire)
}

/// Until there is something to open.
fn await_writer(ground: &Ground<'_>) {
    while ground.ready.load(Ordering::Relaxed) == 0 && !is_over(ground) {
        thread::sleep(PAUSE);
    }
}

fn open(ground: &Ground<'_>, number: u64, seed: u64) -> Result<Child, Failure> {
    let command = ground.command(Role::Reader, seed, &[("readonly", number % 2)]);
    let mut child = Child::spawn(command, &ground.contestant.runner.label)?;
    let deadline = Deadline::after(ground.options.timeout);
    let line = child.line(deadline, &Patience(ground.watcher))?;
    let time = line.strip_prefix("opened ").and_then(|time| time.parse().ok());
    ground.tally.lock().opened(time.ok_or_else(|| refused(&line))?);
    let line = child.line(deadline, &Patience(ground.watcher))?;
    if line == "ready" { Ok(child) } else { Err(refused(&line)) }
}

/// Has it read. Whether it hits counts only in the mix.
fn round(ground: &Ground<'_>, child: &mut Child, reads: u64, is_mix: bool) -> Result<(), Failure> {
    child.say(&format!("read {reads}\n"));
    let deadline = Deadline::after(ground.options.timeout);
    loop {
        let line = child.line(deadline, &Patience(ground.watcher))?;
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut tally = ground.tally.lock();
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

fn end(ground: &Ground<'_>, mut child: Child) -> Result<(), Failure> {
    let deadline = Deadline::after(ground.options.timeout);
    child.finish(deadline, &Patience(ground.watcher))
}

fn refused(line: &str) -> Failure {
    let shown: String = line.chars().take(200).collect();
    Failure::Failed(format!("it said '{}'", shown.escape_debug()))
}

fn judge(ground: &Ground<'_>, who: &str, done: Result<(), Failure>) {
    if ground.is_massacre.load(Ordering::Acquire) {
        return;
    }
    match done {
        Err(Failure::Failed(error)) => ground.crashed(format!("{who}: {error}")),
        Err(Failure::Late(error)) => ground.hung(format!("{who}: {error}")),
        Err(Failure::Interrupted) | Ok(()) => {}
    }
}
