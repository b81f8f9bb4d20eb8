//! The workloads, and the operations of each.

use std::fmt;
use std::str::FromStr;

use haypile_measure::job::{JobError, Ops, Population};

use super::groups::{Groups, VALUE_BYTES};

/// One of RelStorage's local client tests, such as setting every key or reading all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// Sets every key, in hash order, on a client that is reused.
    Pop,
    /// As `Pop`, on a new and empty client.
    Epop,
    /// The sets of `pop`, and after each 400 of them one `get_many` of group 0.
    Mix,
    /// One `get_many` for each group.
    Read,
    /// The proof that the policy matters: sets every key, group after group, and then reads group 0
    /// at once.
    Proof,
}

/// The number of timed executions of each RelStorage workload: RelStorage's averages are totals of
/// three.
pub const EXECUTIONS: u64 = 3;

impl Workload {
    /// All RelStorage workloads, in the order of their definition.
    pub const ALL: [Self; 5] = [Self::Pop, Self::Epop, Self::Mix, Self::Read, Self::Proof];

    /// Returns the name of this RelStorage workload on the command line, which is the name of its
    /// case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pop => "pop",
            Self::Epop => "epop",
            Self::Mix => "mix",
            Self::Read => "read",
            Self::Proof => "proof",
        }
    }

    /// Returns the number of timed executions of the workload. `proof` does not measure time.
    pub fn executions(self) -> u64 {
        if self == Self::Proof { 1 } else { EXECUTIONS }
    }

    /// Whether every key of this workload is read and its value compared before the timed part.
    /// `proof` depends on which keys were used and how often, so that reading them would change its
    /// result.
    pub fn verifies_before(self) -> bool {
        self != Self::Proof
    }

    /// Returns the number by which RelStorage divides the time of one execution of this workload:
    /// that of the keys that `read` reads, or that the others set.
    pub fn source_operations(self, groups: &Groups) -> u64 {
        match self {
            Self::Read => groups.slots() as u64,
            _ => groups.keys().len() as u64,
        }
    }

    /// Returns the operations that precede the workload's timed ones, three times each as in
    /// RelStorage: it does `pop`, `read` and `mix` one after the other on one client. (`epop` does
    /// not use that client.)
    pub fn prepare(self, groups: &Groups) -> Ops {
        let before: &[Self] = match self {
            Self::Pop | Self::Epop => &[],
            Self::Read => &[Self::Pop],
            Self::Mix => &[Self::Pop, Self::Read],
            Self::Proof => &[Self::Pop, Self::Read, Self::Mix],
        };
        let mut ops = Ops::new();
        for workload in before {
            for _ in 0..workload.executions() {
                workload.add(groups, &mut ops);
            }
        }
        ops
    }

    /// Returns the timed operations of one execution of this RelStorage workload.
    pub fn timed(self, groups: &Groups) -> Ops {
        let mut ops = Ops::new();
        self.add(groups, &mut ops);
        ops
    }

    fn add(self, groups: &Groups, ops: &mut Ops) {
        let hot = &groups.members()[0];
        match self {
            Self::Pop => set_all(ops, groups.hash_order()),
            Self::Epop => {
                ops.fresh();
                Self::Pop.add(groups, ops);
            }
            Self::Mix => {
                for keys in groups.hash_order().chunks(hot.len()) {
                    set_all(ops, keys);
                    // The last sets are fewer, and are followed by no read.
                    if keys.len() == hot.len() {
                        ops.get_many(hot);
                    }
                }
            }
            Self::Read => {
                for keys in groups.members() {
                    ops.get_many(keys);
                }
            }
            Self::Proof => {
                let order: Vec<u32> = (0..).take(groups.keys().len()).collect();
                set_all(ops, &order);
                ops.get_many(hot);
            }
        }
    }
}

fn set_all(ops: &mut Ops, keys: &[u32]) {
    for &key in keys {
        ops.set(key);
    }
}

/// Returns the keys of RelStorage's workloads, each with a different value of 1,024 bytes.
///
/// # Errors
///
/// [`JobError::TooLarge`], which the 145,480 keys are not.
pub fn population(groups: &Groups) -> Result<Population, JobError> {
    let mut population = Population::new();
    for key in groups.keys() {
        population.push(key.as_bytes(), VALUE_BYTES)?;
    }
    Ok(population)
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|workload| workload.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown workload '{text}' (known: {names})")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_are_those_of_the_definition() {
        let groups = Groups::new();
        let counts = |workload: Workload| {
            let ops = workload.timed(&groups);
            (ops.operations() - ops.reads(), ops.reads())
        };
        assert_eq!(counts(Workload::Pop), (145_480, 0));
        assert_eq!(counts(Workload::Epop), (145_480, 0));
        // 145,480 is 363 times 400 and 280.
        assert_eq!(counts(Workload::Mix), (145_480, 363 * 400));
        assert_eq!(counts(Workload::Read), (0, 160_000));
        assert_eq!(counts(Workload::Proof), (145_480, 400));
    }

    #[test]
    fn a_workload_finds_the_client_as_those_before_it_left_it() {
        let groups = Groups::new();
        let prepared = |workload: Workload| workload.prepare(&groups).operations();
        let (pop, read, mix) = (145_480, 160_000, 145_480 + 363 * 400);
        assert_eq!(prepared(Workload::Pop), 0);
        assert_eq!(prepared(Workload::Epop), 0);
        assert_eq!(prepared(Workload::Read), 3 * pop);
        assert_eq!(prepared(Workload::Mix), 3 * (pop + read));
        assert_eq!(prepared(Workload::Proof), 3 * (pop + read + mix));
    }

    #[test]
    fn the_population_exceeds_the_limit() {
        let population = population(&Groups::new()).unwrap();
        assert_eq!(population.len(), 145_480);
        assert_eq!(population.bytes(), 145_480 * 1_024 + 806_710);
        assert!(population.bytes() > super::super::LIMIT_BYTES);
    }

    #[test]
    fn names_come_back() {
        for workload in Workload::ALL {
            assert_eq!(workload.to_string().parse(), Ok(workload));
        }
        let error = "pops".parse::<Workload>().unwrap_err();
        assert!(error.contains("pop, epop, mix, read, proof"), "{error}");
    }
}
