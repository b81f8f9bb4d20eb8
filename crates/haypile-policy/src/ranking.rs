//! The order in which entries are worth keeping: what outlives a process, best first.

use super::Slot;

/// An entry in a policy's ranking of the entries worth keeping ([`Policy::ranking`](super::Policy::ranking)), with the
/// number of hits that restores its rank in a new cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The slot (number) of the ranked entry.
    pub slot: Slot,
    /// The number of hits that give the entry about the same rank after it was inserted again; at most 127.
    pub uses: u8,
}

/// Returns cache entries from the most to the least worth keeping; `leaving` has them in the order of eviction.
pub(super) fn best_first(leaving: impl Iterator<Item = Ranked>) -> Vec<Ranked> {
    let mut entries: Vec<Ranked> = leaving.collect();
    entries.reverse();
    entries
}

/// Returns the ranking of cache entries for a policy such as CLOCK, which passes its entries in rounds, takes one use
/// from each, and evicts those without uses.
pub(super) fn fewest_uses_leave(rounds: impl Iterator<Item = Ranked>) -> Vec<Ranked> {
    let mut entries: Vec<Ranked> = rounds.collect();
    entries.sort_by_key(|entry| entry.uses);
    entries.reverse();
    entries
}
