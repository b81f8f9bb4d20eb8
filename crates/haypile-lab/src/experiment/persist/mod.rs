//! `persist`: the persistence tests of RelStorage's cache notes.
//!
//! A cache is filled, used and written to disk; a new process opens what it left. In addition to
//! the caches there is `copy`, which writes and reads the same bytes and does nothing else.
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
//! What `memory` loads is told apart, as the source does: the counts of `open` say how long reading the
//! file took (`load_read_ns`), checking it (`load_check_ns`: the source unpickles here), and inserting the
//! entries (`load_insert_ns`). Together they are most of what opening takes.
//!
//! Before it is opened, the copy is on disk and in the system's memory, or if that is asked for on
//! disk alone. Neither copying nor waiting for the disk is timed.

mod case;
mod entries;
mod files;
mod options;
mod places;
mod printout;
mod section;
mod source;

pub use case::{PersistPart, Sizes, USED_EVERY, cases};
pub use entries::{LIMIT_BYTES, sizes, sizes_below, total_bytes};
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
pub use options::PersistOptions;
pub use places::Places;

use std::path::{Component, Path};

use anyhow::Context;
use haypile::ByteSize;
use haypile::url::CacheUrl;

use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `persist` in results.
pub const NAME: &str = "persist";

/// The experiment `persist`: writing a cache file, and opening it in another process.
pub(crate) struct PersistExperiment;

impl OnCaches for PersistExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Writing to disk and opening again";
    const FILE: &'static str = include_str!("persist.toml");

    type Options = PersistOptions;

    fn setup(
        options: &PersistOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        let ByteSize(total_bytes) = options.total;
        let cases = cases(Sizes {
            sizes: sizes_below(total_bytes),
            wait_milliseconds: options.age.unwrap_or(0) * 1000,
            with_age: options.age.is_some(),
            seed: measuring.run.seed,
        })?;
        let directory = measuring.run.absolute_directory()?;
        let places = Places::new(&directory, options.cold);
        let places =
            places.with_context(|| format!("cannot write into {}", directory.display()))?;
        let subjects = subjects.iter().map(kept).collect::<Result<Vec<SubjectSpec>, _>>()?;
        Ok(Setup { surroundings: Some(Box::new(places)), ..Setup::new(cases, subjects) })
    }

    fn print(samples: &[Sample], contenders: &[Contender]) -> Printout {
        printout::printout(samples, contenders)
    }

    fn body(
        _samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(cases)
    }
}

/// The file that a cache of the engine gets, in the working directory of its runner.
const FILE: &str = "snapshot";

/// The error of a cache whose file lies outside of the directory in which files are measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{subject}: persist={path} is outside of the directory in which files are measured; write \
     only the name of a file, as in persist={FILE}, and choose the directory with --directory"
)]
#[non_exhaustive]
pub struct OutsideError {
    /// Name of the cache whose file would not be measured.
    pub subject: String,
    /// The path of the cache's file, as the user wrote it, which is outside of the working
    /// directory.
    pub path: String,
}

/// Returns the cache with a file for its entries: a `memory` cache without one is given one, others
/// stay as they are.
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

/// The file that a cache's URL names. A text that is not a URL names none; opening it says what is
/// wrong.
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
