//! Samples, grouped by case and by subject.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::identity::Identity;
use super::row::Sample;
use crate::statistics::{Summary, Timing};

/// A runner's own times are confirmed from this share of what the laboratory saw on: between `go` and its first clock a
/// runner starts threads, which takes a tenth of a part of 1 ms and a hundredth of one of 20 ms.
const CONFIRMED: f64 = 0.8;

/// A list of benchmark samples, in the order of the results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples<'a>(Vec<&'a Sample>);

/// The identity of an experiment's case: the name of the experiment, the name of the case and all parameters.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct CaseKey<'a> {
    /// The name of the experiment that the case belongs to.
    pub experiment: &'a str,
    /// The name of the case within its experiment.
    pub case: &'a str,
    /// Parameters by name, with values as JSON, so that they compare and sort without regard to their order in the
    /// file.
    parameters: BTreeMap<&'a str, String>,
}

/// The name of the run of an experiment, and the number of the block (round) in it, in which a sample was measured.
/// Samples of the same block were measured side by side.
pub type Place<'a> = (&'a str, u64);

/// One value (such as a cost) for each run and block (round), computed from the samples that were measured in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values<'a>(BTreeMap<Place<'a>, f64>);

impl<'a> CaseKey<'a> {
    /// Returns the identity of the case that a sample was measured in.
    pub fn of(sample: &'a Sample) -> Self {
        let parameters = sample.parameters.iter();
        Self {
            experiment: &sample.experiment,
            case: &sample.case,
            parameters: parameters
                .map(|(name, value)| (name.as_str(), value.to_string()))
                .collect(),
        }
    }
}

impl<'a> Samples<'a> {
    /// Appends a sample to the list.
    pub fn push(&mut self, sample: &'a Sample) {
        self.0.push(sample);
    }

    /// Returns the samples of each case as a list of its own, in the order in which the cases first come.
    pub fn cases(&self) -> Vec<Self> {
        self.grouped(CaseKey::of).into_iter().map(|(_, samples)| samples).collect()
    }

    /// Returns the samples of each subject (cache under test) as a list of its own, in the order in which the subjects
    /// first come.
    pub fn by_subject(&self) -> Vec<(Identity<'a>, Self)> {
        self.grouped(|sample| sample.subject.identity())
    }

    /// Returns those samples of the list that belong to one subject (cache under test).
    #[must_use]
    pub fn of_subject(&self, subject: Identity<'_>) -> Self {
        self.iter().copied().filter(|sample| sample.subject.identity() == subject).collect()
    }

    /// Returns the samples of each value of `key` as a list of its own, in the order in which the values first come.
    pub fn grouped<K: Clone + Ord>(&self, key: impl Fn(&'a Sample) -> K) -> Vec<(K, Self)> {
        let mut groups: Vec<(K, Self)> = Vec::new();
        let mut positions: BTreeMap<K, usize> = BTreeMap::new();
        for &sample in &self.0 {
            let at = *positions.entry(key(sample)).or_insert_with_key(|key| {
                groups.push((key.clone(), Self::default()));
                groups.len() - 1
            });
            groups[at].1.push(sample);
        }
        groups
    }

    /// Returns the median length of the samples' blocks (rounds) and whether their times are confirmed, which limit
    /// what a comparison can show.
    pub fn timing(&self) -> Timing {
        let good = self.iter().filter(|sample| sample.error.is_none());
        let shares: Vec<f64> = good.filter_map(|sample| sample.confirmed_share()).collect();
        let share = Summary::of(&shares).map(|summary| summary.median);
        Timing {
            block_ns: self.median_wall_ns(),
            is_unconfirmed: share.is_some_and(|share| share < CONFIRMED),
        }
    }

    /// Returns the median wall time of the samples without errors, in nanoseconds.
    pub fn median_wall_ns(&self) -> Option<u64> {
        let good = self.iter().filter(|sample| sample.error.is_none());
        let mut times: Vec<u64> = good.map(|sample| sample.wall_ns).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    /// Returns one value of `cost` for each run and block (round) of the samples. A subject that was measured several
    /// times in a block counts once, by the median: samples of one block depend on each other.
    pub fn values(&self, cost: impl Fn(&Sample) -> Option<f64>) -> Values<'a> {
        let mut values: BTreeMap<Place<'a>, Vec<f64>> = BTreeMap::new();
        for &sample in &self.0 {
            if let Some(value) = cost(sample) {
                values.entry((&sample.run, sample.block)).or_default().push(value);
            }
        }
        let median = |values: Vec<f64>| Summary::of(&values).map(|summary| summary.median);
        values.into_iter().filter_map(|(place, values)| Some((place, median(values)?))).collect()
    }

    /// Returns pairs of costs from the runs and blocks (rounds) that both lists of samples have, this list's cost
    /// first.
    pub fn paired(
        &self,
        new: &Samples<'_>,
        cost: impl Fn(&Sample) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        self.values(&cost).paired(&new.values(&cost))
    }
}

impl Values<'_> {
    /// Returns pairs of values from the runs and blocks (rounds) that both sets of values have, this set's value first.
    pub fn paired(&self, new: &Values<'_>) -> Vec<(f64, f64)> {
        let both = self.0.iter().filter_map(|(place, &old)| Some((old, *new.0.get(place)?)));
        both.collect()
    }

