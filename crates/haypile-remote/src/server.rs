//! One server: its connections, and what happens while it does not answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haypile::{Clock, WriteMode};
use parking_lot::Mutex;

use crate::deadline::{Deadline, Lost};
use crate::debts::Debts;

/// Connections that are kept while nobody uses them; more threads than that have connections of
/// their own for one operation.
const MAX_IDLE: usize = 16;
/// How long nothing is asked after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Keys that are deleted in one round trip when a server is back.
const DELETED_AT_ONCE: usize = 256;

/// How a server is connected to.
pub(crate) trait Connect: fmt::Debug + Send + Sync {
    /// A connection, ready to be used.
    type Connection: Send;

    /// Connects.
    fn connect(&self, deadline: Deadline) -> Result<Self::Connection, Lost>;

    /// Deletes these keys, whether or not they are there. Gives those that only another server could
    /// delete and did not; other servers are waited for until `elsewhere`.
    fn delete_all<'k>(
        &self,
        connection: &mut Self::Connection,
        keys: &'k [Box<[u8]>],
        deadline: Deadline,
        elsewhere: Deadline,
    ) -> Result<Vec<&'k [u8]>, Lost>;
}

/// Whether an operation can be done twice without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// As reading, or writing whatever is there.
    Harmless,
    /// As counting, or writing under a condition.
    Never,
}

impl Repeat {
    /// Of writes under these conditions.
    pub(crate) fn of_writes(modes: impl IntoIterator<Item = WriteMode>) -> Self {
        let all_set = modes.into_iter().all(|mode| mode == WriteMode::Set);
        if all_set { Self::Harmless } else { Self::Never }
    }
}

impl Unreachable {
    /// A server that did not answer, for this reason.
    pub(crate) fn new(server: impl Into<String>, why: impl Into<String>) -> Self {
        Self { server: server.into(), why: why.into() }
    }
}

/// A server that did not answer. The operation may have been done.
#[derive(Debug, thiserror::Error)]
#[error(
    "{server} did not answer: {why}; operations on single entries are answered as by an empty \
     cache until it does; see that the server runs, or give timeout= a longer time"
)]
pub(crate) struct Unreachable {
    server: String,
    why: String,
}

/// What a server is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Entries,
    /// As which server has what.
    Itself,
}

/// A server and its connections.
pub(crate) struct Server<C: Connect> {
    connect: C,
    name: String,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State<C::Connection>>,
    /// Held only in passing, and never while something is asked.
    debts: Mutex<Debts>,
    /// One pays at a time.
    paying: Mutex<()>,
    has_debts: AtomicBool,
}

struct State<T> {
    idle: Vec<T>,
    /// The process that made them. A child that was forked has them as well, and would read the
    /// answers that are its parent's.
    process: u32,
    /// Failures since the last answer.
    failures: u32,
    /// When the next attempt is due, if there are failures.
    retry_at_ns: u64,
    /// What failed last, ever.
    last: Option<String>,
    /// Failures ever.
    all_failures: u64,
}

