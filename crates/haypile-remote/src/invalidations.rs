//! The invalidations that are pending for a server until it is back.

use std::collections::HashMap;
use std::mem;

/// The bound on all keys, each counted with [`KEY_OVERHEAD_BYTES`].
const MAX_BYTES: usize = 4 << 20;
/// The approximate overhead of a key.
const KEY_OVERHEAD_BYTES: usize = 48;

/// The pending invalidations of a server: keys that this process changed, or may have changed, while the server did not
/// answer. A key stays pending until the server is known to have deleted it.
#[derive(Debug, Default)]
pub(crate) struct Invalidations {
    /// Keys to delete at the next opportunity.
    due: HashMap<Box<[u8]>, PendingKey>,
    /// Keys that only another server can delete, which did not answer; they are due again later.
    set_apart: HashMap<Box<[u8]>, PendingKey>,
    /// The time at which the keys set apart are due again.
    due_again_at_ns: u64,
    /// The bytes of the keys in `due` and `set_apart`.
    bytes: usize,
    drains: u64,
    /// Number of changed keys that were not remembered, because there was no room among the pending invalidations.
    pub(crate) left_out: u64,
}

/// State of a pending key.
#[derive(Clone, Copy, Debug)]
struct PendingKey {
    /// Number of drains that had begun when the key was changed. Those do not settle it.
    drains: u64,
    /// Whether the key is pending for another server too.
    is_passed_on: bool,
}

/// A deletion of a server's pending keys (a drain) that is under way, with its number and these keys.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) number: u64,
    pub(crate) keys: Vec<Box<[u8]>>,
}

impl Invalidations {
    /// Adds a key to the pending invalidations: its entry is deleted when the server answers.
    pub(crate) fn add(&mut self, key: &[u8]) {
        let state = PendingKey { drains: self.drains, is_passed_on: false };
        if let Some(known) = self.due.get_mut(key).or_else(|| self.set_apart.get_mut(key)) {
            *known = state;
            return;
        }
        let bytes = bytes(key);
        if self.bytes + bytes > MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.due.insert(key.into(), state);
        self.bytes += bytes;
    }

    /// Whether no key has to be deleted from the server (there are no pending invalidations).
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.set_apart.is_empty()
    }

    /// Begins to delete the pending keys that are due from the server. Keys added after this call are not included.
    pub(crate) fn begin_drain(&mut self, now_ns: u64) -> Drain {
        if now_ns >= self.due_again_at_ns {
            self.due.extend(self.set_apart.drain());
        }
        self.drains += 1;
        Drain { number: self.drains, keys: self.due.keys().cloned().collect() }
    }

    /// Removes keys that the server has deleted, in the drain with this number, from the pending invalidations.
    pub(crate) fn drained(&mut self, number: u64, keys: &[Box<[u8]>]) {
        for key in keys {
            if self.due.get(key).is_some_and(|state| state.drains < number) {
                self.due.remove(key);
                self.bytes -= bytes(key);
            }
        }
    }

    /// Postpones the invalidation of keys that only another server can delete, and has not deleted.
    pub(crate) fn set_apart(&mut self, keys: &[&[u8]], due_again_at_ns: u64) {
        self.set_apart.extend(keys.iter().filter_map(|key| self.due.remove_entry(*key)));
        self.due_again_at_ns = due_again_at_ns;
    }

    /// Whether a key has still to be deleted from the server, because its invalidation is pending.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.due.contains_key(key) || self.set_apart.contains_key(key)
    }

    /// Returns the pending keys whose invalidation is now pending for another server too, each once. They stay pending
    /// here, because a process with an outdated slot map can still ask this server.
    pub(crate) fn pass_on(&mut self, is_passed_on: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        let all = self.due.iter_mut().chain(&mut self.set_apart);
        let passed_on = all.filter(|(key, state)| !state.is_passed_on && is_passed_on(key));
        passed_on
            .map(|(key, state)| {
                state.is_passed_on = true;
                key.clone()
            })
            .collect()
    }

    /// Returns a warning about the changed keys for which there was no room among the pending invalidations; `None` if
    /// there are none.
    pub(crate) fn warning(&self, server: &str) -> Option<String> {
        let left_out = self.left_out;
        (left_out > 0).then(|| {
            format!(
                "{left_out} keys were changed while {server} did not answer and could not be \
                 remembered; the server's values for them are stale until they expire or are \
                 overwritten"
            )
        })
    }

    /// Removes and returns all keys whose invalidation is pending.
    pub(crate) fn take(&mut self) -> Vec<Box<[u8]>> {
        self.bytes = 0;
        mem::take(&mut self.due)
            .into_keys()
            .chain(self.set_apart.drain().map(|one| one.0))
            .collect()
    }
}

