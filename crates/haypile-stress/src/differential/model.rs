//! The plain model: the entries that a correct cache has, as far as a caller can know.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::time::{Expiry, Moment};
use super::value::describe;

/// An entry that the test's model of the cache expects, certainly or possibly.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Rc<[u8]>,
    pub(super) expiry: Option<Expiry>,
    /// The number of the write that made the entry's current state; it stands for the entry's version, which is opaque.
    pub(super) write: u64,
    /// Whether the entry must be present, because nothing could have evicted it.
    pub(super) is_certain: bool,
    /// Whether the entry is in a snapshot that may not be loaded yet.
    is_loading: bool,
}

/// The model's knowledge of a key in the cache: it must be absent, may be present, or must be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    /// The key must be present.
    Certain,
    /// The key may have been evicted, or may have just expired.
    Possible,
}

impl Presence {
    pub(super) fn may_be_there(self) -> bool {
        self != Self::Absent
    }

    pub(super) fn may_be_absent(self) -> bool {
        self != Self::Certain
    }
}

/// The model of one namespace: the entries that its cache can have. A read of any other key has to
/// miss: an entry that was deleted, has expired or was missed once must not come back.
#[derive(Debug, Default)]
pub(super) struct Model {
    entries: BTreeMap<Key, Entry>,
    writes: u64,
    /// The number of entries that expired and may still be counted, until something removes them.
    expired: u64,
    /// Whether upper levels may have copies of what was evicted from the last one: then a read of the
    /// last level alone can miss what another read finds.
    has_copies: bool,
}

impl Model {
    pub(super) fn new(has_copies: bool) -> Self {
        Self { has_copies, ..Self::default() }
    }

