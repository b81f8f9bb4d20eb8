//! The lines that processes write for the driver, in JSON.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::tally::Tally;

/// A line that a process of the stress test prints for the driver: counts, or a wrong answer of the
/// cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// The counts since the process began; each line replaces the one before.
    Tally(Tally),
    /// A wrong answer, in words.
    Finding(String),
}

/// Whether a finding (a wrong answer of the cache) is new, and fewer than `most` of its kind are
/// known: other kinds may be more important. The kind is the text before the first colon.
pub(super) fn is_news(findings: &[String], text: &str, most: usize) -> bool {
    let kind = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let of_its_kind = findings.iter().filter(|finding| kind(finding) == kind(text)).count();
    of_its_kind < most && !findings.iter().any(|finding| finding == text)
}

impl Line {
    /// Prints the line for the driver with one system call, so that a kill leaves it whole or
    /// missing.
    pub(super) fn write(&self) -> io::Result<()> {
        let mut text = serde_json::to_vec(self).map_err(io::Error::other)?;
        text.push(b'\n');
        let mut output = io::stdout().lock();
        output.write_all(&text)?;
        output.flush()
    }

    /// Parses a line that a process of the stress test printed; `None` for one that a kill has cut
    /// off.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_findings_of_one_kind_do_not_hide_another() {
        let findings = ["lost: a".to_owned(), "lost: b".to_owned()];
        assert!(!is_news(&findings, "lost: c", 2));
        assert!(is_news(&findings, "lost: c", 3));
        assert!(!is_news(&findings, "lost: b", 3));
        assert!(is_news(&findings, "wrong: a", 2));
    }

    #[test]
    fn a_line_that_was_cut_is_none() {
        let text = serde_json::to_string(&Line::Finding("x".to_owned())).unwrap();
        assert_eq!(Line::parse(&text), Some(Line::Finding("x".to_owned())));
        assert_eq!(Line::parse(&text[..text.len() - 1]), None);
    }
}
