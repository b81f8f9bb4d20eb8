//! `persist`: the persistence tests of document 004.
//!
//! A cache is filled, used and written to disk; a new process opens what it left. Beside the
//! caches there is `copy`, which writes and reads the same bytes and does nothing else.

mod case;
mod entries;
mod places;

pub use case::{Options, Part, USED_EVERY, cases};
pub use entries::{LIMIT_BYTES, sizes, sizes_below, total_bytes};
pub use places::Places;

use crate::subject::SubjectSpec;

/// What the experiment is called.
pub const NAME: &str = "persist";

/// The subjects where none are named.
pub const SUBJECTS: &str = "copy,memory:policy=lru,memory:policy=slru,memory:policy=s3fifo";

/// The file that a cache of the engine gets, in the working directory of its runner.
const FILE: &str = "snapshot";

/// A subject that keeps a file: one of `memory` that names none gets one.
pub fn kept(subject: &SubjectSpec) -> SubjectSpec {
    let text = subject.as_str();
    if subject.name() != "memory" || text.contains("persist=") {
        return subject.clone();
    }
    let separator = match (text.contains("://"), text.contains('?')) {
        (true, false) => "?",
        (true, true) => "&",
        (false, _) if text.contains(':') => ",",
        (false, _) => ":",
    };
    let kept = format!("{text}{separator}persist={FILE}");
    kept.parse().expect("a subject with more behind it is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_gets_a_file_unless_it_has_one() {
        for (subject, expected) in [
            ("memory", "memory:persist=snapshot"),
            ("memory:policy=lru", "memory:policy=lru,persist=snapshot"),
            ("memory://", "memory://?persist=snapshot"),
            ("memory://?policy=lru", "memory://?policy=lru&persist=snapshot"),
            ("memory:persist=x,policy=lru", "memory:persist=x,policy=lru"),
            ("copy", "copy"),
        ] {
            let subject: SubjectSpec = subject.parse().unwrap();
            assert_eq!(kept(&subject).as_str(), expected);
        }
    }
}
