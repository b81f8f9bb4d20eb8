//! The database, and the values that clients may still read.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::role::{ALL_KEYS, GROUPS};
use super::super::tally::Tally;
use super::client::Answer;
use super::orders::Removal;

/// The true values of all keys (a simulated database), and which of them the cache may still return.
///
/// A change of the database has a number. Whoever computes a value afterwards has it, or a higher one. When the removal
/// that follows the change is acknowledged, values of lower numbers are stale to all who ask from then on.
pub(super) struct Truth {
    /// The number of the last change.
    clock: AtomicU64,
    keys: Vec<Entry>,
    /// Removals of each of the `GROUPS` groups, then those of the group of all keys.
    groups: Vec<Removed>,
    all: Removed,
}

#[derive(Default)]
struct Entry {
    removed: Removed,
    /// The number of removals of the key that had begun when its last value was stored, plus 1. Only a value counts that was
    /// stored while no removal was under way; 0 before the first.
    stored: AtomicU64,
}

/// Removals of a key, a group or everything.
#[derive(Default)]
struct Removed {
    /// The number of removals that have begun.
    begun: AtomicU64,
    /// The number of removals that have ended, by an answer or the death of their client.
    ended: AtomicU64,
    /// The number of the last change of which the removal was acknowledged.
    floor: AtomicU64,
}

/// The known state of a key before a client process is ordered to read or fill it, from which follows which answers are
/// right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// The lowest number that is not stale.
    floor: u64,
    /// The number of removals that have begun.
    begun: u64,
    /// Whether all these removals had ended.
    is_quiet: bool,
    /// Whether a value was stored, and no removal has begun since then.
    is_there: bool,
}

impl Truth {
    pub(super) fn new(keys: u64) -> Self {
        Self {
            clock: AtomicU64::new(1),
            keys: (0..keys).map(|_| Entry::default()).collect(),
            groups: (0..=GROUPS).map(|_| Removed::default()).collect(),
            all: Removed::default(),
        }
    }

