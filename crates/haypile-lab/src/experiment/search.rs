//! `search`: what a lookup costs that finds nothing, by how many entries a cache is made for and how
//! full it is. Document 000 wanted to know whether searching a cache takes time: its caches were
//! nearly empty when it measured.
//!
//! The cache is as large as its `entries` need under any accounting. `fill` says how many of
//! them are there. All keys that are looked up were never set.

use super::lookups::{KEY_BYTES, Lookups};
use super::micro::roomy;
use super::parameters;
use crate::measure::Case;

/// What the experiment is called.
pub const NAME: &str = "search";

/// The caches in which is searched, where none are named.
pub const SUBJECTS: &str = "memory,file,memory+file";

/// What to measure: the product of the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// For how many entries the cache is, each from 1 to 2^25.
    pub entries: Vec<u32>,
    /// How many per cent of these are there, each up to 100.
    pub fill_percent: Vec<u8>,
    /// The size of values, in bytes.
    pub value_bytes: u32,
    /// How many lookups there are in one measurement.
    pub operations: u32,
    /// What keys and lookups are drawn from.
    pub seed: u64,
}

/// The most entries: as many keys again are looked up, and all keys of a job have at most 4 GiB.
pub const MAX_ENTRIES: u32 = 1 << 25;

/// The cases, in the order of the lists.
pub fn cases(options: &Options) -> Vec<Case> {
    let of_entries = |&entries: &u32| {
        options.fill_percent.iter().map(move |&percent| {
            let filled = u64::from(entries) * u64::from(percent) / 100;
            let filled = u32::try_from(filled).expect("at most the entries");
            Setup { entries, filled, percent, options: options.clone() }.case()
        })
    };
    options.entries.iter().flat_map(of_entries).collect()
}

/// A case of the product.
struct Setup {
    entries: u32,
    filled: u32,
    percent: u8,
    options: Options,
}

impl Setup {
    fn case(self) -> Case {
        Case {
            experiment: NAME,
            name: NAME.to_owned(),
            parameters: parameters([
                ("entries", self.entries.into()),
                ("fill", format!("{}%", self.percent).into()),
                ("key_bytes", KEY_BYTES.into()),
                ("value_bytes", self.options.value_bytes.into()),
                ("operations", self.options.operations.into()),
            ]),
            processes: 1,
            skips: &[],
            write: Box::new(move |directory| self.lookups().write(directory)),
        }
    }

    fn lookups(&self) -> Lookups {
        let Options { value_bytes, operations, seed, .. } = self.options;
        let entry_bytes = u64::from(KEY_BYTES + value_bytes);
        Lookups {
            filled: self.filled,
            // As many that are never set as there may be entries.
            looked_up: self.entries..2 * self.entries,
            value_bytes,
            operations,
            capacity_bytes: roomy(u64::from(self.entries), entry_bytes),
            seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, Op};

    #[test]
    fn what_is_looked_up_was_never_set() {
        let options = Options {
            entries: vec![1, 1000],
            fill_percent: vec![0, 50, 100],
            value_bytes: 10,
            operations: 5000,
            seed: 1,
        };
        let cases = cases(&options);
        assert_eq!(cases.len(), 6);
        let directory = tempfile::tempdir().unwrap();
        let expected = (cases[4].write)(directory.path()).unwrap();
        assert_eq!((expected.operations, expected.verified_after), (5000, Some(500)));
        let job = Job::read(directory.path()).unwrap();
        let keys = |words: &[u32]| -> Vec<u32> {
            words.iter().map(|&word| Op::decode(word).unwrap().1).collect()
        };
        let looked_up = keys(&job.timed()[0]);
        assert!(looked_up.iter().all(|key| (1000..2000).contains(key)));
        assert!(looked_up.iter().collect::<std::collections::HashSet<_>>().len() > 900);
        assert!(keys(job.prepare()).into_iter().eq(0..500));
    }
}
