//! Caches of the engine as HTTP caches.

use anyhow::anyhow;
use clap::Args;

use haypile_measure::subject::SubjectSpec;

/// The option of experiments that measure caches themselves, or HTTP caches on them.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OverHttp {
    /// Put an HTTP cache on each of our caches, and use it by requests: entries are responses, and
    /// keys their URLs
    #[arg(long)]
    pub http: bool,
}

impl OverHttp {
    /// Returns the subjects, as HTTP caches on them if that is asked for.
    ///
    /// # Errors
    ///
    /// A name that cannot be one.
    pub(crate) fn subjects(self, subjects: Vec<SubjectSpec>) -> anyhow::Result<Vec<SubjectSpec>> {
        if !self.http {
            return Ok(subjects);
        }
        let over = |subject: &SubjectSpec| {
            let text = subject.as_str();
            let is_over_http = text.starts_with("http:");
            if is_over_http { Ok(subject.clone()) } else { format!("http:{text}").parse() }
        };
        let subjects: Result<_, String> = subjects.iter().map(over).collect();
        subjects.map_err(|error| anyhow!(error))
    }
}
