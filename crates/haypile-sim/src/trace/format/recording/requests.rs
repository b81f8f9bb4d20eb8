//! Conversion of recorded operations into the requests of a trace.
//!
//! A simulation asks a cache of another size or policy the same questions, and fills it when it
//! misses. So what the recorded cache answered is not taken over, and a write that only filled it
//! after a miss is not a request of its own:
//!
//! | operation | request |
//! |---|---|
//! | a hit | a read of that size |
//! | a miss, and the next write of its key | one read, in the place of the miss, of the size written |
//! | a miss that no write follows | a read of the last known size of its key |
//! | a write without a miss before it | a write |
//! | a write that the store refused for its size | a write: a larger cache would take it |
//! | `incr`, `decr` of a counter | a write |
//! | a deletion, of an entry or not | a deletion: another cache may have the entry |
//! | `clear` | deletions of all keys that were read or written since the last one |
//! | `add`, `replace`, `cas`, `incr`, `decr` without effect; `touch` | nothing |
//!
//! A miss waits for its write for [`WAIT_US`] and [`MAX_WAITING`] requests at most; a later write
//! is a request of its own. A deletion ends the wait as well: the write after it has to be one.
//! Where several threads miss the same key, each waits for its own write.
//!
//! The time between a miss and its write is what the miss cost. TTLs are not simulated. A program that does not fill after a miss (it asks for what there is
//! not) gets more hits in a simulation than it had.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use haypile_policy::recording::Kind;

use super::super::super::{Key, Op, Request, Sink, TraceError};
use super::super::entries::Entries;

/// Longest time that a miss waits for its write: one minute, in microseconds.
const WAIT_US: u64 = 60_000_000;

/// Requests that wait behind a miss.
const MAX_WAITING: usize = 1 << 16;

/// Bytes of keys that wait.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// A cache operation that was recorded while a program ran: its kind (such as a hit), whether it changed the cache, its
/// time and its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) effect: bool,
    pub(super) time_us: u64,
    pub(super) size_bytes: Option<u64>,
}

/// A request whose turn has not come.
struct WaitingRequest {
    key: Box<[u8]>,
    size_bytes: Option<u64>,
    op: Op,
    time_us: u64,
    /// The time from the miss to its write.
    cost_ns: Option<u64>,
    /// Whether the operation is a miss whose write has not come.
    is_open: bool,
}

/// A converter of recorded cache operations into requests of a trace, which joins a miss and the write after it into
/// one read.
#[derive(Default)]
pub(super) struct Requests {
    queue: VecDeque<WaitingRequest>,
    queue_bytes: usize,
    /// Number of requests that have left the queue, which is the number of its first one.
    gone: u64,
    /// Numbers of the open misses of each key.
    open: HashMap<Box<[u8]>, VecDeque<u64>, RandomState>,
    /// Keys that were read or written since everything was cleared, with their order.
    seen: HashMap<Box<[u8]>, u64, RandomState>,
    appearances: u64,
}

impl Requests {
    /// Adds the next recorded operation and its key, and passes on to the sink all requests that no longer wait for the
    /// write after a miss.
    pub(super) fn operation<S: Sink + ?Sized>(
        &mut self,
        operation: Operation,
        key: &[u8],
        entries: &mut Entries<'_, S>,
    ) -> Result<(), TraceError> {
        let Operation { kind, effect, time_us, size_bytes } = operation;
        self.drain(time_us, entries)?;
        let read = |size_bytes| (Op::Read, size_bytes);
        let (op, size_bytes) = match kind {
            Kind::Hit => read(size_bytes),
            Kind::Miss => read(None),
            Kind::Set | Kind::Add | Kind::Replace | Kind::Cas => {
                if self.fill(key, size_bytes, time_us) {
                    return self.drain(time_us, entries);
                }
                // A set that the store refused, and not its condition.
                if !effect && kind != Kind::Set {
                    return Ok(());
                }
                (Op::Write, size_bytes)
            }
            Kind::Incr | Kind::Decr if effect => (Op::Write, size_bytes),
            Kind::Incr | Kind::Decr | Kind::Touch => return Ok(()),
            Kind::Delete => {
                self.give_up(key);
                self.seen.remove(key);
                (Op::Delete, None)
            }
            Kind::Clear => return self.clear(time_us, entries),
        };
        if op != Op::Delete && !self.seen.contains_key(key) {
            self.seen.insert(key.into(), self.appearances);
            self.appearances += 1;
        }
        let is_open = kind == Kind::Miss;
        if self.queue.is_empty() && !is_open {
            let key = Key::Text(key);
            return entries.push(Request {
                key,
                size_bytes,
                op,
                time_us: Some(time_us),
                ttl_us: None,
                cost_ns: None,
            });
        }
        if is_open {
            let number = self.gone + self.queue.len() as u64;
            match self.open.get_mut(key) {
                Some(numbers) => numbers.push_back(number),
                None => {
                    self.open.insert(key.into(), VecDeque::from([number]));
                }
            }
        }
        self.queue_bytes += key.len();
        self.queue.push_back(WaitingRequest {
            key: key.into(),
            size_bytes,
            op,
            time_us,
            cost_ns: None,
            is_open,
        });
        self.drain(time_us, entries)
    }

