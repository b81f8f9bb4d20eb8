//! The queue of pending writes.

use std::collections::{BTreeMap, HashMap};
use std::process;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::options::Life;
use crate::memory::shortage::has_memory;
use crate::mutant;

/// The charge of an entry in addition to its key and value: tables, counters and the key's second
/// copy.
const OVERHEAD_BYTES: u64 = 160;

/// The part of that in the table of entries.
const TABLE_BYTES: usize = 64;

/// A queue of writes that are deferred for the lower level of a cache, bounded in bytes.
///
/// Callers that put or remove a key hold its stripe; the lock of the queue is held briefly, and no
/// other lock is taken under it.
#[derive(Debug)]
pub(super) struct WriteQueue {
    max_bytes: u64,
    /// The process that writes the pending entries.
    process: u32,
    waiting: Mutex<Waiting>,
    /// The thread that writes the pending entries. It is parked while it has nothing to do: a condition variable has a
    /// lock of its own, which a child that is forked in between would find locked.
    writer: OnceLock<Thread>,
}

/// The next action of the thread that writes queued values: write, wait, or end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextWrite {
    /// The thread has to write the pending value of this key, which stays in the queue.
    Key(Arc<[u8]>),
    /// The thread has nothing to write.
    Idle,
    /// The thread has to end, because the queue was closed.
    Closed,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: HashMap<Arc<[u8]>, (u64, Pending)>,
    /// The keys of pending entries, by their turn.
    order: BTreeMap<u64, Arc<[u8]>>,
    next_turn: u64,
    bytes: u64,
    is_closed: bool,
}

/// A queued write for the lower level: the value and the expiry of an entry.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) value: Arc<[u8]>,
    /// The expiry of the queued entry by the store's clock, in nanoseconds; `u64::MAX` means never.
    pub(super) expiry_ns: u64,
}

impl Pending {
    /// Returns the remaining life of the queued entry; `None` if it has expired.
    pub(super) fn left(&self, now_ns: u64) -> Option<Life> {
        if self.expiry_ns == u64::MAX {
            return Some(Life(None));
        }
        let left_ns = self.expiry_ns.checked_sub(now_ns).filter(|left_ns| *left_ns > 0)?;
        Some(Life(Some(Duration::from_nanos(left_ns))))
    }
}

fn charge(key: &[u8], value: &[u8]) -> u64 {
    OVERHEAD_BYTES + (key.len() + value.len()) as u64
}

impl Waiting {
    fn remove(&mut self, key: &[u8]) -> Option<Pending> {
        let (turn, pending) = self.entries.remove(key)?;
        self.order.remove(&turn);
        self.bytes -= charge(key, &pending.value);
        Some(pending)
    }
}

impl WriteQueue {
    pub(super) fn new(max_bytes: u64) -> Self {
        let (waiting, writer) = (Mutex::default(), OnceLock::new());
        Self { max_bytes, process: process::id(), waiting, writer }
    }

    /// Sets the thread that is unparked when the queue has a value to write.
    pub(super) fn be_written_by(&self, writer: Thread) {
        let _ = self.writer.set(writer);
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == process::id() || mutant::is_on("child-does-the-writes-of-its-parent")
    }

