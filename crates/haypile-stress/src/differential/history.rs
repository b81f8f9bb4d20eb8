//! The latest steps of a run with their outcomes, for the message of a failure.

use std::collections::{HashMap, VecDeque};

use super::key::Key;
use super::operation::Step;

/// The steps that are remembered of each key, and of all.
const REMEMBERED: usize = 16;

/// The characters of a step that are shown: steps on many keys have long texts.
const SHOWN: usize = 400;

/// The latest operations of a run on each key of the cache under test, with their outcomes, for
/// messages about a failure.
#[derive(Debug, Default)]
pub(super) struct History {
    by_key: HashMap<Key, VecDeque<(u64, String)>>,
    about_all: VecDeque<(u64, String)>,
    latest: VecDeque<(u64, String)>,
}

impl History {
    /// Records an operation of the run with its outcome as text.
    pub(super) fn note(&mut self, step: &Step, text: &str) {
        let text = short(text);
        let mut keys = step.operation.keys();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            remember(self.by_key.entry(key).or_default(), step.number, text.clone());
        }
        if step.operation.is_about_all() {
            remember(&mut self.about_all, step.number, text.clone());
        }
        remember(&mut self.latest, step.number, text);
    }

    /// Returns the latest operations on a key, or on any key, in their order.
    pub(super) fn of(&self, key: Option<Key>) -> Vec<String> {
        let of_key = key.and_then(|key| self.by_key.get(&key));
        let mut steps: Vec<&(u64, String)> = match of_key {
            Some(steps) => steps.iter().chain(&self.about_all).chain(self.latest.back()).collect(),
            None => self.latest.iter().collect(),
        };
        steps.sort();
        steps.dedup();
        steps[steps.len().saturating_sub(REMEMBERED)..].iter().map(|step| step.1.clone()).collect()
    }
}

/// Returns a text without its middle, if it is long.
fn short(text: &str) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return text.to_owned();
    }
    let (start, end) = (text.chars().take(SHOWN / 2), text.chars().skip(length - SHOWN / 2));
    start.chain(" … ".chars()).chain(end).collect()
}

fn remember(steps: &mut VecDeque<(u64, String)>, number: u64, text: String) {
    if steps.len() == REMEMBERED {
        steps.pop_front();
    }
    steps.push_back((number, text));
}
