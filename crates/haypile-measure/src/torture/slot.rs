//! The runs of a writer: one process after the other, each of which finds the entries of those
//! before.

use std::io::BufRead;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::context::TestContext;
use super::draw::Draw;
use super::ledger::{Ledger, Said};
use super::process::{Process, each_line};
use super::role::Role;
use super::tally::Tally;

/// The interval between checks for an end.
const PATIENCE: Duration = Duration::from_millis(20);

/// The way in which one process of a torture's writer ends: killed after a time, asked to end, or
/// with the torture case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriterRun {
    /// The run lasts until the case is over.
    UntilOver,
    /// The writer is killed this long after its first write.
    Killed(Duration),
    /// The writer is killed this long after its start, possibly while it opens the cache.
    KilledEarly(Duration),
    /// The writer is asked to end this long after its first write.
    Ends(Duration),
    /// The run lasts until all processes are killed at once.
    KillAll,
    /// The run lasts until the writer has reported the entries that it found.
    Audit,
}

#[derive(Debug, PartialEq, Eq)]
enum Exit {
    Killed,
    KilledWithAll,
    Ended,
    ByItself,
    Hung,
    Interrupted,
}

/// One writer of the torture, which runs one process after the other.
pub(super) struct WriterSlot {
    number: u64,
    ledger: Ledger,
    draw: Draw,
}

impl WriterSlot {
    pub(super) fn new(context: &TestContext<'_>, number: u64) -> Self {
        let writers = context.options.writers;
        let ledger = Ledger::new(number, writers, context.stage.keys, context.stage.evicts);
        // Far from those of others, who add 1 to their seeds.
        let draw = Draw::new(super::draw::word(context.options.seed, number));
        Self { number, ledger, draw }
    }

    /// Returns the torture's writer with its latencies left out of the counts, because its process
    /// is going to be stopped.
    pub(super) fn without_times(mut self) -> Self {
        self.ledger.is_timed = false;
        self
    }

    /// Draws a random duration below `limit`, such as the time until a kill.
    pub(super) fn moment(&mut self, limit: Duration) -> Duration {
        let limit = u64::try_from(limit.as_nanos()).expect("some milliseconds");
        Duration::from_nanos(self.draw.below(limit))
    }

    /// Draws `true` with a probability of 1 in `number`.
    pub(super) fn is_one_of(&mut self, number: u64) -> bool {
        self.draw.below(number) == 0
    }

    /// Runs one process of the writer, from its start to its death or normal end.
    pub(super) fn run(&mut self, context: &TestContext<'_>, run: WriterRun) {
        let own = self.ledger.own_keys();
        let audit = if run == WriterRun::Audit { own } else { context.stage.audit };
        let first = self.ledger.begin(audit);
        let numbers = [("number", self.number), ("first", first), ("audit", audit)];
        let command = context.command(Role::Writer, self.draw.number(), &numbers);
        let (mut process, output) = match Process::spawn(command) {
            Ok(started) => started,
            Err(error) => return context.crashed(error),
        };
        let pid = &context.pids[usize::try_from(self.number).expect("a writer")];
        pid.store(process.pid().as_raw_nonzero().get(), Ordering::Release);
        let (is_ready, heard) = mpsc::channel();
        let heard_at = AtomicU64::new(0);
        let mut tally = Tally::default();
        let begun = Instant::now();
        let (exit, last) = thread::scope(|scope| {
            let follower = Follower { context, begun, heard_at: &heard_at, is_ready };
            let ledger = &mut self.ledger;
            let tally = &mut tally;
            let follower = scope.spawn(move || follower.follow(output, ledger, tally));
            let exit = wait(context, run, &mut process, &heard, begun, &heard_at);
            (exit, follower.join().expect("it reads lines"))
        });
        // From here on its number can become another's.
        pid.store(0, Ordering::Release);
        self.ledger.died();
        let (status, errors) = process.collect();
        let is_killed = status.and_then(|status| status.signal()) == Some(Signal::KILL.as_raw());
        match exit {
            Exit::Killed | Exit::KilledWithAll if is_killed => tally.kills += 1,
            Exit::Ended if status.is_some_and(|status| status.success()) && last == Said::End => {}
            Exit::Interrupted => {}
            Exit::Hung => {
                let limit = context.options.timeout;
                context.hung(format!("writer {} said nothing for {limit:?}", self.number));
            }
            _ => {
                let status = status.map_or_else(|| "lost".to_owned(), |status| status.to_string());
                let said = if let Said::Error(text) = last { text } else { String::new() };
                let number = self.number;
                context.crashed(format!("writer {number} ended with {status}: {said}{errors}"));
            }
        }
        context.tally.lock().take(&mut tally);
    }
}

