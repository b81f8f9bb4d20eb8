//! Queues of ghosts by fingerprint, which take little memory: a store pays for each ghost.

use std::collections::{BTreeMap, VecDeque};

use super::GhostList;
use crate::table::{Table, spread};

/// A ghost in 12 bytes, which unpacked would take 16.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Ghost {
    fingerprint: u64,
    weight: u32,
}

/// As the weight of a ghost: it was removed.
const REMOVED: u32 = u32::MAX;

/// As the weight of a ghost: it is this heavy at least, and has its weight elsewhere.
const HEAVY: u32 = u32::MAX - 1;

/// A [`GhostList`] (evicted keys) that identifies keys by fingerprints. Two keys with the same fingerprint share a
/// ghost.
///
/// A ghost takes 12 bytes in the order of age and 8 to 11 in the table that finds it, and a little
/// more while others behind it were removed. All operations take constant time on average.
#[derive(Debug, Default)]
pub struct FingerprintGhosts {
    /// Ghosts from the oldest to the youngest, including some that were removed.
    order: VecDeque<Ghost>,
    /// The turn of the oldest. The next has the next turn, modulo 2^32.
    first_turn: u32,
    /// The turns of ghosts that were not removed, by fingerprint.
    turns: Table,
    /// The weights of 4 GiB and more, by fingerprint.
    heavy: BTreeMap<u64, u64>,
    weight: u64,
}

impl FingerprintGhosts {
    fn find(&self, fingerprint: u64) -> Option<u32> {
        let same = |turn| self.order[self.position(turn)].fingerprint == fingerprint;
        self.turns.find(spread(fingerprint), same)
    }

    fn position(&self, turn: u32) -> usize {
        turn.wrapping_sub(self.first_turn) as usize
    }

    fn turn(&self, position: usize) -> u32 {
        let position = u32::try_from(position).expect("fewer than 2^32 ghosts");
        self.first_turn.wrapping_add(position)
    }

    /// Forgets a ghost that is, or was until now, at `turn` of the order.
    fn forget(&mut self, ghost: Ghost, turn: u32) -> u64 {
        let Ghost { fingerprint, weight } = ghost;
        self.turns.remove(spread(fingerprint), turn);
        let weight = match weight {
            HEAVY => self.heavy.remove(&fingerprint).expect("a heavy ghost has its weight here"),
            weight => u64::from(weight),
        };
        self.weight -= weight;
        weight
    }

    /// Gives memory back after a ghost was forgotten, where it is worth the work.
    fn shrink(&mut self) {
        let ghosts = self.turns.len();
        if self.order.len() > ghosts + ghosts / 4 + 16 {
            self.renumber();
        }
        if self.turns.capacity() > 2 * ghosts + 64 {
            let hash_of = hashes(&self.order, self.first_turn);
            self.turns.shrink_to(ghosts + ghosts / 8, hash_of);
        }
        let ordered = self.order.len();
        if self.order.capacity() > ordered + ordered / 4 + 64 {
            self.order.shrink_to(ordered + ordered / 8);
        }
    }

    /// Drops what was removed from the order, and gives the others new turns.
    fn renumber(&mut self) {
        self.order.retain(|ghost| ghost.weight != REMOVED);
        self.first_turn = 0;
        self.turns.clear();
        for (turn, ghost) in (0..).zip(&self.order) {
            let rehash = |_| unreachable!("the table had room for all");
            self.turns.insert(spread(ghost.fingerprint), turn, rehash);
        }
    }
}

/// Hashes by turn, to rebuild the table.
fn hashes(order: &VecDeque<Ghost>, first_turn: u32) -> impl Fn(u32) -> u64 {
    move |turn| spread(order[turn.wrapping_sub(first_turn) as usize].fingerprint)
}

impl GhostList for FingerprintGhosts {
    fn reserve(&mut self, _slots: usize) {}

    fn push(&mut self, fingerprint: u64, weight: u64) {
        if self.find(fingerprint).is_some() {
            return;
        }
        if self.order.len() == self.order.capacity() {
            // By an eighth: ghosts that are not there yet cost memory as well.
            self.order.reserve_exact(self.order.len() / 8 + 16);
        }
        let turn = self.turn(self.order.len());
        let hash_of = hashes(&self.order, self.first_turn);
        self.turns.insert(spread(fingerprint), turn, hash_of);
        let short = u32::try_from(weight).unwrap_or(HEAVY).min(HEAVY);
        if short == HEAVY {
            self.heavy.insert(fingerprint, weight);
        }
        self.order.push_back(Ghost { fingerprint, weight: short });
        self.weight += weight;
    }

    fn remove(&mut self, fingerprint: u64) -> Option<u64> {
        let turn = self.find(fingerprint)?;
        let position = self.position(turn);
        let ghost = self.order[position];
        self.order[position].weight = REMOVED;
        let weight = self.forget(ghost, turn);
        self.shrink();
        Some(weight)
    }

