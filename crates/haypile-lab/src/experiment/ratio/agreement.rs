//! The agreement of the order of caches here with that of the source.

use std::cmp::Ordering;

/// The agreement of two rankings of the same caches (the published one and ours), pair by pair.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Agreement {
    /// The number of pairs of caches whose order is compared.
    pub pairs: usize,
    /// The pairs of caches whose order in our ranking is the reverse of the published one.
    pub inversions: Vec<Inversion>,
}

/// A pair of caches of which the faster one in the published figures is the slower one here.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inversion {
    /// The cache of the pair that is slower in the published figures.
    pub slower: String,
    /// The cache of the pair that is faster in the published figures.
    pub faster: String,
    /// The share by which the faster cache of the pair was faster in the published figures: 0.03 is
    /// 3 %.
    pub source: f64,
    /// The share by which the cache that was faster in the published figures is faster in this run;
    /// it is below zero.
    pub here: f64,
}

impl Agreement {
    /// Compares two rankings of caches by rate: `rates` has the name of each cache, its published
    /// rate and its rate here. Equal rates do not count as a reversed pair.
    pub fn of(rates: &[(String, f64, f64)]) -> Self {
        let mut inversions = Vec::new();
        let mut pairs = 0;
        for (at, one) in rates.iter().enumerate() {
            for other in &rates[at + 1..] {
                pairs += 1;
                let (slower, faster) = match one.1.total_cmp(&other.1) {
                    Ordering::Less => (one, other),
                    Ordering::Greater => (other, one),
                    Ordering::Equal => continue,
                };
                if faster.2 < slower.2 {
                    inversions.push(Inversion {
                        slower: slower.0.clone(),
                        faster: faster.0.clone(),
                        source: faster.1 / slower.1 - 1.0,
                        here: faster.2 / slower.2 - 1.0,
                    });
                }
            }
        }
        Self { pairs, inversions }
    }

    /// Returns Kendall's rank correlation tau: 1 if all pairs of caches agree, -1 if none does, 0
    /// without pairs (M. G. Kendall, "A New Measure of Rank Correlation", 1938; without ties).
    pub fn tau(&self) -> f64 {
        if self.pairs == 0 {
            return 0.0;
        }
        1.0 - 2.0 * self.inversions.len() as f64 / self.pairs as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SUBJECTS, source_tables};
    use super::*;

    fn rates(rates: [(f64, f64); 3]) -> Vec<(String, f64, f64)> {
        let names = ["a", "b", "c"].into_iter();
        names.zip(rates).map(|(name, (source, here))| (name.to_owned(), source, here)).collect()
    }

    #[test]
    fn each_pair_that_stands_the_other_way_round_is_said() {
        let same = Agreement::of(&rates([(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]));
        assert_eq!((same.tau(), same.pairs, same.inversions.len()), (1.0, 3, 0));
        let reversed = Agreement::of(&rates([(1.0, 30.0), (2.0, 20.0), (3.0, 10.0)]));
        assert!((reversed.tau() + 1.0).abs() < 1e-12);
        let one = Agreement::of(&rates([(1.0, 10.0), (2.0, 40.0), (3.0, 30.0)]));
        assert!((one.tau() - 1.0 / 3.0).abs() < 1e-12);
        let [inversion] = &one.inversions[..] else { panic!("{one:?}") };
        assert_eq!((inversion.slower.as_str(), inversion.faster.as_str()), ("b", "c"));
        assert!((inversion.source - 0.5).abs() < 1e-12 && (inversion.here + 0.25).abs() < 1e-12);
        assert!(Agreement::of(&[]).tau().abs() < 1e-12);
    }

    /// The source printed one case twice: its own two tables of it differ in one pair.
    #[test]
    fn the_source_differs_from_itself() {
        let [_, first, _, _, second, _] = source_tables();
        let both = SUBJECTS.iter().zip(first.rates.into_iter().zip(second.rates));
        let both: Vec<_> =
            both.map(|((name, _), (one, other))| ((*name).to_owned(), one, other)).collect();
        let agreement = Agreement::of(&both);
        assert_eq!((agreement.pairs, agreement.inversions.len()), (28, 1));
        assert_eq!(agreement.inversions[0].slower, "libmemcached-ip");
    }
}
