//! One server: its connections, and its state while it does not answer.

use std::fmt;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haypile::{Clock, WriteMode};
use parking_lot::Mutex;

use crate::deadline::{Deadline, Lost};
use crate::fence::Fences;
use crate::invalidations::Invalidations;

/// Idle connections that are kept; more threads than this open a connection for one operation.
const MAX_IDLE: usize = 16;
/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Keys that are deleted in one round trip when a server is back.
const DELETED_AT_ONCE: usize = 256;

/// The connection settings of a server, by which connections are opened, and checked for a sign of life.
pub(crate) trait Connect: fmt::Debug + Send + Sync {
    /// A connection that is ready for use.
    type Connection: Send;

    /// Opens a connection to the server.
    fn connect(&self, deadline: Deadline) -> Result<Self::Connection, Lost>;

    /// Checks that the server answers, without changing anything.
    fn greet(&self, connection: &mut Self::Connection, deadline: Deadline) -> Result<(), Lost>;

    /// Returns the socket of a connection that can no longer be used.
    fn into_socket(connection: Self::Connection) -> TcpStream;

    /// Deletes these keys, whether or not they exist. Returns the keys that only another server
    /// could delete and did not; waits for other servers until `elsewhere`.
    fn delete_all<'k>(
        &self,
        connection: &mut Self::Connection,
        keys: &'k [Box<[u8]>],
        deadline: Deadline,
        elsewhere: Deadline,
    ) -> Result<Vec<&'k [u8]>, Lost>;
}

/// Whether an operation on a server can be repeated without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The operation can be repeated without harm, like a read or an unconditional write.
    Harmless,
    /// The operation cannot be repeated, like counting or a write under a condition.
    Never,
}

impl Repeat {
    /// Returns whether writes with these modes can be repeated without harm: only if all are unconditional.
    pub(crate) fn of_writes(modes: impl IntoIterator<Item = WriteMode>) -> Self {
        let all_set = modes.into_iter().all(|mode| mode == WriteMode::Set);
        if all_set { Self::Harmless } else { Self::Never }
    }
}

impl Unreachable {
    /// Creates the error that a server did not answer, with the reason.
    pub(crate) fn new(server: impl Into<String>, why: impl Into<String>) -> Self {
        Self { server: server.into(), why: why.into() }
    }
}

/// The error that a server did not answer. It may still have done the operation.
#[derive(Debug, thiserror::Error)]
#[error(
    "{server} did not answer: {why}; operations on single entries are answered as by an empty \
     cache until it does; check that the server runs, or give timeout= a longer time"
)]
pub(crate) struct Unreachable {
    server: String,
    why: String,
}

/// The subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Entries,
    /// The server itself, for example which server has which slots.
    Itself,
}

/// A server of a remote store, with its pool of connections and its pending invalidations.
pub(crate) struct Server<C: Connect> {
    connect: C,
    name: Arc<str>,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// The fences of the store.
    fences: Arc<Fences>,
    state: Mutex<ServerState<C::Connection>>,
    /// Held briefly, and never during a request.
    pending: Mutex<Invalidations>,
    /// Held by the thread that drains the invalidations.
    draining: Mutex<()>,
    has_pending: AtomicBool,
}

/// A connection that a request takes.
struct Taken<T> {
    connection: T,
    /// Whether it was open before.
    was_idle: bool,
    /// Whether the last request failed.
    is_suspect: bool,
}

struct ServerState<T> {
    idle: Vec<T>,
    /// The process that opened them. A forked child inherits them, and would read answers to its
    /// parent.
    process: u32,
    /// Failures since the last answer.
    failures: u32,
    /// The time of the next attempt, if there are failures.
    retry_at_ns: u64,
    /// The last failure, even if the server has answered since.
    last: Option<String>,
    /// Failures since the server was created.
    all_failures: u64,
}

impl<C: Connect> fmt::Debug for Server<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Connect> Server<C> {
    /// Creates a server of a remote store, with a name for messages that is unique within the store. It does not
    /// connect yet.
    pub(crate) fn new(
        connect: C,
        name: String,
        timeout: Duration,
        clock: Arc<dyn Clock>,
        fences: Arc<Fences>,
    ) -> Self {
        let state = ServerState {
            idle: Vec::new(),
            process: std::process::id(),
            failures: 0,
            retry_at_ns: 0,
            last: None,
            all_failures: 0,
        };
        Self {
            connect,
            name: name.into(),
            timeout,
            clock,
            fences,
            state: Mutex::new(state),
            pending: Mutex::default(),
            draining: Mutex::default(),
            has_pending: AtomicBool::new(false),
        }
    }

