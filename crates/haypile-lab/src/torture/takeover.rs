//! A process is killed that computes what others wait for, and one of these computes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ground::{Ground, Patience};
use super::role::Role;
use crate::measure::{Child, Deadline, Failure};

/// Who wait.
const WAITERS: u64 = 2;

/// How long the second one computes, so that another that does so too is seen.
const COMPUTES: Duration = Duration::from_millis(5);

/// The cache has no such operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsupported;

enum End {
    Failed(Failure),
    Unsupported,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub(super) fn run(ground: &Ground<'_>) -> Result<(), Unsupported> {
    for round in 0..ground.options.takeovers {
        if ground.ends() {
            break;
        }
        match take_over(ground, round) {
            Err(End::Unsupported) => return Err(Unsupported),
            Err(End::Failed(Failure::Interrupted)) => break,
            Err(End::Failed(Failure::Late(error))) => ground.hung(error),
            Err(End::Failed(Failure::Failed(error))) => ground.crashed(error),
            Ok(()) => {}
        }
        ground.watcher.advance(1);
    }
    Ok(())
}

fn take_over(ground: &Ground<'_>, round: u64) -> Result<(), End> {
    let first = 1 + round * (WAITERS + 1);
    let mut victim = start(ground, round, first)?;
    match line(ground, &mut victim)?.as_str() {
        "computing" => {}
        "unsupported" => return Err(End::Unsupported),
        other => return Err(said(other)),
    }
    let waiters: Vec<Child> = (1..=WAITERS)
        .map(|number| start(ground, round, first + number))
        .collect::<Result<_, _>>()?;
    let computing = AtomicU64::new(0);
    // It is killed when it is dropped.
    drop(victim);
    ground.tally.lock().kills += 1;
    let killed = Instant::now();
    let values = thread::scope(|scope| {
        let finish = |mut child: Child| {
            let computing = &computing;
            scope.spawn(move || finish(ground, &mut child, killed, computing))
        };
        let waiters: Vec<_> = waiters.into_iter().map(finish).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        waiters.into_iter().map(join).collect::<Result<Vec<u64>, End>>()
    })?;
    let mut tally = ground.tally.lock();
    tally.acknowledged += WAITERS;
    if values.iter().any(|&value| value != values[0] || value <= first || value > first + WAITERS) {
        tally.wrong += 1;
        tally.find(|| format!("key {round}: those who waited got the numbers {values:?}"));
    }
    Ok(())
}

/// A process that has begun to ask.
fn start(ground: &Ground<'_>, key: u64, first: u64) -> Result<Child, End> {
    let command = ground.command(Role::Computer, first, &[("key", key), ("first", first)]);
    let mut child = Child::spawn(command, &ground.contestant.runner.label)?;
    let opened = line(ground, &mut child)?;
    let time = opened.strip_prefix("opened ").and_then(|time| time.parse().ok());
    ground.tally.lock().opened(time.ok_or_else(|| said(&opened))?);
    for due in ["ready", "asking"] {
        let line = line(ground, &mut child)?;
        if line != due {
            return Err(said(&line));
        }
    }
    Ok(child)
}

/// The sequence number of the value that it got in the end.
fn finish(
    ground: &Ground<'_>,
    child: &mut Child,
    killed: Instant,
    computing: &AtomicU64,
) -> Result<u64, End> {
    let mut answer = line(ground, child)?;
    if answer == "computing" {
        let waited_ns = u64::try_from(killed.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let others = computing.fetch_add(1, Ordering::AcqRel);
        {
            let mut tally = ground.tally.lock();
            tally.taken_over += 1;
            tally.longest_takeover_ns = tally.longest_takeover_ns.max(waited_ns);
            if others > 0 {
                tally.wrong += 1;
                tally.find(|| "two processes compute the same key at once".to_owned());
            }
        }
        thread::sleep(COMPUTES);
        child.say("go\n");
        answer = line(ground, child)?;
        computing.fetch_sub(1, Ordering::AcqRel);
    }
    let number = answer.strip_prefix("value ").and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).ok_or_else(|| said(&answer))
}

fn line(ground: &Ground<'_>, child: &mut Child) -> Result<String, Failure> {
    let deadline = Deadline::after(ground.options.timeout);
    child.line(deadline, &Patience(ground.watcher))
}

fn said(line: &str) -> End {
    let shown: String = line.chars().take(200).collect();
    End::Failed(Failure::Failed(format!("a computing process said '{}'", shown.escape_debug())))
}