    /// Marks the queue of deferred writes as belonging to another process, as in the child of a
    /// fork, for tests.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn leave_to_parent(&mut self) {
        self.process += 1;
    }

    /// Queues a write for the lower level, replacing a queued write of the same key; returns
    /// whether there was room.
    pub(super) fn put(&self, key: &[u8], value: &[u8], expiry_ns: u64) -> bool {
        if !has_memory(key.len() + value.len()) {
            return false;
        }
        let mut waiting = self.waiting.lock();
        // A full table doubles, and is copied to do so.
        let capacity = waiting.entries.capacity();
        if waiting.entries.len() == capacity
            && !has_memory(key.len() + value.len() + 2 * capacity * TABLE_BYTES)
        {
            return false;
        }
        let old = waiting.entries.get(key).map_or(0, |(_, old)| charge(key, &old.value));
        let bytes = (waiting.bytes - old).saturating_add(charge(key, value));
        if waiting.is_closed || bytes > self.max_bytes {
            return false;
        }
        waiting.bytes = bytes;
        let pending = Pending { value: value.into(), expiry_ns };
        if let Some((_, old)) = waiting.entries.get_mut(key) {
            *old = pending;
            return true;
        }
        let (key, turn): (Arc<[u8]>, u64) = (key.into(), waiting.next_turn);
        let turn =
            if mutant::is_on("last-write-is-the-first-in-turn") { u64::MAX - turn } else { turn };
        waiting.next_turn += 1;
        waiting.order.insert(turn, Arc::clone(&key));
        waiting.entries.insert(key, (turn, pending));
        drop(waiting);
        self.wake();
        true
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Pending> {
        let waiting = self.waiting.lock();
        waiting.entries.get(key).map(|(_, pending)| pending.clone())
    }

    pub(super) fn remove(&self, key: &[u8]) -> Option<Pending> {
        self.waiting.lock().remove(key)
    }

    /// Removes all writes queued for the lower level, and returns their number.
    pub(super) fn clear(&self) -> usize {
        let mut waiting = self.waiting.lock();
        let entries = std::mem::take(&mut waiting.entries).len();
        waiting.order.clear();
        waiting.bytes = 0;
        entries
    }

    /// Returns the keys of writes queued for the lower level, the oldest first.
    pub(super) fn keys(&self) -> Vec<Arc<[u8]>> {
        self.waiting.lock().order.values().cloned().collect()
    }

    /// Closes the queue of deferred writes, so that it refuses writes from now on.
    pub(super) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.waiting.lock().is_closed
    }

    /// Returns the key of the oldest queued write, or that the writing thread has nothing to do or
    /// has to end.
    pub(super) fn next(&self) -> NextWrite {
        let waiting = self.waiting.lock();
        match waiting.order.values().next() {
            _ if waiting.is_closed => NextWrite::Closed,
            Some(key) => NextWrite::Key(Arc::clone(key)),
            None => NextWrite::Idle,
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_turn_and_the_last_value() {
        let queue = WriteQueue::new(1 << 20);
        for (key, value) in [("b", "1"), ("a", "2"), ("b", "3")] {
            assert!(queue.put(key.as_bytes(), value.as_bytes(), u64::MAX));
        }
        assert_eq!(queue.keys(), [Arc::from(b"b".as_slice()), Arc::from(b"a".as_slice())]);
        let key = |key: &[u8]| NextWrite::Key(key.into());
        assert_eq!(queue.next(), key(b"b"));
        assert_eq!(*queue.remove(b"b").unwrap().value, *b"3");
        assert_eq!(queue.next(), key(b"a"));
        assert!(queue.put(b"b", b"4", u64::MAX));
        assert_eq!(queue.next(), key(b"a"));
        assert_eq!(queue.clear(), 2);
        assert_eq!(queue.next(), NextWrite::Idle);
        assert_eq!((queue.keys().len(), queue.waiting.lock().bytes), (0, 0));
        queue.close();
        assert!(queue.next() == NextWrite::Closed && !queue.put(b"c", b"", u64::MAX));
    }

    #[test]
    fn it_is_bounded_in_bytes() {
        let queue = WriteQueue::new(2 * OVERHEAD_BYTES + 20);
        assert!(queue.put(b"a", &[0; 9], u64::MAX));
        assert!(!queue.put(b"b", &[0; 10], u64::MAX));
        assert!(queue.put(b"b", &[0; 9], u64::MAX));
        assert!(!queue.put(b"a", &[0; 10], u64::MAX));
        assert!(queue.put(b"a", &[1; 9], u64::MAX));
        assert!(!queue.put(b"c", b"", u64::MAX));
        assert_eq!(*queue.remove(b"a").unwrap().value, [1; 9]);
        assert!(queue.put(b"c", b"", u64::MAX));
    }

    #[test]
    fn what_has_expired_has_nothing_left() {
        let pending = Pending { value: [].into(), expiry_ns: 5 };
        assert_eq!(pending.left(3), Some(Life(Some(Duration::from_nanos(2)))));
        assert_eq!((pending.left(5), pending.left(6)), (None, None));
        let pending = Pending { expiry_ns: u64::MAX, ..pending };
        assert_eq!(pending.left(u64::MAX), Some(Life(None)));
    }
}
