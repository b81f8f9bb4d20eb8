//! The order in which entries are worth keeping: what outlives a process, best first.

use super::Slot;

/// An entry in a [`Policy::ranking`](super::Policy::ranking), with the uses that restore its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The slot of the entry.
    pub slot: Slot,
    /// The number of hits after an insertion that give an entry about the same rank; at most 127.
    pub uses: u8,
}

/// Returns entries from the best to the worst; `leaving` has them in the order of eviction.
pub(super) fn best_first(leaving: impl Iterator<Item = Ranked>) -> Vec<Ranked> {
    let mut entries: Vec<Ranked> = leaving.collect();
    entries.reverse();
    entries
}

/// Returns the ranking of entries by a policy that visits them in rounds, and evicts an entry after
/// as many rounds as it has uses.
pub(super) fn fewest_uses_leave(rounds: impl Iterator<Item = Ranked>) -> Vec<Ranked> {
    let mut entries: Vec<Ranked> = rounds.collect();
    entries.sort_by_key(|entry| entry.uses);
    entries.reverse();
    entries
}
