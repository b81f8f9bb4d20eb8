//! Fences: lost connections whose requests the server may still do.
//!
//! A change whose answer did not come in time may still be in the server's receive buffer, and the
//! server may do it after a newer one that another connection brings. Its connection is therefore
//! half closed and kept. When its end can be read, the server has read all that was sent on it, and
//! does nothing more of that. Until then the keys of the change are set apart: the store asks no
//! server about them. Afterwards they are deleted.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haypile::Clock;
use parking_lot::Mutex;
use socket2::SockRef;

/// Lost connections that a store keeps.
const MAX_CONNECTIONS: usize = 64;
/// The time for which a server answers other requests until a fence is given up.
const PATIENCE: Duration = Duration::from_secs(1);
/// The part of the time between two answers that counts. The server may have stood still for the
/// rest of it.
const LONGEST_STEP: Duration = Duration::from_millis(100);
/// The bound on all keys, each counted with [`KEY_OVERHEAD_BYTES`].
const MAX_KEY_BYTES: usize = 4 << 20;
/// The approximate overhead of a key.
const KEY_OVERHEAD_BYTES: usize = 96;
/// Reads of one poll. The answers to changes are short; the next poll reads the rest of others.
const READS_AT_ONCE: usize = 16;

/// Fences: lost connections over which a server may still carry out a change late, with the keys that these changes are
/// about.
///
/// A lock of the topology or of pending invalidations may be taken while a call of
/// [`settle`](Self::settle) or [`assign`](Self::assign) is under way, and not the other way round.
pub(crate) struct Fences {
    clock: Arc<dyn Clock>,
    state: Mutex<FencesState>,
    /// Whether any keys are set apart.
    has_any: AtomicBool,
}

struct FencesState {
    /// The process that lost the connections. A forked child inherits them.
    process: u32,
    fences: Vec<Fence>,
    /// The keys that are set apart, each with the numbers of the fences that it waits for.
    keys: HashMap<Box<[u8]>, Vec<u64>>,
    key_bytes: usize,
    /// Whether a fence has ended since the keys were last examined.
    has_ended: bool,
    last_number: u64,
    /// The number of fences that ended before the server's end of the connection was read.
    unfenced: u64,
    /// The server of the last fence that ended this way.
    last_unfenced: Option<Arc<str>>,
    /// The number of keys for which there was no room.
    left_out: u64,
}

/// A lost connection, and how long the server has answered others since.
struct Fence {
    number: u64,
    /// The name of the server that has the keys now. Its answers to other requests count.
    server: Arc<str>,
    /// `None` if the end of the connection cannot be read.
    connection: Option<HalfClosed>,
    answered_ns: u64,
    last_answer_ns: Option<u64>,
}

/// State of a lost connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Polled {
    /// The server has not yet read the connection to its end.
    Open,
    /// The server has ended the connection.
    Ended,
    /// The connection broke on the way to the server.
    Cut,
}

/// A connection whose sending half is closed. Dropping this resets it, so that the server does not
/// get what is still in this machine's send buffer.
struct HalfClosed {
    socket: TcpStream,
    process: u32,
}

impl HalfClosed {
    fn new(socket: TcpStream) -> Self {
        // Fails only if the connection has ended, which the first poll finds.
        let _ = socket.shutdown(Shutdown::Write);
        // Fails on no socket.
        let _ = socket.set_nonblocking(true);
        Self { socket, process: process::id() }
    }

    /// Reads what has arrived.
    fn poll(&mut self) -> Polled {
        let mut buffer = [0; 4096];
        for _ in 0..READS_AT_ONCE {
            match self.socket.read(&mut buffer).map_err(|error| error.kind()) {
                Ok(0)
                | Err(
                    io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::NotConnected,
                ) => return Polled::Ended,
                Ok(_) | Err(io::ErrorKind::Interrupted) => {}
                Err(io::ErrorKind::WouldBlock) => return Polled::Open,
                Err(_) => return Polled::Cut,
            }
        }
        Polled::Open
    }
}

impl Drop for HalfClosed {
    fn drop(&mut self) {
        // The connection of a forked child is its parent's as well.
        if self.process == process::id() {
            let _ = SockRef::from(&self.socket).set_linger(Some(Duration::ZERO));
        }
    }
}