    /// Returns the entry that the model of the cache has for a key; `None` if the key must be absent from the cache.
    pub(super) fn get(&self, key: Key) -> Option<&Entry> {
        self.entries.get(&key)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (Key, &Entry)> {
        self.entries.iter().map(|(key, entry)| (*key, entry))
    }

    /// Returns the largest number of expired entries that the cache under test may still count, by the model.
    pub(super) fn expired(&self) -> u64 {
        self.expired
    }

    /// Returns whether a key is absent, possibly present or certainly present; drops its entry from the model if that
    /// has certainly expired.
    pub(super) fn presence(&mut self, key: Key, now: Moment) -> Presence {
        let Some(entry) = self.entries.get(&key) else { return Presence::Absent };
        match entry.expiry {
            Some(expiry) if expiry.is_over(now) => {
                self.entries.remove(&key);
                self.expired += 1;
                Presence::Absent
            }
            Some(expiry) if expiry.may_be_over(now) => Presence::Possible,
            _ if entry.is_certain && !entry.is_loading => Presence::Certain,
            _ => Presence::Possible,
        }
    }

    /// Drops all entries from the model that have certainly expired.
    pub(super) fn expire(&mut self, now: Moment) {
        let keys: Vec<Key> = self.entries.keys().copied().collect();
        for key in keys {
            self.presence(key, now);
        }
    }

    /// Checks whether the model allows the value that a read of a key found, or the miss.
    pub(super) fn judge(&mut self, key: Key, found: Option<&[u8]>, now: Moment) -> Checked {
        let presence = self.presence(key, now);
        match (found, self.entries.get(&key)) {
            (Some(found), None) => {
                wrong!(key, "{} was found, and nothing may be there", describe(found))
            }
            (Some(found), Some(entry)) if *found == *entry.value => Ok(()),
            (Some(found), Some(entry)) => wrong!(
                key,
                "{} was found, and the last write was {}",
                describe(found),
                describe(&entry.value)
            ),
            (None, _) => self.judge_absence(key, presence),
        }
    }

    /// Checks whether the model allows that an operation found a key, or missed it, if the operation does not return
    /// the value.
    pub(super) fn judge_presence(&mut self, key: Key, is_found: bool, now: Moment) -> Checked {
        let presence = self.presence(key, now);
        if !is_found {
            return self.judge_absence(key, presence);
        }
        if presence == Presence::Absent {
            return wrong!(key, "something was found, and nothing may be there");
        }
        Ok(())
    }

    /// Judges that a key was not found; from then on it must not be, unless it is loaded.
    fn judge_absence(&mut self, key: Key, presence: Presence) -> Checked {
        if presence == Presence::Certain {
            let value = &self.entries[&key].value;
            return wrong!(key, "nothing was found, and {} must be there", describe(value));
        }
        let may_come_back =
            |entry: &Entry| entry.is_loading || (self.has_copies && !entry.is_certain);
        if self.entries.get(&key).is_some_and(may_come_back) {
            return Ok(());
        }
        self.remove(key);
        Ok(())
    }

    /// Records a written value in the model.
    pub(super) fn put(&mut self, key: Key, value: Rc<[u8]>, expiry: Option<Expiry>) {
        self.writes += 1;
        let write = self.writes;
        let entry = Entry { value, expiry, write, is_certain: true, is_loading: false };
        self.entries.insert(key, entry);
    }

    /// Records in the model of the cache that an entry has a new expiry.
    pub(super) fn touch(&mut self, key: Key, expiry: Option<Expiry>) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.expiry = expiry;
        }
    }

    /// Drops the entry of a key from the model; if it has expired, the cache may still count it.
    pub(super) fn remove(&mut self, key: Key) {
        let removed = self.entries.remove(&key);
        self.expired += u64::from(removed.is_some_and(|entry| entry.expiry.is_some()));
    }

    /// Drops the entry of a key from the model, after an operation on the cache's last level has missed the key and
    /// deleted its copies; a snapshot may still load it.
    pub(super) fn miss(&mut self, key: Key) {
        if self.entries.get(&key).is_some_and(|entry| !entry.is_loading) {
            self.remove(key);
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.expired = 0;
    }

    /// Records in the model that the cache may have evicted any entry.
    pub(super) fn doubt_all(&mut self) {
        for entry in self.entries.values_mut() {
            entry.is_certain = false;
        }
    }

    /// Records in the model that an entry was found while the cache need not evict anything, so that the entry must
    /// stay.
    pub(super) fn trust(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.is_certain = true;
            entry.is_loading = false;
        }
    }

    /// Records in the model of the cache whether the snapshot (saved entries), from which all entries come, is
    /// completely loaded.
    pub(super) fn load(&mut self, is_done: bool) {
        for entry in self.entries.values_mut() {
            entry.is_loading = !is_done;
        }
    }

    /// Records in the model that the last write of a key may not have been stored.
    pub(super) fn doubt(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.is_certain = false;
        }
    }

    /// Records in the model that all entries of the cache have new versions, as after loading a snapshot.
    pub(super) fn renumber(&mut self) {
        for entry in self.entries.values_mut() {
            self.writes += 1;
            entry.write = self.writes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key(1);

    fn model(expiry: Option<Expiry>) -> Model {
        let mut model = Model::default();
        model.put(KEY, Rc::from(*b"new"), expiry);
        model
    }

    #[test]
    fn the_last_write_is_right_and_nothing_else() {
        let now = Moment::at(0);
        assert!(model(None).judge(KEY, Some(b"new"), now).is_ok());
        assert!(model(None).judge(KEY, Some(b"old"), now).is_err());
        assert!(model(None).judge(KEY, None, now).is_err());
        assert!(model(None).judge(Key(2), Some(b"new"), now).is_err());
        assert!(model(None).judge(Key(2), None, now).is_ok());
    }

    #[test]
    fn what_may_be_evicted_may_be_absent_and_does_not_come_back() {
        let (mut model, now) = (model(None), Moment::at(0));
        model.doubt_all();
        assert!(model.judge(KEY, Some(b"new"), now).is_ok());
        assert!(model.judge(KEY, None, now).is_ok());
        assert!(model.judge(KEY, Some(b"new"), now).is_err());
    }

    #[test]
    fn between_the_bounds_of_its_expiry_both_are_right() {
        let expiry = Some(Expiry { earliest_ns: 10, latest_ns: 20 });
        assert!(model(expiry).judge(KEY, None, Moment::at(9)).is_err());
        assert!(model(expiry).judge(KEY, None, Moment::at(10)).is_ok());
        assert!(model(expiry).judge(KEY, Some(b"new"), Moment::at(19)).is_ok());
        assert!(model(expiry).judge(KEY, Some(b"new"), Moment::at(20)).is_err());
    }
}