    pub(super) fn keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Returns the number of the simulated database's last change.
    pub(super) fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    /// Changes the simulated database, before `removal` removes the outdated values from the cache. Returns the number
    /// of the change.
    pub(super) fn change(&self, removal: Removal) -> u64 {
        self.of(removal).begun.fetch_add(1, Ordering::SeqCst);
        self.clock.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Records the end of a client's removal of entries from the cache, whatever its outcome.
    pub(super) fn end(&self, removal: Removal) {
        self.of(removal).ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Records the answer of a client process to the removal that followed a change of the database.
    pub(super) fn removed(
        &self,
        removal: Removal,
        changed: u64,
        answer: &Answer,
        tally: &mut Tally,
    ) {
        if *answer != Answer::Done {
            return;
        }
        self.of(removal).floor.fetch_max(changed, Ordering::SeqCst);
        match removal {
            Removal::Key(_) => tally.deleted += 1,
            Removal::Group(_) => tally.invalidated += 1,
            Removal::All => tally.cleared += 1,
        }
    }

    pub(super) fn before(&self, key: u64) -> Before {
        // One that ends in between has not ended.
        let ended = self.sum(key, |removed| &removed.ended);
        let begun = self.begun(key);
        let floor = self.removals(key).map(|removed| removed.floor.load(Ordering::SeqCst));
        Before {
            floor: floor.into_iter().max().unwrap_or(0),
            begun,
            is_quiet: begun == ended,
            is_there: self.entry(key).stored.load(Ordering::SeqCst) == begun + 1,
        }
    }

    /// Checks whether the value that a client process got for a key is allowed (not stale), and counts the result.
    pub(super) fn judge(&self, key: u64, before: Before, answer: &Answer, tally: &mut Tally) {
        match *answer {
            Answer::Hit(number) | Answer::Value(number) => {
                tally.compared += 1;
                tally.reads += 1;
                tally.hits += 1;
                if number < before.floor {
                    tally.stale += 1;
                    tally.find(|| {
                        format!(
                            "key {key}: a value of change {number} was read after what change {} had made of it was removed",
                            before.floor
                        )
                    });
                }
                if number > self.now() {
                    tally.wrong += 1;
                    tally.find(|| format!("key {key}: nobody has written {number}"));
                }
            }
            Answer::Miss => {
                tally.reads += 1;
                if before.is_there && self.begun(key) == before.begun {
                    tally.compared += 1;
                    tally.lost += 1;
                    tally.find(|| format!("key {key} is not there, and nobody has removed it"));
                }
            }
            Answer::Stored => {
                // What another one removes in the meantime may be gone.
                if before.is_quiet && self.begun(key) == before.begun {
                    self.entry(key).stored.store(before.begun + 1, Ordering::SeqCst);
                }
            }
            Answer::Refused => tally.refused += 1,
            Answer::Done | Answer::Nothing => {}
        }
    }

    fn entry(&self, key: u64) -> &Entry {
        &self.keys[usize::try_from(key).expect("an index")]
    }

    fn of(&self, removal: Removal) -> &Removed {
        match removal {
            Removal::Key(key) => &self.entry(key).removed,
            Removal::Group(group) => &self.groups[usize::try_from(group).expect("an index")],
            Removal::All => &self.all,
        }
    }

    /// Whatever removes a key.
    fn removals(&self, key: u64) -> [&Removed; 4] {
        [Removal::Key(key), Removal::Group(key % GROUPS), Removal::Group(ALL_KEYS), Removal::All]
            .map(|removal| self.of(removal))
    }

    /// Returns the number of removals that have begun and may remove a key: of groups, all, for two may have one word in a cache.
    fn begun(&self, key: u64) -> u64 {
        self.sum(key, |removed| &removed.begun)
    }

    fn sum(&self, key: u64, count: impl Fn(&Removed) -> &AtomicU64) -> u64 {
        let groups = self.groups.iter();
        let all = groups.chain([&self.entry(key).removed, &self.all]);
        all.map(|removed| count(removed).load(Ordering::SeqCst)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(truth: &Truth, key: u64, before: Before, answer: &Answer) -> Tally {
        let mut tally = Tally::default();
        truth.judge(key, before, answer, &mut tally);
        tally
    }

    #[test]
    fn a_value_is_stale_once_its_removal_is_acknowledged() {
        for removal in
            [Removal::Key(9), Removal::Group(9 % GROUPS), Removal::Group(ALL_KEYS), Removal::All]
        {
            let truth = Truth::new(20);
            let old = truth.now();
            let changed = truth.change(removal);
            let during = truth.before(9);
            assert_eq!(judged(&truth, 9, during, &Answer::Hit(old)).stale, 0, "not yet");
            truth.removed(removal, changed, &Answer::Nothing, &mut Tally::default());
            assert_eq!(judged(&truth, 9, truth.before(9), &Answer::Hit(old)).stale, 0, "it failed");
            truth.removed(removal, changed, &Answer::Done, &mut Tally::default());
            assert_eq!(judged(&truth, 9, during, &Answer::Hit(old)).stale, 0, "asked before");
            let before = truth.before(9);
            for answer in [Answer::Hit(old), Answer::Value(old)] {
                assert_eq!(judged(&truth, 9, before, &answer).stale, 1);
            }
            assert_eq!(judged(&truth, 9, before, &Answer::Hit(changed)).stale, 0);
            let is_of_others = matches!(removal, Removal::Key(_) | Removal::Group(0..GROUPS));
            let other = judged(&truth, 10, truth.before(10), &Answer::Hit(old));
            assert_eq!(other.stale, u64::from(!is_of_others));
        }
    }

    #[test]
    fn what_nobody_wrote_is_wrong() {
        let truth = Truth::new(1);
        assert_eq!(judged(&truth, 0, truth.before(0), &Answer::Hit(truth.now() + 1)).wrong, 1);
    }

    #[test]
    fn a_stored_value_that_nobody_removes_is_there() {
        let truth = Truth::new(2);
        let lost = |truth: &Truth| judged(truth, 0, truth.before(0), &Answer::Miss).lost;
        assert_eq!(lost(&truth), 0);
        judged(&truth, 0, truth.before(0), &Answer::Stored);
        assert_eq!(lost(&truth), 1);
        truth.change(Removal::Key(1));
        assert_eq!(lost(&truth), 1);
        let before = truth.before(0);
        truth.change(Removal::Key(0));
        assert_eq!(judged(&truth, 0, before, &Answer::Miss).lost, 0, "it is being removed");
        assert_eq!(lost(&truth), 0);
        judged(&truth, 0, truth.before(0), &Answer::Stored);
        assert_eq!(lost(&truth), 0, "what is being removed may be removed after it");
        truth.end(Removal::Key(0));
        judged(&truth, 0, truth.before(0), &Answer::Stored);
        assert_eq!(lost(&truth), 1);
        let before = truth.before(0);
        truth.change(Removal::All);
        truth.end(Removal::All);
        judged(&truth, 0, before, &Answer::Stored);
        assert_eq!(lost(&truth), 0, "removed while it was stored");
    }
}