impl fmt::Debug for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fences").field("has_any", &self.has_any).finish_non_exhaustive()
    }
}

impl Fences {
    /// Creates an empty set of lost connections.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let state = FencesState {
            process: process::id(),
            fences: Vec::new(),
            keys: HashMap::new(),
            key_bytes: 0,
            has_ended: false,
            last_number: 0,
            unfenced: 0,
            last_unfenced: None,
            left_out: 0,
        };
        Self { clock, state: Mutex::new(state), has_any: AtomicBool::new(false) }
    }

    /// Half closes a connection that was lost during a change of these keys, and treats the keys as missing until the
    /// server has ended the connection. `is_cut` means that its end cannot be read.
    pub(crate) fn watch<'k>(
        &self,
        socket: TcpStream,
        is_cut: bool,
        server: &Arc<str>,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) {
        let mut connection = HalfClosed::new(socket);
        let polled = if is_cut { Polled::Cut } else { connection.poll() };
        if polled == Polled::Ended {
            return;
        }
        let mut state = self.state.lock();
        state.leave_to_parent();
        let number = state.last_number + 1;
        state.last_number = number;
        let mut has_keys = false;
        for key in keys {
            has_keys |= state.set_apart(key, number);
        }
        if !has_keys {
            return;
        }
        let open = state.fences.iter().filter(|fence| fence.connection.is_some()).count();
        let is_kept = polled == Polled::Open && open < MAX_CONNECTIONS;
        if !is_kept {
            state.unfenced(server, if polled == Polled::Cut { "it broke" } else { "too many" });
        }
        state.fences.push(Fence {
            number,
            server: Arc::clone(server),
            connection: is_kept.then_some(connection),
            answered_ns: 0,
            last_answer_ns: None,
        });
        self.has_any.store(true, Ordering::Release);
    }

    /// Polls whether the server has ended the lost connections, without waiting. Calls `delete` with keys that no
    /// longer wait for one, to enqueue them for deletion by their server.
    pub(crate) fn settle(&self, mut delete: impl FnMut(&[u8])) {
        if !self.has_any.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state.lock();
        state.leave_to_parent();
        state.poll();
        if !std::mem::take(&mut state.has_ended) {
            return;
        }
        let FencesState { fences, keys, key_bytes, .. } = &mut *state;
        keys.retain(|key, numbers| {
            numbers.retain(|number| fences.iter().any(|fence| fence.number == *number));
            if numbers.is_empty() {
                // Nobody asks about the key before it is enqueued: the lock is still held.
                delete(key);
                *key_bytes -= bytes(key);
            }
            !numbers.is_empty()
        });
        self.has_any.store(!state.keys.is_empty(), Ordering::Release);
    }

    /// Returns for each key whether it waits for a lost connection to end, and so counts as missing; `None` if no key
    /// does.
    pub(crate) fn apart<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Option<Vec<bool>> {
        if !self.has_any.load(Ordering::Acquire) {
            return None;
        }
        let state = self.state.lock();
        let apart: Vec<_> = keys.into_iter().map(|key| state.keys.contains_key(key)).collect();
        apart.contains(&true).then_some(apart)
    }

    /// Whether a key waits for a lost connection to a server that has not answered lately. The server should then be
    /// asked for a sign of life, because nobody else may ask it about this key.
    pub(crate) fn is_unheard(&self, key: &[u8]) -> bool {
        let now_ns = self.clock.now_ns();
        let state = self.state.lock();
        let Some(numbers) = state.keys.get(key) else { return false };
        state.fences.iter().any(|fence| {
            let is_recent = |at_ns| now_ns.saturating_sub(at_ns) < nanoseconds(LONGEST_STEP);
            numbers.contains(&fence.number) && !fence.last_answer_ns.is_some_and(is_recent)
        })
    }

    /// Records that a server has answered a request. Lost connections to a server are given up after it has answered
    /// other requests for a second.
    pub(crate) fn answered(&self, server: &str) {
        if !self.has_any.load(Ordering::Acquire) {
            return;
        }
        let now_ns = self.clock.now_ns();
        let mut state = self.state.lock();
        state.leave_to_parent();
        let mut given_up = Vec::new();
        state.fences.retain_mut(|fence| {
            if *fence.server != *server || !fence.is_given_up_at(now_ns) {
                return true;
            }
            given_up.push((Arc::clone(&fence.server), fence.connection.is_some()));
            false
        });
        state.has_ended |= !given_up.is_empty();
        for (server, _) in given_up.iter().filter(|(_, was_open)| *was_open) {
            state.unfenced(server, "a second has passed");
        }
    }

    /// Reassigns each lost connection to the server that now has its keys, as `server_of` returns it; that server's
    /// answers then count.
    pub(crate) fn assign(&self, server_of: impl Fn(&[u8]) -> Option<Arc<str>>) {
        if !self.has_any.load(Ordering::Acquire) {
            return;
        }
        let FencesState { fences, keys, .. } = &mut *self.state.lock();
        for fence in fences {
            let mut own = keys.iter().filter(|(_, numbers)| numbers.contains(&fence.number));
            if let Some(server) = own.find_map(|(key, _)| server_of(key)) {
                fence.server = server;
            }
        }
    }

    /// Returns the number of lost connections that were given up before the server had ended them.
    pub(crate) fn unfenced(&self) -> u64 {
        self.state.lock().unfenced
    }

    /// Returns warnings that a server may still carry out changes of entries late, because lost connections or keys
    /// were given up.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let state = self.state.lock();
        let mut warnings = Vec::new();
        if let Some(server) = &state.last_unfenced {
            let times = state.unfenced;
            warnings.push(format!(
                "{times} connections were lost while entries were to change, the last one to \
                 {server}, and the server did not confirm within a second that it had read them; \
                 an older value can come back, until it expires or is overwritten"
            ));
        }
        if state.left_out > 0 {
            warnings.push(format!(
                "{} keys were to change on lost connections and could not be remembered; an older \
                 value can come back, until it expires or is overwritten",
                state.left_out
            ));
        }
        warnings
    }

    /// Closes the lost connections by a reset. Their keys still count as missing.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.leave_to_parent();
        state.fences.iter_mut().for_each(|fence| fence.connection = None);
    }
}

