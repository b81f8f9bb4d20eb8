//! The cases and their jobs.

use haypile_measure::measure::Case;

use super::super::lookups::{KEY_BYTES, Lookups, roomy};
use super::super::parameters;
use super::{KILLED, NAME, SearchOptions};

/// Subjects that leave nothing when their process is killed.
const NOT_IN_FILES: &[&str] = &["memory", "none"];

/// Returns the cases of the experiment `search`: one for each number of entries and fill level, and
/// each once more after a kill, if the user asked for that.
pub fn cases(options: &SearchOptions, seed: u64) -> Vec<Case> {
    let of_entries = |&entries: &u32| {
        options.fill.iter().map(move |&percent| {
            let filled = u64::from(entries) * u64::from(percent) / 100;
            let filled = u32::try_from(filled).expect("at most the entries");
            let is_killed = false;
            SearchSize { entries, filled, percent, is_killed, options: options.clone(), seed }
        })
    };
    let sizes = options.entries.iter().flat_map(of_entries);
    let both = |size: SearchSize| {
        let killed = options.killed.then(|| SearchSize { is_killed: true, ..size.clone() });
        [Some(size), killed].into_iter().flatten().map(SearchSize::case)
    };
    sizes.flat_map(both).collect()
}

/// A case of the product.
#[derive(Clone)]
struct SearchSize {
    entries: u32,
    filled: u32,
    percent: u8,
    is_killed: bool,
    options: SearchOptions,
    seed: u64,
}

impl SearchSize {
    fn case(self) -> Case {
        let mut parameters = parameters([
            ("entries", self.entries.into()),
            ("fill", format!("{}%", self.percent).into()),
            ("key_bytes", KEY_BYTES.into()),
            ("value_bytes", self.options.value_bytes.into()),
            ("operations", self.options.operations.into()),
        ]);
        if self.is_killed {
            parameters.insert(KILLED.to_owned(), true.into());
        }
        Case {
            experiment: NAME,
            name: NAME.to_owned(),
            parameters,
            processes: 1,
            skips: if self.is_killed { NOT_IN_FILES } else { &[] },
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
            is_killed: self.is_killed,
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
            killed: true,
            http: OverHttp::default(),
        };
        let cases = cases(&options, 1);
        assert_eq!(cases.len(), 12);
        assert!(
            cases.iter().all(|case| case.skips.is_empty() != case.parameters.contains_key(KILLED))
        );
        let directory = tempfile::tempdir().unwrap();
        assert!((cases[9].write)(directory.path()).unwrap().is_killed);
        let expected = (cases[8].write)(directory.path()).unwrap();
        assert!(!expected.is_killed);
        assert_eq!((expected.operations, expected.verified_after), (5000, Some(500)));
        let job = Job::read(directory.path()).unwrap();
        let keys = |words: &[u32]| -> Vec<u32> {
            words.iter().map(|&word| Op::decode(word).unwrap().1).collect()
        };
        let looked_up = keys(&job.timed()[0]);
        assert!(looked_up.iter().all(|key| (1000..2000).contains(key)));
        // None is looked up again before all the others.
        let distinct = |keys: &[u32]| keys.iter().collect::<std::collections::HashSet<_>>().len();
        assert!(looked_up.chunks(1000).all(|all| distinct(all) == 1000));
        assert!(keys(job.prepare()).into_iter().eq(0..500));
    }
}
