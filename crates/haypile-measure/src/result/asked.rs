//! The question that a user's experiment file asks.

use serde::{Deserialize, Serialize};

/// The question of a user's experiment file, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The name of the experiment file, without its folder.
    pub file: String,
    /// The question of the experiment file, in a sentence.
    pub question: String,
    /// The source of the question.
    pub source: String,
    /// The method of the experiment, in a sentence or two.
    pub method: String,
}