/// Returns the bytes that a key takes of the bound.
fn bytes(key: &[u8]) -> usize {
    key.len() + KEY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_comes_out_once() {
        let mut pending = Invalidations::default();
        for key in [b"a", b"b", b"a"] {
            pending.add(key);
        }
        let mut keys = pending.take();
        keys.sort();
        assert_eq!(keys, [Box::from(&b"a"[..]), Box::from(&b"b"[..])]);
        assert!(pending.is_empty());
        assert_eq!(pending.bytes, 0);
    }

    fn sorted(mut keys: Vec<Box<[u8]>>) -> Vec<Vec<u8>> {
        keys.sort();
        keys.into_iter().map(Vec::from).collect()
    }

    #[test]
    fn a_payment_does_not_pay_what_is_changed_meanwhile() {
        let mut pending = Invalidations::default();
        pending.add(b"a");
        pending.add(b"b");
        let drain = pending.begin_drain(0);
        assert_eq!(sorted(drain.keys), [b"a", b"b"]);
        pending.add(b"b");
        pending.add(b"c");
        pending.drained(drain.number, &[b"a", b"b"].map(|key| Box::from(key.as_slice())));
        let drain = pending.begin_drain(0);
        pending.drained(drain.number, &drain.keys);
        assert_eq!(sorted(drain.keys), [b"b", b"c"]);
        assert!(pending.is_empty());
        assert_eq!(pending.bytes, 0);
    }

    #[test]
    fn what_is_set_apart_is_due_again_later() {
        let mut pending = Invalidations::default();
        pending.add(b"a");
        pending.add(b"b");
        pending.begin_drain(0);
        pending.set_apart(&[b"a"], 7);
        assert!(pending.has(b"a") && pending.has(b"b") && !pending.has(b"c"));
        pending.add(b"a");
        assert_eq!(sorted(pending.begin_drain(6).keys), [b"b"]);
        assert_eq!(sorted(pending.begin_drain(7).keys), [b"a", b"b"]);
        pending.set_apart(&[b"a"], 9);
        assert_eq!(pending.bytes, 2 * (1 + KEY_OVERHEAD_BYTES));
        assert_eq!(sorted(pending.take()), [b"a", b"b"]);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_key_that_is_passed_on_stays_pending_here() {
        let mut pending = Invalidations::default();
        for key in [b"a1".as_slice(), b"b", b"a22"] {
            pending.add(key);
        }
        pending.set_apart(&[b"a22"], 7);
        let mut pass_on = || sorted(pending.pass_on(|key| key[0] == b'a'));
        assert_eq!(pass_on(), [b"a1".to_vec(), b"a22".to_vec()]);
        assert!(pass_on().is_empty());
        pending.add(b"a1");
        assert_eq!(sorted(pending.pass_on(|_| true)), [b"a1", b"b".as_slice()]);
        assert_eq!(pending.take().len(), 3);
    }

    #[test]
    fn the_bound_holds_and_what_is_left_out_is_counted() {
        let mut pending = Invalidations::default();
        let key = |number: usize| [vec![b'k'; 60_000], number.to_le_bytes().to_vec()].concat();
        for number in 0..100 {
            pending.add(&key(number));
        }
        assert!(pending.bytes <= MAX_BYTES);
        assert_eq!(pending.due.len() as u64 + pending.left_out, 100);
        assert_eq!(pending.due.len(), MAX_BYTES / (60_008 + KEY_OVERHEAD_BYTES));
        // A key that is pending already needs no room.
        let left_out = pending.left_out;
        pending.add(&key(0));
        assert_eq!(pending.left_out, left_out);
    }
}
