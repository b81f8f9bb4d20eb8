//! The question that a user's experiment file asks.

use serde::{Deserialize, Serialize};

/// The question that a user's experiment file asks, in the words of that file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The name of the experiment file, without its folder.
    pub file: String,
    /// The question that the user's experiment file asks, in a sentence.
    pub question: String,
    /// The source of the question that the experiment file asks, such as a publication.
    pub source: String,
    /// The method by which the experiment answers its question, as the user's experiment file
    /// states it, in a sentence or two.
    pub method: String,
}
