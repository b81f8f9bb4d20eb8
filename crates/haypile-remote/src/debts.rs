//! Which keys have to be deleted when a server is back.

use std::collections::HashMap;
use std::mem;

/// The bound on all keys, each with [`KEY_OVERHEAD_BYTES`].
const MAX_BYTES: usize = 4 << 20;
/// About what a key takes beside its bytes.
const KEY_OVERHEAD_BYTES: usize = 48;

/// Keys as the server knows them, which this process changed or may have changed while the server
/// did not answer. They stay here until they are known to be deleted.
#[derive(Debug, Default)]
pub(crate) struct Debts {
    /// Those to be paid now.
    due: HashMap<Box<[u8]>, Debt>,
    /// Those that only another server could delete, which did not answer.
    set_apart: HashMap<Box<[u8]>, Debt>,
    /// When these are due again.
    due_again_at_ns: u64,
    /// Of both.
    bytes: usize,
    payments: u64,
    /// Keys that found no room.
    pub(crate) left_out: u64,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug)]
struct Debt {
    /// How many payments had begun when it was changed: those do not pay it.
    payments: u64,
    /// Whether another server is owed it too.
    is_passed_on: bool,
}

/// The keys of a payment that has begun.
#[derive(Debug)]
pub(crate) struct Payment {
    pub(crate) number: u64,
    pub(crate) keys: Vec<Box<[u8]>>,
}

impl Debts {
    /// Adds a key.
    pub(crate) fn add(&mut self, key: &[u8]) {
        let debt = Debt { payments: self.payments, is_passed_on: false };
        if let Some(known) = self.due.get_mut(key).or_else(|| self.set_apart.get_mut(key)) {
            *known = debt;
            return;
        }
        let bytes = bytes(key);
        if self.bytes + bytes > MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.due.insert(key.into(), debt);
        self.bytes += bytes;
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.set_apart.is_empty()
    }

    /// Begins to pay what is due. Keys that are added meanwhile are not paid by it.
    pub(crate) fn begin_payment(&mut self, now_ns: u64) -> Payment {
        if now_ns >= self.due_again_at_ns {
            self.due.extend(self.set_apart.drain());
        }
        self.payments += 1;
        Payment { number: self.payments, keys: self.due.keys().cloned().collect() }
    }

    /// These keys of the payment are deleted.
    pub(crate) fn paid(&mut self, number: u64, keys: &[Box<[u8]>]) {
        for key in keys {
            if self.due.get(key).is_some_and(|debt| debt.payments < number) {
                self.due.remove(key);
                self.bytes -= bytes(key);
            }
        }
    }

    /// Only another server could delete these keys, which did not: they are not due before then.
    pub(crate) fn set_apart(&mut self, keys: &[&[u8]], due_again_at_ns: u64) {
        self.set_apart.extend(keys.iter().filter_map(|key| self.due.remove_entry(*key)));
        self.due_again_at_ns = due_again_at_ns;
    }

    /// Whether the key is owed.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.due.contains_key(key) || self.set_apart.contains_key(key)
    }

    /// The keys that another server is owed from now on, each once. They are owed here as well, for
    /// one who does not know yet that another server has them can still ask here.
    pub(crate) fn pass_on(&mut self, is_passed_on: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        let all = self.due.iter_mut().chain(&mut self.set_apart);
        let passed_on = all.filter(|(key, debt)| !debt.is_passed_on && is_passed_on(key));
        passed_on
            .map(|(key, debt)| {
                debt.is_passed_on = true;
                key.clone()
            })
            .collect()
    }

    /// What is wrong with `server` because of the keys that found no room, for people.
    pub(crate) fn warning(&self, server: &str) -> Option<String> {
        let left_out = self.left_out;
        (left_out > 0).then(|| {
            format!(
                "{left_out} keys were changed while {server} did not answer that could not be \
                 remembered; the values it has under them are out of date until they expire or are \
                 written"
            )
        })
    }

    /// Takes all of them out.
    pub(crate) fn take(&mut self) -> Vec<Box<[u8]>> {
        self.bytes = 0;
        mem::take(&mut self.due)
            .into_keys()
            .chain(self.set_apart.drain().map(|one| one.0))
            .collect()
    }
}

