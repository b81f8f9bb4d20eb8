//! The test whether a rival runs here.

use std::time::Duration;

use super::{Rival, is_file};
use crate::measure::{Listed, MeasureError};

/// The state of a rival (another cache) on this machine: ready to run, or the reason why not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The rival runs, and lists these subjects.
    Runs(Vec<Listed>),
    /// The rival is not installed, or reports that something it needs is not: the reason, in a
    /// line.
    Missing(String),
    /// The rival is installed and does not answer as a runner: its answer, in a line.
    Broken(String),
}

impl State {
    /// Returns the reason why the rival does not run; `None` if it runs.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Self::Runs(_) => None,
            Self::Missing(why) | Self::Broken(why) => Some(why),
        }
    }
}

impl Rival {
    /// Returns whether the rival runs here: asks its program for its subjects, and waits for
    /// `limit` at most.
    pub fn state(&self, limit: Duration) -> State {
        let runner = self.runner();
        if !is_file(&runner.program) {
            return State::Missing(format!("there is no {}", runner.program.display()));
        }
        let listed = match runner.subjects(limit) {
            Ok(listed) => listed,
            Err(MeasureError::Refused { why, .. }) => return State::Missing(reason(&why)),
            Err(MeasureError::NoRunner { wrong, .. }) => return State::Broken(first_line(&wrong)),
            Err(error) => return State::Broken(first_line(&error.to_string())),
        };
        let is_missing = |name: &&String| listed.iter().all(|subject| subject.name != **name);
        match self.manifest.subjects.iter().find(is_missing) {
            None => State::Runs(listed),
            Some(name) => {
                let manifest = self.manifest_path();
                let manifest = manifest.display();
                State::Broken(format!("it does not list '{name}', which {manifest} names"))
            }
        }
    }
}

/// Why a runner cannot run, without what it says to do: how to get a rival is said alike for all.
fn reason(said: &str) -> String {
    said.split("; run:").next().unwrap_or(said).to_owned()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