impl<C: Connect> fmt::Debug for Server<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Connect> Server<C> {
    /// A server that people know as `name`. Nothing is asked of it yet.
    pub(crate) fn new(connect: C, name: String, timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            idle: Vec::new(),
            process: std::process::id(),
            failures: 0,
            retry_at_ns: 0,
            last: None,
            all_failures: 0,
        };
        Self {
            connect,
            name,
            timeout,
            clock,
            state: Mutex::new(state),
            debts: Mutex::default(),
            paying: Mutex::default(),
            has_debts: AtomicBool::new(false),
        }
    }

    /// What people know it as.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The end of an operation that starts now.
    fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// Asks the server, which is told first what it is owed. A connection that was not in use may
    /// have been ended by a server that was started anew; the question is asked again on a new one
    /// where that is harmless.
    pub(crate) fn ask<T>(
        &self,
        repeat: Repeat,
        mut question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        self.exchange(repeat, Subject::Entries, |connection, deadline| {
            self.pay_debts(connection, deadline)?;
            question(connection, deadline)
        })
    }

    /// Asks what has nothing to do with entries: what is owed stays owed, and a server that has
    /// refused entries is not known to take them again.
    pub(crate) fn ask_freely<T>(
        &self,
        question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        self.exchange(Repeat::Harmless, Subject::Itself, question)
    }

    fn exchange<T>(
        &self,
        repeat: Repeat,
        subject: Subject,
        mut question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        let deadline = self.deadline();
        loop {
            let (mut connection, was_idle) = self.connection(deadline)?;
            let lost = match question(&mut connection, deadline) {
                Ok(answer) => {
                    self.keep(connection, subject);
                    return Ok(answer);
                }
                Err(lost) => lost,
            };
            drop(connection);
            if !was_idle || lost.is_late || lost.is_of_answer {
                return Err(self.failed(&lost));
            }
            self.state.lock().idle.clear();
            if repeat == Repeat::Never {
                return Err(self.unreachable(lost.to_string()));
            }
        }
    }

    /// Asks for a change of these keys. They are deleted later where it is not known to be done.
    pub(crate) fn change<'k, T>(
        &self,
        repeat: Repeat,
        keys: impl IntoIterator<Item = &'k [u8]>,
        question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        let answer = self.ask(repeat, question);
        if answer.is_err() {
            self.owe(keys);
        }
        answer
    }

    /// Does what a store does when it is opened; `None` if the server does not answer.
    pub(crate) fn try_out<T>(
        &self,
        trial: impl FnOnce(&C, Deadline) -> Result<T, Lost>,
    ) -> Option<T> {
        trial(&self.connect, self.deadline()).map_err(|lost| self.failed(&lost)).ok()
    }

    /// Does what does not need a kept connection and concerns all entries.
    pub(crate) fn aside<T>(
        &self,
        act: impl FnOnce(&C, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        act(&self.connect, self.deadline()).map_err(|lost| self.unreachable(lost.to_string()))
    }

    /// Whether it has failed since it answered last.
    pub(crate) fn is_down(&self) -> bool {
        self.state.lock().failures > 0
    }

    /// What failed last.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.state.lock().last.clone()
    }

    /// What went wrong ever, for people.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let (all, last, is_down) = {
            let state = self.state.lock();
            (state.all_failures, state.last.clone(), state.failures > 0)
        };
        let mut warnings = Vec::new();
        if let Some(last) = last {
            let now = if is_down { "does not answer now" } else { "answers again" };
            warnings.push(format!(
                "{} did not answer {all} times, the last time because: {last}; it {now}",
                self.name
            ));
        }
        warnings.extend(self.debts.lock().warning(&self.name));
        warnings
    }

    /// How many keys it is owed that found no room.
    pub(crate) fn left_out(&self) -> u64 {
        self.debts.lock().left_out
    }

    /// Pays what is owed, if the server can be reached, and ends all connections.
    pub(crate) fn end(&self) {
        if self.has_debts.load(Ordering::Acquire) {
            // Without a server there is nothing to be done.
            let _ = self.ask(Repeat::Harmless, |_, _| Ok(()));
        }
        self.state.lock().idle.clear();
    }

    fn unreachable(&self, why: String) -> Unreachable {
        Unreachable::new(&self.name, why)
    }

    /// A connection, and whether it was idle.
    fn connection(&self, deadline: Deadline) -> Result<(C::Connection, bool), Unreachable> {
        let mut state = self.state.lock();
        if state.process != std::process::id() {
            state.process = std::process::id();
            state.idle.clear();
        }
        if let Some(connection) = state.idle.pop() {
            return Ok((connection, true));
        }
        if state.failures > 0 {
            let now_ns = self.clock.now_ns();
            if now_ns < state.retry_at_ns {
                let why = state.last.clone().unwrap_or_default();
                return Err(self.unreachable(why));
            }
            // The others go on without it, while this one tries.
            state.retry_at_ns = now_ns.saturating_add(pause_ns(state.failures));
        }
        drop(state);
        match self.connect.connect(deadline) {
            Ok(connection) => Ok((connection, false)),
            Err(lost) => Err(self.failed(&lost)),
        }
    }

    fn keep(&self, connection: C::Connection, subject: Subject) {
        let mut state = self.state.lock();
        if state.failures > 0 && subject == Subject::Entries {
            state.failures = 0;
            log::info!("{} answers again", self.name);
        }
        if state.idle.len() < MAX_IDLE && state.process == std::process::id() {
            state.idle.push(connection);
        }
    }

    fn failed(&self, lost: &Lost) -> Unreachable {
        let mut state = self.state.lock();
        state.all_failures += 1;
        state.last = Some(lost.to_string());
        // Whoever answers can be asked for entries.
        if !lost.is_of_answer {
            if state.failures == 0 {
                log::warn!("{} does not answer: {lost}", self.name);
            }
            state.idle.clear();
            state.failures = state.failures.saturating_add(1);
            state.retry_at_ns = self.clock.now_ns().saturating_add(pause_ns(state.failures));
        }
        self.unreachable(lost.to_string())
    }

    /// Has these keys deleted before anything else is asked about entries.
    pub(crate) fn owe<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        let mut debts = self.debts.lock();
        keys.into_iter().for_each(|key| debts.add(key));
        self.has_debts.store(!debts.is_empty(), Ordering::Release);
    }

    /// Those of the keys that it is owed that another server is owed from now on as well.
    pub(crate) fn pass_on(&self, is_passed_on: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        self.debts.lock().pass_on(is_passed_on)
    }

    /// Which of these keys are still owed; none, where it is empty. After the debts are paid these are
    /// the ones that another server did not delete.
    pub(crate) fn unpaid<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Vec<bool> {
        if !self.has_debts.load(Ordering::Acquire) {
            return Vec::new();
        }
        let debts = self.debts.lock();
        keys.into_iter().map(|key| debts.has(key)).collect()
    }

    /// Deletes what was to be changed while the server did not answer. Others wait meanwhile, for
    /// they could read what is about to be deleted.
    fn pay_debts(&self, connection: &mut C::Connection, deadline: Deadline) -> Result<(), Lost> {
        if !self.has_debts.load(Ordering::Acquire) {
            return Ok(());
        }
        let left = deadline.left()?;
        let _paying = self.paying.try_lock_for(left).ok_or_else(|| deadline.missed())?;
        let payment = self.debts.lock().begin_payment(self.clock.now_ns());
        // So that there is time left for the question itself.
        let elsewhere = deadline.half();
        for keys in payment.keys.chunks(DELETED_AT_ONCE) {
            let unpaid = self.connect.delete_all(connection, keys, deadline, elsewhere)?;
            let mut debts = self.debts.lock();
            if !unpaid.is_empty() {
                // Each attempt costs all that ask this server.
                let longest_pause_ns = pause_ns(u32::MAX);
                debts.set_apart(&unpaid, self.clock.now_ns().saturating_add(longest_pause_ns));
            }
            debts.paid(payment.number, keys);
            self.has_debts.store(!debts.is_empty(), Ordering::Release);
        }
        Ok(())
    }
}

fn pause_ns(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(16);
    let pause = (FIRST_PAUSE * (1 << doublings)).min(LONGEST_PAUSE);
    u64::try_from(pause.as_nanos()).expect("five seconds are few nanoseconds")
}
