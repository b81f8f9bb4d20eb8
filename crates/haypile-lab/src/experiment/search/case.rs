//! The cases and their jobs.

use haypile_measure::measure::Case;

use super::super::lookups::{KEY_BYTES, Lookups, roomy};
use super::super::parameters;
use super::{NAME, SearchOptions};

/// The cases, in the order of the lists.
pub fn cases(options: &SearchOptions, seed: u64) -> Vec<Case> {
    let of_entries = |&entries: &u32| {
        options.fill.iter().map(move |&percent| {
            let filled = u64::from(entries) * u64::from(percent) / 100;
            let filled = u32::try_from(filled).expect("at most the entries");
            SearchSize { entries, filled, percent, options: options.clone(), seed }.case()
        })
    };
    options.entries.iter().flat_map(of_entries).collect()
}

/// A case of the product.
struct SearchSize {
    entries: u32,
    filled: u32,
    percent: u8,
    options: SearchOptions,
    seed: u64,
}

impl SearchSize {
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
        let SearchOptions { value_bytes, operations, .. } = self.options;
        let entry_bytes = u64::from(KEY_BYTES + value_bytes);
        Lookups {
            filled: self.filled,
            // As many that are never set as there may be entries.
            looked_up: self.entries..2 * self.entries,
            value_bytes,
            operations,
            capacity_bytes: roomy(u64::from(self.entries), entry_bytes),
            seed: self.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use haypile_measure::job::{Job, Op};

    use super::*;
    use crate::experiment::on_caches::OverHttp;

    #[test]
    fn what_is_looked_up_was_never_set() {
        let options = SearchOptions {
            entries: vec![1, 1000],
            fill: vec![0, 50, 100],
            value_bytes: 10,
            operations: 5000,
            http: OverHttp::default(),
        };
        let cases = cases(&options, 1);
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
