//! A client process, which performs orders.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process_group};

use super::super::context::TestContext;
use super::super::role::Role;
use super::super::spoken::{self, line, nonsense};
use super::super::tally::Tally;
use super::orders::{Fate, Order};
use crate::measure::{Child, Deadline, Failure};

/// The reason why a client process ended before it was asked to.
#[derive(Debug)]
pub(super) enum End {
    /// The client was killed, as its fate said.
    Killed,
    /// The cache cannot do this case.
    Unsupported,
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A client process's answer to an order, such as a value that it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The client has read the value of this number.
    Hit(u64),
    /// The client has computed this value, or got it from another client that did.
    Value(u64),
    Miss,
    /// The client has stored the value that it read from the database.
    Stored,
    /// The cache did not store the value.
    Refused,
    /// The client has removed the entries.
    Done,
    /// The client could not do the order, which is counted.
    Nothing,
}

/// A client process, which performs orders (reads, writes, removals) on the cache.
pub(super) struct Client(Child);

impl Client {
    pub(super) fn start(
        context: &TestContext<'_>,
        seed: u64,
        tally: &mut Tally,
    ) -> Result<Self, End> {
        let (mut child, opened_ns) = spoken::start(context, Role::Client, seed, &[])?;
        tally.opened(opened_ns);
        match line(context, &mut child)?.as_str() {
            "ready" => Ok(Self(child)),
            "unsupported" => Err(End::Unsupported),
            other => Err(said(other)),
        }
    }

    /// Lets the client process perform an order (such as a read) on the cache, and sends it the value from the
    /// simulated database if it asks for that.
    pub(super) fn perform(
        &mut self,
        context: &TestContext<'_>,
        order: Order,
        fate: Fate,
        read: &dyn Fn() -> u64,
        tally: &mut Tally,
    ) -> Result<Answer, End> {
        let computes = matches!(order, Order::Compute(_) | Order::Fill(_));
        self.say(&format!("{order}\n"));
        match fate {
            Fate::Killed(after) => return Err(die(after)),
            Fate::KilledComputing(after) | Fate::KilledStoring(after) if !computes => {
                return Err(die(after));
            }
            Fate::Stopped(time) if !computes => self.stop(time, tally),
            _ => {}
        }
        let mut answer = line(context, &mut self.0)?;
        if answer == "computing" && computes {
            tally.computed += 1;
            let number = read();
            if matches!(fate, Fate::KilledComputing(_)) {
                return Err(End::Killed);
            }
            self.say(&format!("go {number}\n"));
            match fate {
                Fate::KilledStoring(after) => return Err(die(after)),
                Fate::Stopped(time) => self.stop(time, tally),
                _ => {}
            }
            answer = line(context, &mut self.0)?;
        }
        if matches!(fate, Fate::KilledComputing(_) | Fate::KilledStoring(_)) {
            // There was nothing to compute: it dies between two operations.
            return Err(End::Killed);
        }
        judged(order, &answer, tally)
    }

    /// Ends the client process normally, by closing its standard input.
    pub(super) fn finish(mut self, context: &TestContext<'_>) -> Result<(), End> {
        let deadline = Deadline::after(context.options.timeout);
        Ok(self.0.finish(deadline, &|| context.watcher.is_interrupted())?)
    }

    fn say(&mut self, line: &str) {
        self.0.say(line);
    }

    /// Stops it, and lets it go on after this time.
    fn stop(&mut self, time: Duration, tally: &mut Tally) {
        // It is not collected yet, so that the number is nobody else's.
        let signal = |signal| kill_process_group(self.0.pid(), signal);
        if signal(Signal::STOP).is_ok() {
            thread::sleep(time);
            let _ = signal(Signal::CONT);
            tally.stops += 1;
        }
    }
}

/// Reads the line that answers an order, and counts.
fn judged(order: Order, answer: &str, tally: &mut Tally) -> Result<Answer, End> {
    let mut words = answer.splitn(3, ' ');
    let word = words.next().unwrap_or("");
    let mut number = || words.next().and_then(|number| number.parse::<u64>().ok());
    tally.acknowledged += 1;
    let is_read = matches!(order, Order::Get(_) | Order::Compute(_) | Order::Fill(_));
    let fills = matches!(order, Order::Fill(_));
    let found = match (word, is_read) {
        ("hit", true) => number().map(Answer::Hit),
        ("value", true) => number().map(Answer::Value),
        ("miss", true) => Some(Answer::Miss),
        ("stored", true) if fills => Some(Answer::Stored),
        ("refused", true) if fills => Some(Answer::Refused),
        ("done", false) => {
            let time = number().ok_or_else(|| said(answer))?;
            tally.wrote(time);
            return Ok(Answer::Done);
        }
        ("busy", _) => {
            tally.busy += 1;
            return Ok(Answer::Nothing);
        }
        ("unsupported", _) => {
            tally.acknowledged -= 1;
            tally.unsupported += 1;
            return Ok(Answer::Nothing);
        }
        ("failed", _) => {
            tally.failed += 1;
            tally.find(|| format!("'{order}' failed: {answer}"));
            return Ok(Answer::Nothing);
        }
        ("wrong", true) => {
            tally.wrong += 1;
            tally.find(|| format!("'{order}': {answer}"));
            return Ok(Answer::Nothing);
        }
        _ => None,
    };
    let found = found.ok_or_else(|| said(answer))?;
    if let Order::Get(_) = order {
        tally.read(number().ok_or_else(|| said(answer))?);
    }
    Ok(found)
}

/// Waits until it is time to die, more exactly than a sleep does; whoever drops the client kills it.
fn die(after: Duration) -> End {
    let begun = Instant::now();
    while begun.elapsed() < after {
        std::hint::spin_loop();
    }
    End::Killed
}

fn said(line: &str) -> End {
    nonsense(Role::Client, line).into()
}