/// Reads what a writer says.
struct Follower<'a> {
    context: &'a TestContext<'a>,
    begun: Instant,
    heard_at: &'a AtomicU64,
    is_ready: Sender<()>,
}

impl Follower<'_> {
    /// Gives the end or the error that was said.
    fn follow(self, output: impl BufRead, ledger: &mut Ledger, tally: &mut Tally) -> Said {
        let mut last = Said::Nothing;
        let context = self.context;
        each_line(output, |line| {
            self.heard_at.store(millis(self.begun), Ordering::Relaxed);
            match ledger.line(line, tally) {
                Ok(Said::Nothing) => {}
                Ok(Said::Done(written)) => {
                    context.operations.fetch_add(1, Ordering::Relaxed);
                    if let Some((key, sequence)) = written {
                        let bytes = context.stage.lengths.of(key, sequence);
                        context.written_bytes.fetch_add(bytes, Ordering::Relaxed);
                    }
                }
                Ok(Said::Ready) => {
                    context.ready.fetch_add(1, Ordering::Relaxed);
                    // It may be dying already.
                    let _ = self.is_ready.send(());
                }
                Ok(said) => last = said,
                Err(nonsense) => {
                    last = Said::Error(nonsense);
                    return false;
                }
            }
            true
        });
        last
    }
}

/// Waits for the end of a run, and brings it about.
fn wait(
    context: &TestContext<'_>,
    run: WriterRun,
    process: &mut Process,
    heard: &Receiver<()>,
    begun: Instant,
    heard_at: &AtomicU64,
) -> Exit {
    let mut end_at = match run {
        WriterRun::KilledEarly(after) => Some(begun + after),
        _ => None,
    };
    let mut is_asked = false;
    loop {
        let now = Instant::now();
        let left = end_at.map_or(PATIENCE, |at| at.saturating_duration_since(now)).min(PATIENCE);
        match heard.recv_timeout(left) {
            Ok(()) => match run {
                WriterRun::Killed(after) | WriterRun::Ends(after) => {
                    end_at = Some(Instant::now() + after);
                }
                WriterRun::Audit => end_at = Some(Instant::now()),
                _ => {}
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if run == WriterRun::KillAll => {
                let is_killing_all = context.is_killing_all.load(Ordering::Acquire);
                // Its own nonsense, perhaps.
                process.kill();
                return if is_killing_all { Exit::KilledWithAll } else { Exit::ByItself };
            }
            Err(RecvTimeoutError::Disconnected) if is_asked => return Exit::Ended,
            Err(RecvTimeoutError::Disconnected) => {
                process.end_input();
                return Exit::ByItself;
            }
        }
        if context.watcher.is_interrupted() {
            process.kill();
            return Exit::Interrupted;
        }
        let is_due = end_at.is_some_and(|at| at <= Instant::now());
        let is_over = run == WriterRun::UntilOver && context.is_over.load(Ordering::Relaxed);
        if (is_due || is_over) && !is_asked {
            if matches!(run, WriterRun::Killed(_) | WriterRun::KilledEarly(_)) {
                process.kill();
                return Exit::Killed;
            }
            process.end_input();
            is_asked = true;
            end_at = None;
        }
        let silence = millis(begun).saturating_sub(heard_at.load(Ordering::Relaxed));
        if u128::from(silence) > context.options.timeout.as_millis() {
            process.kill();
            return Exit::Hung;
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
