//! The order in which entries are worth keeping: what outlives a process, best first.

use super::Slot;

/// An entry of a [`Policy::ranking`](super::Policy::ranking).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The slot of the entry.
    pub slot: Slot,
    /// The number of hits after its insertion that bring an entry to about where this one is; at
    /// most 127.
    pub uses: u8,
}

/// Returns entries from the best to the worst; `leaving` gives them in the order in which they would be evicted.
pub(super) fn best_first(leaving: impl Iterator<Item = Ranked>) -> Vec<Ranked> {
    let mut entries: Vec<Ranked> = leaving.collect();
    entries.reverse();
    entries
}

/// Returns the ranking of entries in the order in which a policy looks for a victim, where an entry
/// leaves after as many more rounds as it has uses.
pub(super) fn fewest_uses_leave(rounds: impl Iterator<Item = Ranked>) -> Vec<Ranked> {
    let mut entries: Vec<Ranked> = rounds.collect();
    entries.sort_by_key(|entry| entry.uses);
    entries.reverse();
    entries
}
