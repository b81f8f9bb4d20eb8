//! The question that a user's experiment file asks.

use serde::{Deserialize, Serialize};

/// The question that a user's experiment file asks, in the words of that file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The name of the experiment file, without its folder.
    pub file: String,
    /// The question of the experiment file, in a sentence.
    pub question: String,
    /// The source of the question that the experiment file asks.
    pub source: String,
    /// The method of the experiment file, in a sentence or two.
    pub method: String,
}
