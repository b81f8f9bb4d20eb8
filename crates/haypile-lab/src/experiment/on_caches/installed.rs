//! Caches of others that are installed in this checkout.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use haypile_measure::measure::Runner;
use haypile_measure::rival::{Rival, RivalError, Rivals, State};
use haypile_measure::subject::SubjectSpec;

use super::LIST_LIMIT;

/// The other caches (rivals) that a checkout of this repository has programs for. Each is asked at
/// most once whether it runs.
#[derive(Default)]
pub(crate) struct Installed {
    rivals: OnceCell<Result<Rivals, RivalError>>,
    /// The runner of each rival by name, or the reason why it does not run and how to install it.
    known: BTreeMap<String, Result<Arc<Runner>, String>>,
}

impl Installed {
    /// Returns the program that measures another cache (a rival), or the reason why there is none.
    pub(crate) fn runner(&mut self, subject: &SubjectSpec) -> Result<Arc<Runner>, String> {
        let rivals = self.rivals.get_or_init(|| Rivals::find(None));
        let rivals = rivals.as_ref().map_err(ToString::to_string)?;
        let Some(rival) = rivals.for_subject(subject.name()) else {
            return Err("this checkout has no rival of this name".to_owned());
        };
        let known = self.known.entry(rival.name().to_owned());
        known.or_insert_with(|| runner(rival)).clone()
    }

    /// Returns the reason why a cache, of this program or a rival, cannot be measured here, and how
    /// to install it; `None` if it can.
    pub(crate) fn why_not(&mut self, subject: &SubjectSpec) -> Option<String> {
        if crate::subjects().has(subject) {
            crate::subjects().missing(subject)
        } else {
            self.runner(subject).err()
        }
    }

    /// Whether this checkout has a program for the cache of this name, installed or not.
    pub(crate) fn names(&self, subject: &SubjectSpec) -> bool {
        let rivals = self.rivals.get_or_init(|| Rivals::find(None));
        rivals.as_ref().is_ok_and(|rivals| rivals.for_subject(subject.name()).is_some())
    }

    /// Whether the cache is an HTTP cache, according to the manifest of the program that measures
    /// it.
    pub(crate) fn is_http(&self, subject: &SubjectSpec) -> bool {
        let rivals = self.rivals.get_or_init(|| Rivals::find(None));
        let rival = rivals.as_ref().ok().and_then(|rivals| rivals.for_subject(subject.name()));
        rival.is_some_and(|rival| rival.manifest().http)
    }

    /// Returns the names of all other caches (rivals) for which this checkout has programs.
    pub(crate) fn subjects(&self) -> Vec<String> {
        let rivals = self.rivals.get_or_init(|| Rivals::find(None));
        let all = rivals.iter().flat_map(Rivals::iter);
        all.flat_map(|rival| rival.manifest().subjects.clone()).collect()
    }
}

fn runner(rival: &Rival) -> Result<Arc<Runner>, String> {
    match rival.state(LIST_LIMIT) {
        State::Runs(_) => Ok(Arc::new(rival.runner())),
        state => {
            let why = state.why_not().unwrap_or("it does not run");
            Err(format!("{why}; run: {}", rival.how_to_get()))
        }
    }
}
