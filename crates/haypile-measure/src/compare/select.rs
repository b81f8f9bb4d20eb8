//! Selection of the subjects to compare.

use std::collections::BTreeSet;

use super::error::CompareError;
use crate::result::{Identity, Sample, SubjectId};

/// A choice of subjects (caches under test): by name (`memory:policy=lru`), by the program that ran
/// them (`@main`), or by both (`memory:policy=lru@main`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    name: Option<String>,
    program: Option<String>,
}

impl Selector {
    /// Whether the selector chooses this subject (cache under test), by its name and its program.
    pub fn takes(&self, subject: &SubjectId) -> bool {
        self.name.as_ref().is_none_or(|name| *name == subject.name)
            && self.program.as_ref().is_none_or(|program| *program == subject.program)
    }

    /// Whether the selector states the name of a subject (cache under test), and not only the
    /// program that ran it.
    pub(super) fn names_one(&self) -> bool {
        self.name.is_some()
    }

    /// The selector that a text means among these samples. Names can hold an `@` themselves, so
    /// that what there is decides. `None` if it chooses nothing.
    fn find(text: &str, samples: &[Sample]) -> Option<Self> {
        let whole = Self { name: Some(text.to_owned()), program: None };
        let parted = text.rsplit_once(Identity::AT).map(|(name, program)| Self {
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            program: Some(program.to_owned()),
        });
        let takes_some = |selector: &Self| samples.iter().any(|it| selector.takes(&it.subject));
        [Some(whole), parted].into_iter().flatten().find(takes_some)
    }

    /// Parses a list `OLD,NEW` of two selectors of subjects (caches under test). Names can contain
    /// commas: the separating comma is the one with a subject of the old samples before it and one
    /// of the new samples after it.
    ///
    /// # Errors
    ///
    /// [`CompareError::Subjects`] if there is no such comma, or more than one;
    /// [`CompareError::OneSubject`] if the list is the name of one subject.
    pub fn pair(list: &str, old: &[Sample], new: &[Sample]) -> Result<(Self, Self), CompareError> {
        let commas = list.match_indices(',').map(|(at, _)| at);
        let mut pairs = commas
            .filter_map(|at| Self::find(&list[..at], old).zip(Self::find(&list[at + 1..], new)));
        match (pairs.next(), pairs.next()) {
            (Some(pair), None) => Ok(pair),
            (None, _) if Self::find(list, old).or_else(|| Self::find(list, new)).is_some() => {
                let mut subjects = [labels(old), labels(new)].concat();
                subjects.sort_unstable();
                subjects.dedup();
                Err(CompareError::OneSubject { name: list.to_owned(), subjects })
            }
            (first, _) => Err(CompareError::Subjects {
                list: list.to_owned(),
                is_ambiguous: first.is_some(),
                old: labels(old),
                new: labels(new),
            }),
        }
    }
}

/// The subjects of samples, as they can be asked for.
fn labels(samples: &[Sample]) -> Vec<String> {
    let labels: BTreeSet<String> =
        samples.iter().map(|sample| sample.subject.identity().to_string()).collect();
    labels.into_iter().collect()
}