    /// Returns all values in the order of their runs and blocks (rounds).
    pub fn to_vec(&self) -> Vec<f64> {
        self.0.values().copied().collect()
    }

    /// Returns the number of blocks (rounds) that have a value.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none of the blocks (rounds) has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Deref for Samples<'a> {
    type Target = [&'a Sample];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a> FromIterator<&'a Sample> for Samples<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Sample>>(samples: I) -> Self {
        Self(samples.into_iter().collect())
    }
}

impl<'a> FromIterator<(Place<'a>, f64)> for Values<'a> {
    fn from_iter<I: IntoIterator<Item = (Place<'a>, f64)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sample(parameters: &Value, (name, program): (&str, &str), place: Place<'_>) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": place.0, "experiment": "test", "case": "get",
            "parameters": parameters, "seed": 1, "block": place.1, "position": 0,
            "subject": {"name": name, "version": "", "language": "", "program": program},
            "operations": 1, "wall_ns": 1, "cpu_ns": 10 * place.1, "hits": 0, "misses": 0,
        }))
        .unwrap()
    }

    fn cost(sample: &Sample) -> Option<f64> {
        sample.cpu_ns_per_operation()
    }

    #[test]
    fn groups_come_in_the_order_of_their_first_samples() {
        let (two, one) = (json!({"threads": 2}), json!({"threads": 1}));
        let (lru, fifo) = (("lru", "p"), ("fifo", "p"));
        let samples = [
            sample(&two, lru, ("a", 0)),
            sample(&one, lru, ("a", 0)),
            sample(&two, fifo, ("a", 0)),
            sample(&two, ("lru", "q"), ("a", 0)),
        ];
        let samples: Samples<'_> = samples.iter().collect();
        let cases = samples.cases();
        assert_eq!(cases.iter().map(|case| case.len()).collect::<Vec<_>>(), [3, 1]);
        let subjects = cases[0].by_subject();
        let subjects: Vec<String> = subjects.iter().map(|(it, _)| it.to_string()).collect();
        assert_eq!(subjects, ["lru@p", "fifo@p", "lru@q"]);
    }

    #[test]
    fn pairs_are_of_the_same_run_and_block_and_count_once() {
        let at = |run, block| sample(&json!({}), ("lru", "p"), (run, block));
        let (old, new) = ([at("a", 1), at("a", 2), at("b", 3)], [at("a", 2), at("a", 3)]);
        let (old, new): (Samples<'_>, Samples<'_>) = (old.iter().collect(), new.iter().collect());
        assert_eq!(old.paired(&new, cost), [(20.0, 20.0)]);
        let twice = [at("a", 2), Sample { cpu_ns: 40, ..at("a", 2) }];
        let twice: Samples<'_> = twice.iter().collect();
        assert_eq!(twice.values(cost).to_vec(), [30.0]);
    }
}
