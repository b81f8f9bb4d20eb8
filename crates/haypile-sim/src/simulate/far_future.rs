//! A set of request numbers with a fast maximum.

const BITS: usize = 64;

/// A set of request numbers that finds its largest one quickly: a tree of bits, in which each bit of a level tells
/// whether any of 64 bits below is set. Adding, removing and finding the largest take one step per level.
#[derive(Debug)]
pub(super) struct FarFuture {
    /// Levels of bits, from the bits themselves up to a single word.
    levels: Vec<Vec<u64>>,
}

impl FarFuture {
    /// Creates an empty set of request numbers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        let mut words = bound.div_ceil(BITS).max(1);
        let mut levels = vec![vec![0; words]];
        while words > 1 {
            words = words.div_ceil(BITS);
            levels.push(vec![0; words]);
        }
        Self { levels }
    }

    /// Adds a request number to the set.
    #[inline]
    pub(super) fn insert(&mut self, mut number: usize) {
        for level in &mut self.levels {
            let word = &mut level[number / BITS];
            let was_empty = *word == 0;
            *word |= 1 << (number % BITS);
            if !was_empty {
                break;
            }
            number /= BITS;
        }
    }

    /// Removes a request number from the set.
    #[inline]
    pub(super) fn remove(&mut self, mut number: usize) {
        for level in &mut self.levels {
            let word = &mut level[number / BITS];
            *word &= !(1 << (number % BITS));
            if *word != 0 {
                break;
            }
            number /= BITS;
        }
    }

    /// Returns the largest request number in the set; `None` if it is empty.
    #[inline]
    pub(super) fn max(&self) -> Option<usize> {
        let mut number = 0;
        for level in self.levels.iter().rev() {
            let highest = level[number].checked_ilog2()?;
            number = number * BITS + highest as usize;
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_that_knows_its_largest(
            bound in 1usize..9000,
            steps in prop::collection::vec((any::<bool>(), 0usize..9000), 0..400),
        ) {
            let mut model = BTreeSet::new();
            let mut set = FarFuture::new(bound);
            for (insert, number) in steps {
                let number = number % bound;
                if insert {
                    model.insert(number);
                    set.insert(number);
                } else {
                    model.remove(&number);
                    set.remove(number);
                }
                prop_assert_eq!(set.max(), model.last().copied());
            }
        }
    }
}
