//! `persist`: the persistence tests of document 004.
//!
//! A cache is filled, used and written to disk; a new process opens what it left. Beside the
//! caches there is `copy`, which writes and reads the same bytes and does nothing else.
//!
//! | part | prepared | timed |
//! |---|---|---|
//! | `fill` | nothing | every entry is set |
//! | `write` | every entry is set and read once, every tenth four times more | it is written to disk, whatever that means to the cache: a snapshot, or `fsync` of a file that holds everything already |
//! | `open` | nothing, in a new process, on a copy of the files that `write` left | it is opened, and every entry read, the first hit noted |
//! | `open-half` | the same | it is opened with half of the room, and the entries read that were used often |
//!
//! A cache that lives in its file has nothing to load: opening costs it little, and each read what
//! it takes to bring pages of the file into its memory. It has written most of it before it is asked
//! to: what `write` tells is what the system had not brought to disk by then. With half of the room
//! such a cache keeps the file that it finds, of the size that it was made with. So that
//! everything fits, all get the same room, which is the bytes of keys and values and 256 for each
//! entry, and a quarter of that sum: `capacity_bytes` says it.
//!
//! Before it is opened, the copy is on disk and in the system's memory, or if that is asked for on
//! disk alone. Neither copying nor waiting for the disk is timed.

mod case;
mod entries;
mod files;
mod places;

pub use case::{Options, Part, USED_EVERY, cases};
pub use entries::{LIMIT_BYTES, sizes, sizes_below, total_bytes};
pub use places::Places;

use std::path::{Component, Path};

use haypile::url::CacheUrl;

use crate::subject::SubjectSpec;

/// What the experiment is called.
pub const NAME: &str = "persist";

/// The subjects where none are named.
pub const SUBJECTS: &str = "copy,memory:policy=lru,memory:policy=slru,memory:policy=s3fifo";

/// The file that a cache of the engine gets, in the working directory of its runner.
const FILE: &str = "snapshot";

/// A subject whose file would not be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{subject}: persist={path} leaves the directory in which files are measured; write the name of a \
     file alone, as in persist={FILE}, and the directory as --directory"
)]
#[non_exhaustive]
pub struct OutsideError {
    /// The subject.
    pub subject: String,
    /// The path that it names.
    pub path: String,
}

/// A subject that keeps a file: one of `memory` that names none gets one.
///
/// # Errors
///
/// [`OutsideError`] for a file that is not in the working directory of the runner itself.
pub fn kept(subject: &SubjectSpec) -> Result<SubjectSpec, OutsideError> {
    let text = subject.as_str();
    if subject.name() != "memory" {
        return Ok(subject.clone());
    }
    if let Some(path) = file_of(text) {
        let mut parts = Path::new(&path).components();
        return match (parts.next(), parts.next()) {
            (Some(Component::Normal(_)), None) => Ok(subject.clone()),
            _ => Err(OutsideError { subject: text.to_owned(), path }),
        };
    }
    let separator = match (text.contains("://"), text.contains('?')) {
        (true, false) => "?",
        (true, true) => "&",
        (false, _) if text.contains(':') => ",",
        (false, _) => ":",
    };
    let kept = format!("{text}{separator}persist={FILE}");
    Ok(kept.parse().expect("a subject with more behind it is one"))
}

/// The file that a cache's URL names. What is no URL names none; opening it says what is wrong.
fn file_of(text: &str) -> Option<String> {
    let url: CacheUrl = text.parse().ok()?;
    url.levels().iter().find_map(|level| level.option("persist")).map(str::to_owned)
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
            assert_eq!(kept(&subject).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn files_stay_in_the_directory() {
        for outside in ["/tmp/x", "../x", "a/x", "..", "/"] {
            for subject in
                [format!("memory:persist={outside}"), format!("memory://?persist={outside}")]
            {
                let error = kept(&subject.parse().unwrap()).unwrap_err();
                assert_eq!((&error.subject, &*error.path), (&subject, outside));
                assert!(error.to_string().contains("--directory"), "{error}");
            }
        }
        let encoded = "memory://?persist=%2Ftmp%2Fx".parse().unwrap();
        assert_eq!(kept(&encoded).unwrap_err().path, "/tmp/x");
    }
}