impl FencesState {
    /// Leaves the lost connections to the parent in a forked child, which only waits.
    fn leave_to_parent(&mut self) {
        if self.process != process::id() {
            self.process = process::id();
            self.fences.iter_mut().for_each(|fence| fence.connection = None);
        }
    }

    /// Sets a key apart until this fence ends. Returns whether there was room for it.
    fn set_apart(&mut self, key: &[u8], number: u64) -> bool {
        if let Some(numbers) = self.keys.get_mut(key) {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        } else if self.key_bytes + bytes(key) <= MAX_KEY_BYTES {
            self.keys.insert(key.into(), vec![number]);
            self.key_bytes += bytes(key);
        } else {
            self.left_out += 1;
            return false;
        }
        true
    }

    fn poll(&mut self) {
        let mut cut = Vec::new();
        let before = self.fences.len();
        self.fences.retain_mut(|fence| {
            let Some(connection) = &mut fence.connection else { return true };
            match connection.poll() {
                Polled::Open => true,
                Polled::Ended => false,
                Polled::Cut => {
                    fence.connection = None;
                    cut.push(Arc::clone(&fence.server));
                    true
                }
            }
        });
        self.has_ended |= self.fences.len() < before;
        for server in &cut {
            self.unfenced(server, "it broke");
        }
    }

    fn unfenced(&mut self, server: &Arc<str>, why: &str) {
        log::warn!("a lost connection to {server} may still change entries late: {why}");
        self.unfenced += 1;
        self.last_unfenced = Some(Arc::clone(server));
    }
}

impl Fence {
    /// Notes an answer at this time. Returns whether the server has answered for long enough.
    fn is_given_up_at(&mut self, now_ns: u64) -> bool {
        let step_ns = now_ns.saturating_sub(self.last_answer_ns.unwrap_or(now_ns));
        self.answered_ns += step_ns.min(nanoseconds(LONGEST_STEP));
        self.last_answer_ns = Some(now_ns);
        self.answered_ns >= nanoseconds(PATIENCE)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a second is few nanoseconds")
}

/// Returns the bytes that a key takes of the bound.
fn bytes(key: &[u8]) -> usize {
    key.len() + KEY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests;
