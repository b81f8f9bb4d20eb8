//! The case `compute`: a process is killed that computes a value for others, and one of these
//! computes it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::context::TestContext;
use super::role::Role;
use super::spoken::{self, Unsupported, line, nonsense};
use crate::measure::{Child, Failure};

/// The number of processes that wait.
const WAITERS: u64 = 2;

/// The time that the second one takes to compute, so that another that does so too is seen.
const COMPUTES: Duration = Duration::from_millis(5);

enum End {
    Failed(Failure),
    Unsupported,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub(super) fn run(context: &TestContext<'_>) -> Result<(), Unsupported> {
    for round in 0..context.options.takeovers {
        if context.ends() {
            break;
        }
        match take_over(context, round) {
            Err(End::Unsupported) => return Err(Unsupported),
            Err(End::Failed(Failure::Interrupted)) => break,
            Err(End::Failed(Failure::Late(error))) => context.hung(error),
            Err(End::Failed(Failure::Failed(error))) => context.crashed(error),
            Ok(()) => {}
        }
        context.watcher.advance(1);
    }
    Ok(())
}

fn take_over(context: &TestContext<'_>, round: u64) -> Result<(), End> {
    let first = 1 + round * (WAITERS + 1);
    let mut victim = start(context, round, first)?;
    match line(context, &mut victim)?.as_str() {
        "computing" => {}
        "unsupported" => return Err(End::Unsupported),
        other => return Err(said(other)),
    }
    let waiters: Vec<Child> = (1..=WAITERS)
        .map(|number| start(context, round, first + number))
        .collect::<Result<_, _>>()?;
    let computing = AtomicU64::new(0);
    // It is killed when it is dropped.
    drop(victim);
    context.tally.lock().kills += 1;
    let killed = Instant::now();
    let values = thread::scope(|scope| {
        let finish = |mut child: Child| {
            let computing = &computing;
            scope.spawn(move || finish(context, &mut child, killed, computing))
        };
        let waiters: Vec<_> = waiters.into_iter().map(finish).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        waiters.into_iter().map(join).collect::<Result<Vec<u64>, End>>()
    })?;
    let mut tally = context.tally.lock();
    tally.acknowledged += WAITERS;
    if values.iter().any(|&value| value != values[0] || value <= first || value > first + WAITERS) {
        tally.wrong += 1;
        tally.find(|| format!("key {round}: those who waited got the numbers {values:?}"));
    }
    Ok(())
}

/// A process that has begun to ask.
fn start(context: &TestContext<'_>, key: u64, first: u64) -> Result<Child, End> {
    let numbers = [("key", key), ("first", first)];
    let (mut child, opened_ns) = spoken::start(context, Role::Computer, first, &numbers)?;
    context.tally.lock().opened(opened_ns);
    for due in ["ready", "asking"] {
        let line = line(context, &mut child)?;
        if line != due {
            return Err(said(&line));
        }
    }
    Ok(child)
}

/// The sequence number of the value that it got in the end.
fn finish(
    context: &TestContext<'_>,
    child: &mut Child,
    killed: Instant,
    computing: &AtomicU64,
) -> Result<u64, End> {
    let mut answer = line(context, child)?;
    if answer == "computing" {
        let waited_ns = u64::try_from(killed.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let others = computing.fetch_add(1, Ordering::AcqRel);
        {
            let mut tally = context.tally.lock();
            tally.taken_over += 1;
            tally.longest_takeover_ns = tally.longest_takeover_ns.max(waited_ns);
            if others > 0 {
                tally.wrong += 1;
                tally.find(|| "two processes compute the same key at once".to_owned());
            }
        }
        thread::sleep(COMPUTES);
        child.say("go\n");
        answer = line(context, child)?;
        computing.fetch_sub(1, Ordering::AcqRel);
    }
    let number = answer.strip_prefix("value ").and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).ok_or_else(|| said(&answer))
}

fn said(line: &str) -> End {
    nonsense(Role::Computer, line).into()
}
