//! A question in the words of an experiment file.

use haypile_measure::result::Run;
use haypile_plot::drawing::text::one_line;

use super::number::bounded;
use super::topic::{Topic, Topics};

/// Longest question, method and source that are shown, in characters. Files that are measured with
/// have at most as many bytes.
const MAX_TEXT_CHARS: usize = 8 << 10;

/// The question, source and method of a user's experiment file, as text. Runs with equal texts ask
/// the same question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wording {
    pub(crate) question: String,
    pub(crate) method: String,
    pub(crate) source: String,
}

impl Wording {
    /// Returns the question, source and method that a run's experiment file states; `None` if the
    /// run asks its experiment's own question.
    pub(crate) fn of(run: &Run, topics: &Topics) -> Option<Self> {
        let asked = run.asked.as_ref()?;
        let wording = Self::new(&asked.question, &asked.method, &asked.source);
        let own = topics.named(&run.experiment).map(Topic::texts);
        let own = own.map(|own| Self::new(own.question, own.method, own.source));
        (own.as_ref() != Some(&wording)).then_some(wording)
    }

    fn new(question: &str, method: &str, source: &str) -> Self {
        let [question, method, source] =
            [question, method, source].map(|text| bounded(&one_line(text), MAX_TEXT_CHARS));
        Self { question, method, source }
    }
}