    /// Returns the name of the server in messages.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the fences of the store: lost connections over which this server or another one may still change
    /// entries.
    pub(crate) fn fences(&self) -> &Fences {
        &self.fences
    }

    /// Returns the deadline of an operation that starts now.
    fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// Sends the server a request about entries, after deleting the keys whose invalidation is pending. If an idle
    /// connection was closed, as by a restart, the request is repeated on a new one if that is harmless. If the request
    /// may be done late, the keys that it changes count as missing until that is excluded.
    pub(crate) fn ask<T>(
        &self,
        repeat: Repeat,
        changed: &[&[u8]],
        question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        self.exchange(repeat, Subject::Entries, changed, question)
    }

    /// Asks the server for a sign of life, without changing entries.
    pub(crate) fn probe(&self) {
        let question = |connection: &mut _, deadline| self.connect.greet(connection, deadline);
        if let Err(error) = self.exchange(Repeat::Harmless, Subject::Entries, &[], question) {
            log::debug!("{error}");
        }
    }

    /// Sends the server a request about something other than entries, without deleting keys whose invalidation is
    /// pending.
    pub(crate) fn ask_freely<T>(
        &self,
        question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        self.exchange(Repeat::Harmless, Subject::Itself, &[], question)
    }

    fn exchange<T>(
        &self,
        repeat: Repeat,
        subject: Subject,
        changed: &[&[u8]],
        mut question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        let deadline = self.deadline();
        loop {
            let Taken { mut connection, was_idle, is_suspect } = self.connection(deadline)?;
            let (mut drained, mut is_asked) = (Vec::new(), false);
            let answer = match subject {
                Subject::Entries => {
                    self.prepare(&mut connection, is_suspect, deadline, &mut drained)
                }
                Subject::Itself => Ok(()),
            }
            .and_then(|()| {
                is_asked = true;
                question(&mut connection, deadline)
            });
            let lost = match answer {
                Ok(answer) => {
                    self.keep(connection, subject);
                    return Ok(answer);
                }
                Err(lost) => lost,
            };
            let asked = if is_asked { changed } else { &[] };
            self.lose(
                connection,
                &lost,
                drained.iter().map(|key| &**key).chain(asked.iter().copied()),
            );
            if !was_idle || lost.is_late || lost.is_of_answer {
                return Err(self.failed(&lost));
            }
            self.state.lock().idle.clear();
            if repeat == Repeat::Never {
                return Err(self.unreachable(lost.to_string()));
            }
        }
    }

    /// Makes the connection ready for requests about entries. `drained` are the keys whose deletion
    /// is under way.
    fn prepare(
        &self,
        connection: &mut C::Connection,
        is_suspect: bool,
        deadline: Deadline,
        drained: &mut Vec<Box<[u8]>>,
    ) -> Result<(), Lost> {
        if is_suspect {
            // Nothing has to be fenced if the server does not answer this.
            self.connect.greet(connection, deadline)?;
        }
        self.drain_pending(connection, deadline, drained)
    }

