//! HTTP caches as subjects: caches of the engine behind HTTP, and rivals that are HTTP caches.

use anyhow::{anyhow, bail};
use clap::{ArgAction, Args};

use haypile_measure::subject::SubjectSpec;

use super::Installed;

/// The command-line option of some experiments that measures an HTTP cache on top of each cache,
/// instead of the cache itself.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OverHttp {
    /// Measure an HTTP cache on top of each cache, by requests to an origin: entries are responses,
    /// and keys their URLs; --http=false measures the caches themselves
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub http: bool,
}

impl OverHttp {
    /// Returns the caches to measure, or HTTP caches based on them if the user asked for that. A
    /// rival that is an HTTP cache stays as it is.
    ///
    /// # Errors
    ///
    /// A name that cannot be one, a cache of another program, or an HTTP cache where no origin is asked for.
    pub(crate) fn subjects(self, subjects: Vec<SubjectSpec>) -> anyhow::Result<Vec<SubjectSpec>> {
        let installed = Installed::default();
        self.subjects_with(subjects, |subject| installed.is_http(subject))
    }

    fn subjects_with(
        self,
        subjects: Vec<SubjectSpec>,
        is_http: impl Fn(&SubjectSpec) -> bool,
    ) -> anyhow::Result<Vec<SubjectSpec>> {
        let is_rival = |subject: &SubjectSpec| !crate::subjects().has(subject) && is_http(subject);
        if !self.http {
            if let Some(rival) = subjects.iter().find(|subject| is_rival(subject)) {
                bail!("'{rival}' is an HTTP cache, which is measured only with --http; add --http");
            }
            return Ok(subjects);
        }
        let over = |subject: &SubjectSpec| {
            let text = subject.as_str();
            let is_over_http = text.starts_with("http:");
            if is_over_http || is_rival(subject) {
                return Ok(subject.clone());
            }
            if !crate::subjects().has(subject) {
                return Err(format!(
                    "an HTTP cache stands on a cache of this program, and '{text}' is of another; \
                     --http=false measures caches themselves"
                ));
            }
            format!("http:{text}").parse()
        };
        let subjects: Result<_, String> = subjects.iter().map(over).collect();
        subjects.map_err(|error| anyhow!(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(http: bool, names: &[&str]) -> Result<Vec<String>, String> {
        let subjects = names.iter().map(|name| name.parse().unwrap()).collect();
        let is_http = |subject: &SubjectSpec| subject.name() == "necko";
        let subjects = OverHttp { http }.subjects_with(subjects, is_http);
        let subjects = subjects.map_err(|error| error.to_string())?;
        Ok(subjects.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_http_cache_of_a_rival_stays_as_it_is() {
        let over = subjects(true, &["memory", "http:none", "necko:disk,size=6000KB"]).unwrap();
        assert_eq!(over, ["http:memory", "http:none", "necko:disk,size=6000KB"]);
        let error = subjects(true, &["diskcache"]).unwrap_err();
        assert!(error.contains("'diskcache' is of another"), "{error}");
    }

    #[test]
    fn an_http_cache_is_measured_over_http_alone() {
        assert_eq!(subjects(false, &["memory", "diskcache"]).unwrap(), ["memory", "diskcache"]);
        let error = subjects(false, &["memory", "necko:none"]).unwrap_err();
        assert_eq!(
            error,
            "'necko:none' is an HTTP cache, which is measured only with --http; add --http"
        );
    }
}
