//! `first`: a first look at the costs and the hits of caches on a machine, from short runs of five experiments.

mod printout;

use haypile_measure::subject::SubjectSpec;

use crate::experiment::on_caches::Installed;

pub use printout::{line, machine, table};

/// Caches of others that a first look measures where they are there.
const OTHERS: [&str; 3] = ["memcached", "redis", "sqlite"];

/// A step of the overview that `haypile lab` measures first: a short run of one experiment, such as
/// reading by two threads, or killing writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Measures hits, misses and writes in this process and in a file.
    Caches,
    /// Measures the same on caches of others, with fewer operations for the same time.
    Others,
    /// Measures reads by one thread and by two.
    Threads,
    /// Measures opening a file again.
    Restart,
    /// Kills processes that write to a file.
    Kills,
}

/// The cases of the table.
const CASES: &str = "get-hit,get-miss,overwrite,set-evict";
/// The cases of caches whose bound is too coarse for this number of keys, or that evict nothing.
const CASES_OF_OTHERS: &str = "get-hit,get-miss,overwrite";
/// Enough that a file has room for no more than its part of them.
const KEYS: &str = "10000";
/// Few enough that a server, which takes some microseconds for each, is filled and verified within a second.
const KEYS_OF_OTHERS: &str = "3000";

impl Step {
    /// All steps of the overview that `haypile lab` measures first, in their order.
    pub const ALL: [Self; 5] =
        [Self::Caches, Self::Others, Self::Threads, Self::Restart, Self::Kills];

    /// Returns the words of the step's command after `haypile lab`; `None` if no other cache is
    /// installed for the step to measure.
    pub fn command(self, others: &[SubjectSpec]) -> Option<Vec<String>> {
        let names: Vec<String> = others.iter().map(ToString::to_string).collect();
        let names = names.join(",");
        let words: &[&str] = match self {
            Self::Caches => &[
                "micro",
                "--case",
                CASES,
                "--keys",
                KEYS,
                "--subject",
                "memory,file",
                "--operations",
                "300000",
                "--blocks",
                "8",
            ],
            Self::Others if others.is_empty() => return None,
            Self::Others => &[
                "micro",
                "--case",
                CASES_OF_OTHERS,
                "--keys",
                KEYS_OF_OTHERS,
                "--subject",
                &names,
                "--operations",
                "3000",
                "--blocks",
                "4",
            ],
            Self::Threads => &[
                "micro",
                "--case",
                "get-hit",
                "--keys",
                KEYS,
                "--subject",
                "memory",
                "--operations",
                "300000",
                "--threads",
                "1,2",
                "--blocks",
                "8",
            ],
            Self::Restart => &["persist", "--subject", "file", "--total", "20MB", "--blocks", "4"],
            Self::Kills => &["torture", "--quick", "--case", "keep", "--kills", "20"],
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }
}

/// Returns the caches of others that can be measured here; and for each of the rest, the reason why
/// it cannot and how to install it.
pub fn others() -> (Vec<SubjectSpec>, Vec<String>) {
    let mut installed = Installed::default();
    let (mut here, mut notes) = (Vec::new(), Vec::new());
    for name in OTHERS {
        let subject: SubjectSpec = name.parse().expect("a name is a subject");
        match installed.why_not(&subject) {
            None => here.push(subject),
            Some(why_not) => {
                notes.push(format!("the cache '{subject}' is not measured: {why_not}"));
            }
        }
    }
    (here, notes)
}