    /// Passes on to the sink all requests that still waited for the write after a miss when the recordings ended.
    pub(super) fn finish<S: Sink + ?Sized>(
        &mut self,
        entries: &mut Entries<'_, S>,
    ) -> Result<(), TraceError> {
        while self.pop(entries)? {}
        Ok(())
    }

    /// Tells the open misses of a key the size, and closes the first: it cost the time until this write. False if there is none.
    fn fill(&mut self, key: &[u8], size_bytes: Option<u64>, time_us: u64) -> bool {
        let Some(numbers) = self.open.get_mut(key) else { return false };
        for &number in &*numbers {
            let waiting = waiting(&mut self.queue, self.gone, number);
            waiting.size_bytes = waiting.size_bytes.or(size_bytes);
        }
        let first = numbers.pop_front().expect("there is one as long as there is a list");
        if numbers.is_empty() {
            self.open.remove(key);
        }
        let first = waiting(&mut self.queue, self.gone, first);
        first.is_open = false;
        first.cost_ns = Some(time_us.saturating_sub(first.time_us).saturating_mul(1_000));
        true
    }

    /// Lets the open misses of a key wait no longer.
    fn give_up(&mut self, key: &[u8]) {
        for number in self.open.remove(key).into_iter().flatten() {
            waiting(&mut self.queue, self.gone, number).is_open = false;
        }
    }

    fn clear<S: Sink + ?Sized>(
        &mut self,
        time_us: u64,
        entries: &mut Entries<'_, S>,
    ) -> Result<(), TraceError> {
        self.finish(entries)?;
        let mut keys: Vec<_> = self.seen.drain().collect();
        keys.sort_unstable_by_key(|&(_, order)| order);
        for (key, _) in keys {
            let (key, time_us) = (Key::Text(&key), Some(time_us));
            entries.push(Request {
                key,
                size_bytes: None,
                op: Op::Delete,
                time_us,
                ttl_us: None,
                cost_ns: None,
            })?;
        }
        Ok(())
    }

    /// Pushes the requests from the first on that wait for nothing, or have waited too long.
    fn drain<S: Sink + ?Sized>(
        &mut self,
        now_us: u64,
        entries: &mut Entries<'_, S>,
    ) -> Result<(), TraceError> {
        while let Some(first) = self.queue.front() {
            let may_wait = first.time_us.saturating_add(WAIT_US) > now_us
                && self.queue.len() <= MAX_WAITING
                && self.queue_bytes <= MAX_WAITING_BYTES;
            if first.is_open && may_wait {
                break;
            }
            self.pop(entries)?;
        }
        Ok(())
    }

    fn pop<S: Sink + ?Sized>(&mut self, entries: &mut Entries<'_, S>) -> Result<bool, TraceError> {
        let Some(WaitingRequest { key, size_bytes, op, time_us, cost_ns, is_open }) =
            self.queue.pop_front()
        else {
            return Ok(false);
        };
        self.gone += 1;
        self.queue_bytes -= key.len();
        if is_open && let Some(numbers) = self.open.get_mut(&key) {
            // The first in the queue is the first of its key.
            numbers.pop_front();
            if numbers.is_empty() {
                self.open.remove(&key);
            }
        }
        let time_us = Some(time_us);
        entries.push(Request {
            key: Key::Text(&key),
            size_bytes,
            op,
            time_us,
            ttl_us: None,
            cost_ns,
        })?;
        Ok(true)
    }
}

/// The request of this number, which has not left the queue.
fn waiting(queue: &mut VecDeque<WaitingRequest>, gone: u64, number: u64) -> &mut WaitingRequest {
    let at = usize::try_from(number - gone).expect("the queue is short");
    &mut queue[at]
}
