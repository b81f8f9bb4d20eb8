//! The question of a run.

use serde::{Deserialize, Serialize};

/// What an experiment file of the user's asks, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// What the file is called, without its folder.
    pub file: String,
    /// What is asked, as a sentence.
    pub question: String,
    /// Where the question comes from.
    pub source: String,
    /// How it is measured, in a sentence or two.
    pub method: String,
}
