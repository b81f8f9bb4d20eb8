//! Caches of the engine as HTTP caches.

use anyhow::anyhow;
use clap::{ArgAction, Args};

use haypile_measure::subject::SubjectSpec;

/// The option of experiments that measure caches themselves, or HTTP caches on them.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OverHttp {
    /// Put an HTTP cache on each of our caches, and use it by requests: entries are responses, and
    /// keys their URLs; --http=false measures the caches themselves
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub http: bool,
}

impl OverHttp {
    /// Returns the subjects, as HTTP caches on them if that is asked for.
    ///
    /// # Errors
    ///
    /// A name that cannot be one, or a cache of another program.
    pub(crate) fn subjects(self, subjects: Vec<SubjectSpec>) -> anyhow::Result<Vec<SubjectSpec>> {
        if !self.http {
            return Ok(subjects);
        }
        let over = |subject: &SubjectSpec| {
            let text = subject.as_str();
            let is_over_http = text.starts_with("http:");
            if is_over_http {
                return Ok(subject.clone());
            }
            if !crate::subjects().has(subject) {
                return Err(format!(
                    "an HTTP cache stands on a cache of this program, and '{text}' is of another; --http=false \
                     measures caches themselves"
                ));
            }
            format!("http:{text}").parse()
        };
        let subjects: Result<_, String> = subjects.iter().map(over).collect();
        subjects.map_err(|error| anyhow!(error))
    }
}
