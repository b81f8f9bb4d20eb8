//! The lines of results.

use std::fmt;

use super::drive::Tally;
use super::part::Timed;
use crate::meter::Memory;

/// The results of a runner's job by name, such as counts and times, in the order in which they are
/// printed.
#[derive(Debug, Default)]
pub(super) struct JobReport {
    lines: Vec<(String, String)>,
}

impl JobReport {
    pub(super) fn line(&mut self, name: impl Into<String>, value: impl fmt::Display) {
        self.lines.push((name.into(), one_line(&value.to_string())));
    }

    pub(super) fn lines(&mut self, lines: Vec<(String, String)>) {
        self.lines.extend(lines);
    }

    /// Returns the results that were reported so far, and empties the report.
    pub(super) fn take(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.lines)
    }

    /// Adds the results of the job's timed part to the report. Errors and wrong values of all parts
    /// are added up.
    pub(super) fn timed(&mut self, timed: &Timed, others: Tally) {
        let Tally { operations, hits, hit_bytes, misses, errors, wrong, read_words } = timed.tally;
        let numbers = [
            ("operations", operations),
            ("wall_ns", timed.wall_ns),
            ("cpu_ns", timed.cpu_ns),
            ("hits", hits),
            ("hit_bytes", hit_bytes),
            ("misses", misses),
            ("errors", errors + others.errors),
            ("wrong", wrong + others.wrong),
            ("read_words", read_words),
        ];
        for (name, number) in numbers {
            self.line(name, number);
        }
    }

    pub(super) fn memory(&mut self, before: Option<Memory>, after: Option<Memory>) {
        if let (Some(before), Some(after)) = (before, after) {
            let beyond = |bytes: u64| bytes.saturating_sub(before.resident_bytes);
            self.line("memory_bytes", beyond(after.resident_bytes));
            self.line("memory_peak_bytes", beyond(after.peak_bytes));
        }
    }

    pub(super) fn text(&self) -> String {
        let lines = self.lines.iter().map(|(name, value)| format!("{name} {value}\n"));
        lines.chain(["end\n".to_owned()]).collect()
    }
}

/// Returns a text without line feeds, which would end a line of the protocol.
pub(super) fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).collect::<Vec<_>>().join(" ")
}
