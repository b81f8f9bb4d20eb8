//! Which keys have to be deleted when a server is back.

use std::collections::HashSet;
use std::mem;

/// The bound on all keys, each with [`KEY_OVERHEAD_BYTES`].
const MAX_BYTES: usize = 4 << 20;
/// About what a key takes beside its bytes.
const KEY_OVERHEAD_BYTES: usize = 48;

/// Keys as the server knows them, which this process changed or may have changed while the server
/// did not answer.
#[derive(Debug, Default)]
pub(crate) struct Debts {
    keys: HashSet<Box<[u8]>>,
    bytes: usize,
    /// Keys that found no room.
    pub(crate) left_out: u64,
}

impl Debts {
    /// Adds a key.
    pub(crate) fn add(&mut self, key: &[u8]) {
        let bytes = key.len() + KEY_OVERHEAD_BYTES;
        if self.keys.contains(key) {
            return;
        }
        if self.bytes + bytes > MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.keys.insert(key.into());
        self.bytes += bytes;
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Takes some of them out.
    pub(crate) fn take_if(&mut self, is_taken: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        let taken: Vec<_> = self.keys.extract_if(|key| is_taken(key)).collect();
        self.bytes -= taken.iter().map(|key| key.len() + KEY_OVERHEAD_BYTES).sum::<usize>();
        taken
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
        mem::take(&mut self.keys).into_iter().collect()
    }
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

    #[test]
    fn some_can_be_taken_out() {
        let mut debts = Debts::default();
        for key in [b"a1".as_slice(), b"b", b"a22"] {
            debts.add(key);
        }
        let mut keys = debts.take_if(|key| key[0] == b'a');
        keys.sort();
        assert_eq!(keys, [Box::from(&b"a1"[..]), Box::from(&b"a22"[..])]);
        assert_eq!(debts.bytes, 1 + KEY_OVERHEAD_BYTES);
        assert_eq!(debts.take(), [Box::from(&b"b"[..])]);
    }

    #[test]
    fn the_bound_holds_and_what_is_left_out_is_counted() {
        let mut debts = Debts::default();
        let key = |number: usize| [vec![b'k'; 60_000], number.to_le_bytes().to_vec()].concat();
        for number in 0..100 {
            debts.add(&key(number));
        }
        assert!(debts.bytes <= MAX_BYTES);
        assert_eq!(debts.keys.len() as u64 + debts.left_out, 100);
        assert_eq!(debts.keys.len(), MAX_BYTES / (60_008 + KEY_OVERHEAD_BYTES));
        // One that is there needs no room.
        let left_out = debts.left_out;
        debts.add(&key(0));
        assert_eq!(debts.left_out, left_out);
    }
}
