//! Counts and findings of a case.

use std::collections::BTreeMap;

/// The number of findings that are told in words.
const TOLD: usize = 5;

/// An operation of survivors that takes longer is counted.
const LONG_NS: u64 = 100_000_000;

/// The counts of a torture case: kills, lost values, crashes and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) kills: u64,
    pub(super) stops: u64,
    /// The number of operations that writer processes reported as done.
    pub(super) acknowledged: u64,
    /// The number of reads whose values were compared with the recorded writes of the torture's
    /// writers.
    pub(super) compared: u64,
    pub(super) lost: u64,
    pub(super) wrong: u64,
    pub(super) failed: u64,
    pub(super) busy: u64,
    pub(super) crashed: u64,
    pub(super) hung: u64,
    pub(super) opens: u64,
    /// The number of reads that the torture's processes did in their fixed mix of operations, from
    /// which the hit ratio is computed.
    pub(super) reads: u64,
    pub(super) hits: u64,
    /// The number of operations on the cache that took longer than 0.1 s.
    pub(super) long: u64,
    pub(super) longest_write_ns: u64,
    pub(super) longest_read_ns: u64,
    pub(super) longest_open_ns: u64,
    /// The number of reads, in the case `invalidate`, that returned a value which had been removed
    /// before.
    pub(super) stale: u64,
    /// The number of values that the cache refused to store because their key was, or may have
    /// been, removed in the meantime.
    pub(super) refused: u64,
    /// The number of values that client processes computed or read from the database.
    pub(super) computed: u64,
    /// The number of acknowledged removals of single keys. The next two fields count those of
    /// groups and of everything.
    pub(super) deleted: u64,
    pub(super) invalidated: u64,
    pub(super) cleared: u64,
    /// The number of orders to client processes for which the cache has no operation.
    pub(super) unsupported: u64,
    /// The number of computations of values that another process took over from a process that was
    /// killed while it computed.
    pub(super) taken_over: u64,
    pub(super) longest_takeover_ns: u64,
    pub(super) findings: Vec<String>,
}

impl Tally {
    pub(super) fn find(&mut self, text: impl FnOnce() -> String) {
        if self.findings.len() >= TOLD {
            return;
        }
        let text = text();
        if !self.findings.contains(&text) {
            self.findings.push(text);
        }
    }

    pub(super) fn wrote(&mut self, time_ns: u64) {
        self.longest_write_ns = self.longest_write_ns.max(time_ns);
        self.long += u64::from(time_ns > LONG_NS);
    }

    pub(super) fn read(&mut self, longest_ns: u64) {
        self.longest_read_ns = self.longest_read_ns.max(longest_ns);
        self.long += u64::from(longest_ns > LONG_NS);
    }

    pub(super) fn opened(&mut self, time_ns: u64) {
        self.opens += 1;
        self.longest_open_ns = self.longest_open_ns.max(time_ns);
    }

    /// Adds the counts of another tally of the torture, and resets that tally.
    pub(super) fn take(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        for (own, others) in [
            (&mut self.kills, other.kills),
            (&mut self.stops, other.stops),
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.compared, other.compared),
            (&mut self.lost, other.lost),
            (&mut self.wrong, other.wrong),
            (&mut self.failed, other.failed),
            (&mut self.busy, other.busy),
            (&mut self.crashed, other.crashed),
            (&mut self.hung, other.hung),
            (&mut self.opens, other.opens),
            (&mut self.reads, other.reads),
            (&mut self.hits, other.hits),
            (&mut self.long, other.long),
            (&mut self.stale, other.stale),
            (&mut self.refused, other.refused),
            (&mut self.computed, other.computed),
            (&mut self.deleted, other.deleted),
            (&mut self.invalidated, other.invalidated),
            (&mut self.cleared, other.cleared),
            (&mut self.unsupported, other.unsupported),
            (&mut self.taken_over, other.taken_over),
        ] {
            *own += others;
        }
        self.longest_write_ns = self.longest_write_ns.max(other.longest_write_ns);
        self.longest_read_ns = self.longest_read_ns.max(other.longest_read_ns);
        self.longest_open_ns = self.longest_open_ns.max(other.longest_open_ns);
        self.longest_takeover_ns = self.longest_takeover_ns.max(other.longest_takeover_ns);
        for text in other.findings {
            self.find(|| text);
        }
    }

    /// Returns the hit ratio of the reads that the torture's processes did in their fixed mix of
    /// operations; `None` without reads.
    pub(super) fn hit_ratio(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.hits as f64 / self.reads as f64)
    }

    /// Returns the findings of the torture case (wrong or lost values, crashes and so on) as text;
    /// `None` if there are none. A time-out with `Busy` is allowed.
    pub(super) fn verdict(&self) -> Option<String> {
        let parts = [
            (self.stale, "stale values"),
            (self.wrong, "wrong values"),
            (self.lost, "acknowledged values lost"),
            (self.failed, "operations failed"),
            (self.crashed, "processes ended by themselves"),
            (self.hung, "processes hung"),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{what}: {count}"))
            .collect();
        if parts.is_empty() {
            return None;
        }
        Some(format!("{}; {}", parts.join(", "), self.findings.join("; ")))
    }

    /// Returns the counts (such as stale reads) that only the torture case `invalidate` has, by
    /// name, for a result row.
    pub(super) fn removals(&self) -> BTreeMap<String, u64> {
        let counts = [
            ("stale", self.stale),
            ("refused", self.refused),
            ("computed", self.computed),
            ("deleted", self.deleted),
            ("invalidated", self.invalidated),
            ("cleared", self.cleared),
            ("unsupported", self.unsupported),
        ];
        named(counts)
    }

    /// Returns the counts of the torture case by name, for a result row.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let counts = [
            ("kills", self.kills),
            ("stops", self.stops),
            ("acknowledged", self.acknowledged),
            ("compared", self.compared),
            ("lost", self.lost),
            ("wrong", self.wrong),
            ("failed", self.failed),
            ("busy", self.busy),
            ("crashed", self.crashed),
            ("hung", self.hung),
            ("opens", self.opens),
            ("over_100ms", self.long),
            ("longest_write_ns", self.longest_write_ns),
            ("longest_read_ns", self.longest_read_ns),
            ("longest_open_ns", self.longest_open_ns),
            ("taken_over", self.taken_over),
            ("longest_takeover_ns", self.longest_takeover_ns),
        ];
        named(counts)
    }
}

fn named(counts: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