    /// Ends a connection on which these keys were to change.
    fn lose<'k>(
        &self,
        connection: C::Connection,
        lost: &Lost,
        changed: impl Iterator<Item = &'k [u8]>,
    ) {
        let mut changed = changed.peekable();
        if changed.peek().is_some() {
            self.fences.watch(C::into_socket(connection), lost.is_cut, &self.name, changed);
        }
    }

    /// Sends the server a request that changes these keys. If the change is not known to be done, the keys are deleted
    /// later.
    pub(crate) fn change<T>(
        &self,
        repeat: Repeat,
        keys: &[&[u8]],
        question: impl FnMut(&mut C::Connection, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        let answer = self.ask(repeat, keys, question);
        if answer.is_err() {
            self.enqueue(keys.iter().copied());
        }
        answer
    }

    /// Runs `trial`, the check of a server when its store is opened, and returns the result; `None` if the server does
    /// not answer.
    pub(crate) fn try_out<T>(
        &self,
        trial: impl FnOnce(&C, Deadline) -> Result<T, Lost>,
    ) -> Option<T> {
        trial(&self.connect, self.deadline()).map_err(|lost| self.failed(&lost)).ok()
    }

    /// Runs an operation that is not about single entries (such as reading statistics) over a connection of its own,
    /// which is closed afterwards.
    pub(crate) fn on_fresh_connection<T>(
        &self,
        act: impl FnOnce(&C, Deadline) -> Result<T, Lost>,
    ) -> Result<T, Unreachable> {
        act(&self.connect, self.deadline()).map_err(|lost| self.unreachable(lost.to_string()))
    }

    /// Whether the last request to the server failed.
    pub(crate) fn is_down(&self) -> bool {
        self.state.lock().failures > 0
    }

    /// Returns the text of the server's last failure; `None` if it never failed.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.state.lock().last.clone()
    }

    /// Returns warnings about all failures of the server so far.
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
        warnings.extend(self.pending.lock().warning(&self.name));
        warnings
    }

    /// Returns the number of changed keys for which there was no room among the server's pending invalidations.
    pub(crate) fn left_out(&self) -> u64 {
        self.pending.lock().left_out
    }

    /// Deletes the keys whose invalidation is pending, if the server answers, and closes all connections.
    pub(crate) fn end(&self) {
        if self.has_pending.load(Ordering::Acquire) {
            // Without a server, nothing can be done.
            let _ = self.ask(Repeat::Harmless, &[], |_, _| Ok(()));
        }
        self.state.lock().idle.clear();
    }

    fn unreachable(&self, why: String) -> Unreachable {
        Unreachable::new(&*self.name, why)
    }

    fn connection(&self, deadline: Deadline) -> Result<Taken<C::Connection>, Unreachable> {
        let mut state = self.state.lock();
        if state.process != std::process::id() {
            state.process = std::process::id();
            state.idle.clear();
        }
        let is_suspect = state.failures > 0;
        if let Some(connection) = state.idle.pop() {
            return Ok(Taken { connection, was_idle: true, is_suspect });
        }
        if is_suspect {
            let now_ns = self.clock.now_ns();
            if now_ns < state.retry_at_ns {
                let why = state.last.clone().unwrap_or_default();
                return Err(self.unreachable(why));
            }
            // Other threads go on without the server while this one tries.
            state.retry_at_ns = now_ns.saturating_add(pause_ns(state.failures));
        }
        drop(state);
        match self.connect.connect(deadline) {
            Ok(connection) => Ok(Taken { connection, was_idle: false, is_suspect }),
            Err(lost) => Err(self.failed(&lost)),
        }
    }

    fn keep(&self, connection: C::Connection, subject: Subject) {
        if subject == Subject::Entries {
            self.fences.answered(&self.name);
        }
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
        // A server that answers can be asked about entries.
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

    /// Adds keys to the server's pending invalidations: the server deletes them before any other request about entries.
    pub(crate) fn enqueue<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        let mut pending = self.pending.lock();
        keys.into_iter().for_each(|key| pending.add(key));
        self.has_pending.store(!pending.is_empty(), Ordering::Release);
    }

    /// Returns the pending keys of this server whose invalidation is now pending for another server as well.
    pub(crate) fn pass_on(&self, is_passed_on: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        self.pending.lock().pass_on(is_passed_on)
    }

    /// Returns for each key whether its invalidation is still pending; an empty vector if none is.
    /// After a drain, these are the keys that another server did not delete.
    pub(crate) fn still_pending<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Vec<bool> {
        if !self.has_pending.load(Ordering::Acquire) {
            return Vec::new();
        }
        let pending = self.pending.lock();
        keys.into_iter().map(|key| pending.has(key)).collect()
    }

    /// Deletes the keys that were changed while the server did not answer. Other requests wait for
    /// it, because they could read a value that is about to be deleted. After an error, `drained`
    /// holds the keys whose deletion may be done late.
    fn drain_pending(
        &self,
        connection: &mut C::Connection,
        deadline: Deadline,
        drained: &mut Vec<Box<[u8]>>,
    ) -> Result<(), Lost> {
        if !self.has_pending.load(Ordering::Acquire) {
            return Ok(());
        }
        let left = deadline.left()?;
        let _draining = self.draining.try_lock_for(left).ok_or_else(|| deadline.missed())?;
        let drain = self.pending.lock().begin_drain(self.clock.now_ns());
        // Leaves time for the request itself.
        let elsewhere = deadline.half();
        for keys in drain.keys.chunks(DELETED_AT_ONCE) {
            drained.clear();
            drained.extend_from_slice(keys);
            let undeleted = self.connect.delete_all(connection, keys, deadline, elsewhere)?;
            let mut pending = self.pending.lock();
            if !undeleted.is_empty() {
                // Each attempt delays all requests to this server.
                let longest_pause_ns = pause_ns(u32::MAX);
                pending.set_apart(&undeleted, self.clock.now_ns().saturating_add(longest_pause_ns));
            }
            pending.drained(drain.number, keys);
            self.has_pending.store(!pending.is_empty(), Ordering::Release);
        }
        drained.clear();
        Ok(())
    }
}

fn pause_ns(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(16);
    let pause = (FIRST_PAUSE * (1 << doublings)).min(LONGEST_PAUSE);
    u64::try_from(pause.as_nanos()).expect("five seconds are few nanoseconds")
}