/// What a key takes of the bound.
fn bytes(key: &[u8]) -> usize {
    key.len() + KEY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_comes_out_once() {
        let mut debts = Debts::default();
        for key in [b"a", b"b", b"a"] {
            debts.add(key);
        }
        let mut keys = debts.take();
        keys.sort();
        assert_eq!(keys, [Box::from(&b"a"[..]), Box::from(&b"b"[..])]);
        assert!(debts.is_empty());
        assert_eq!(debts.bytes, 0);
    }

    fn sorted(mut keys: Vec<Box<[u8]>>) -> Vec<Vec<u8>> {
        keys.sort();
        keys.into_iter().map(Vec::from).collect()
    }

    #[test]
    fn a_payment_does_not_pay_what_is_changed_meanwhile() {
        let mut debts = Debts::default();
        debts.add(b"a");
        debts.add(b"b");
        let payment = debts.begin_payment(0);
        assert_eq!(sorted(payment.keys), [b"a", b"b"]);
        debts.add(b"b");
        debts.add(b"c");
        debts.paid(payment.number, &[b"a", b"b"].map(|key| Box::from(key.as_slice())));
        let payment = debts.begin_payment(0);
        debts.paid(payment.number, &payment.keys);
        assert_eq!(sorted(payment.keys), [b"b", b"c"]);
        assert!(debts.is_empty());
        assert_eq!(debts.bytes, 0);
    }

    #[test]
    fn what_is_set_apart_is_due_again_later() {
        let mut debts = Debts::default();
        debts.add(b"a");
        debts.add(b"b");
        debts.begin_payment(0);
        debts.set_apart(&[b"a"], 7);
        assert!(debts.has(b"a") && debts.has(b"b") && !debts.has(b"c"));
        debts.add(b"a");
        assert_eq!(sorted(debts.begin_payment(6).keys), [b"b"]);
        assert_eq!(sorted(debts.begin_payment(7).keys), [b"a", b"b"]);
        debts.set_apart(&[b"a"], 9);
        assert_eq!(debts.bytes, 2 * (1 + KEY_OVERHEAD_BYTES));
        assert_eq!(sorted(debts.take()), [b"a", b"b"]);
        assert!(debts.is_empty());
    }

    #[test]
    fn what_is_passed_on_once_stays_owed_here() {
        let mut debts = Debts::default();
        for key in [b"a1".as_slice(), b"b", b"a22"] {
            debts.add(key);
        }
        debts.set_apart(&[b"a22"], 7);
        let mut pass_on = || sorted(debts.pass_on(|key| key[0] == b'a'));
        assert_eq!(pass_on(), [b"a1".to_vec(), b"a22".to_vec()]);
        assert!(pass_on().is_empty());
        debts.add(b"a1");
        assert_eq!(sorted(debts.pass_on(|_| true)), [b"a1", b"b".as_slice()]);
        assert_eq!(debts.take().len(), 3);
    }

    #[test]
    fn the_bound_holds_and_what_is_left_out_is_counted() {
        let mut debts = Debts::default();
        let key = |number: usize| [vec![b'k'; 60_000], number.to_le_bytes().to_vec()].concat();
        for number in 0..100 {
            debts.add(&key(number));
        }
        assert!(debts.bytes <= MAX_BYTES);
        assert_eq!(debts.due.len() as u64 + debts.left_out, 100);
        assert_eq!(debts.due.len(), MAX_BYTES / (60_008 + KEY_OVERHEAD_BYTES));
        // One that is there needs no room.
        let left_out = debts.left_out;
        debts.add(&key(0));
        assert_eq!(debts.left_out, left_out);
    }
}