    #[inline]
    fn prefetch_to_write(&self, fingerprint: u64) {
        self.turns.prefetch_to_write(spread(fingerprint));
    }

    fn pop(&mut self) -> Option<u64> {
        while let Some(ghost) = self.order.pop_front() {
            let turn = self.first_turn;
            self.first_turn = turn.wrapping_add(1);
            if ghost.weight != REMOVED {
                let weight = self.forget(ghost, turn);
                self.shrink();
                if let Some(next) = self.order.front() {
                    self.prefetch_to_write(next.fingerprint);
                }
                return Some(weight);
            }
        }
        None
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    fn dump(&self) -> Vec<u64> {
        let ghosts = self.order.iter().filter(|ghost| ghost.weight != REMOVED);
        ghosts.map(|ghost| ghost.fingerprint).collect()
    }

    fn memory_bytes(&self) -> usize {
        self.order.capacity() * size_of::<Ghost>()
            + self.turns.memory_bytes()
            + self.heavy.len() * size_of::<(u64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Push(u64, u64),
        Remove(u64),
        Pop,
    }

    fn ops(fingerprints: u64, count: usize) -> impl Strategy<Value = Vec<Op>> {
        let weight = prop_oneof![
            8 => 0..100_u64,
            1 => u64::from(HEAVY) - 2..u64::from(REMOVED) + 3,
            1 => 0..1_u64 << 40,
        ];
        let op = prop_oneof![
            6 => (0..fingerprints, weight).prop_map(|(ghost, weight)| Op::Push(ghost, weight)),
            3 => (0..fingerprints).prop_map(Op::Remove),
            1 => Just(Op::Pop),
        ];
        prop::collection::vec(op, 0..count)
    }

    /// The same on a vector, from the oldest to the youngest.
    #[derive(Debug, Default)]
    struct Plain(Vec<(u64, u64)>);

    impl Plain {
        fn apply(&mut self, op: Op) -> Option<u64> {
            let at = |fingerprint| self.0.iter().position(|(other, _)| *other == fingerprint);
            match op {
                Op::Push(fingerprint, weight) => {
                    if at(fingerprint).is_none() {
                        self.0.push((fingerprint, weight));
                    }
                    None
                }
                Op::Remove(fingerprint) => at(fingerprint).map(|at| self.0.remove(at).1),
                Op::Pop => (!self.0.is_empty()).then(|| self.0.remove(0).1),
            }
        }
    }

    fn apply(ghosts: &mut FingerprintGhosts, op: Op) -> Option<u64> {
        match op {
            Op::Push(fingerprint, weight) => {
                ghosts.push(fingerprint, weight);
                None
            }
            Op::Remove(fingerprint) => ghosts.remove(fingerprint),
            Op::Pop => ghosts.pop(),
        }
    }

    fn check(first_turn: u32, ops: &[Op]) {
        let mut ghosts = FingerprintGhosts { first_turn, ..FingerprintGhosts::default() };
        let mut plain = Plain::default();
        for op in ops {
            assert_eq!(apply(&mut ghosts, *op), plain.apply(*op), "{op:?}");
            let weight: u64 = plain.0.iter().map(|(_, weight)| *weight).sum();
            assert_eq!(ghosts.weight(), weight, "after {op:?}");
            let order: Vec<u64> = plain.0.iter().map(|(fingerprint, _)| *fingerprint).collect();
            assert_eq!(ghosts.dump(), order, "after {op:?}");
        }
    }

    proptest! {
        #[test]
        fn as_a_plain_vector_does(ops in ops(40, 400)) {
            check(0, &ops);
        }

        #[test]
        fn turns_begin_again_after_the_last(ops in ops(1000, 200)) {
            check(u32::MAX - 20, &ops);
        }
    }

    /// Ghosts take little memory while as many come as go, also at sizes between two powers of two,
    /// and give it back.
    #[test]
    #[cfg_attr(miri, ignore = "it counts bytes, and would take Miri an hour")]
    fn ghosts_take_little_memory() {
        let mut total_bytes = 0;
        let mut total = 0;
        for eighths in 8..16_u64 {
            let mut ghosts = FingerprintGhosts::default();
            let count = eighths * 1024;
            for fingerprint in 0..4 * count {
                ghosts.push(fingerprint, 1);
                if fingerprint % 10 == 0 && fingerprint > count / 2 {
                    ghosts.remove(fingerprint - count / 2);
                }
                while ghosts.weight() > count {
                    ghosts.pop();
                }
            }
            assert_eq!(ghosts.weight(), count);
            total_bytes += ghosts.memory_bytes() as u64;
            total += count;
            assert!(ghosts.memory_bytes() as u64 <= 30 * count, "{count} ghosts");
            for _ in 10..count {
                ghosts.pop();
            }
            assert!(ghosts.memory_bytes() < 2000, "{} bytes", ghosts.memory_bytes());
        }
        assert!(total_bytes <= 25 * total, "{total_bytes} bytes for {total} ghosts");
        println!("{total_bytes} bytes for {total} ghosts");
    }
}
