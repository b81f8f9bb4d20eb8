//! The reading of sizes that change between requests for a key.

use std::fmt;

use zerocopy::little_endian::U32;

use super::{Accounting, Operations};
use crate::Trace;
use crate::trace::Op;

/// The rule for a read whose size differs from the size that its key had before: a hit at the first size, a hit at the
/// last size, or a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeRule {
    /// The read is a hit, and the entry keeps the weight with which it was stored; as in most other simulators.
    #[default]
    First,
    /// The read is of a value that has changed, which no cache can have. It is a miss, and the new value takes the
    /// place of the old.
    Changed,
    /// The read is a hit, and the entry weighs the last full size from then on: the size that a server logs differs by
    /// a token, a date or the coding, and not by the value that a cache would serve. A shorter read that is followed by
    /// one of the old size was broken off, and changes nothing.
    Last,
}

impl SizeRule {
    /// Returns the name on the command line of the rule for reads with a changed size: `first`, `changed` or `last`.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Changed => "changed",
            Self::Last => "last",
        }
    }
}

impl fmt::Display for SizeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A detector of reads whose size differs from the size that their key had before.
#[derive(Debug, Default)]
pub(super) struct ValueChanges {
    /// Last size of each key plus 1, indexed by id; 0 before the first request.
    last: Vec<u64>,
}

impl ValueChanges {
    /// Records the size of a request's value, and returns whether it is a read with another size than its key had
    /// before.
    pub(super) fn is_changed(&mut self, id: u32, size_bytes: u64, op: Op) -> bool {
        let id = id as usize;
        if self.last.len() <= id {
            self.last.resize(id + 1, 0);
        }
        let before = match op {
            Op::Read | Op::Write => std::mem::replace(&mut self.last[id], size_bytes + 1),
            Op::Delete => std::mem::replace(&mut self.last[id], 0),
        };
        op == Op::Read && before > 0 && before != size_bytes + 1
    }
}

/// The sizes of a trace's values, request by request, as a rule corrects them: the size of a transfer that was broken
/// off becomes the full size.
pub(crate) struct RuledSizes<'a> {
    rule: SizeRule,
    changes: ValueChanges,
    /// Numbers of the coming requests that were broken off, with the full sizes of their values.
    broken_off: &'a [(u32, u32)],
}

impl<'a> RuledSizes<'a> {
    pub(crate) fn new(trace: &'a Trace, accounting: Accounting, rule: SizeRule) -> Self {
        let weighs = trace.sizes().is_some() && accounting != Accounting::Objects;
        let mut broken_off: &[(u32, u32)] = &[];
        // What follows sizes where none changes, or none counts, does nothing but take time.
        let rule = match rule {
            SizeRule::Changed if trace.sizes().is_none() => SizeRule::First,
            SizeRule::Last if weighs && trace.size_changes().is_any => {
                broken_off = &trace.size_changes().broken_off;
                SizeRule::Last
            }
            SizeRule::Last => SizeRule::First,
            rule => rule,
        };
        Self { rule, changes: ValueChanges::default(), broken_off }
    }

    /// Returns the rule for reads with a changed size that a simulation follows: the user's, or `first` where another
    /// would have no effect on this trace.
    pub(crate) fn rule(&self) -> SizeRule {
        self.rule
    }

    /// Returns the size of the value of request number `at`, and whether it is a read that misses because the size of
    /// its key's value changed. Must be called for requests in order.
    #[inline]
    pub(crate) fn of_request(
        &mut self,
        at: usize,
        id: u32,
        size_bytes: u64,
        op: Op,
    ) -> (u64, bool) {
        match self.rule {
            SizeRule::First => (size_bytes, false),
            SizeRule::Changed => (size_bytes, self.changes.is_changed(id, size_bytes, op)),
            SizeRule::Last => match self.broken_off {
                [(request, value_bytes), rest @ ..] if *request as usize == at => {
                    self.broken_off = rest;
                    (u64::from(*value_bytes), false)
                }
                _ => (size_bytes, false),
            },
        }
    }
}

/// Returns the number of reads in a trace with another size than their key had before.
pub fn changed_reads(trace: &Trace, operations: Operations) -> u64 {
    let Some(sizes) = trace.sizes() else { return 0 };
    let ops = trace.ops().filter(|_| operations == Operations::AsTheyAre);
    let mut changes = ValueChanges::default();
    let requests = trace.ids().iter().zip(sizes).enumerate();
    let is_changed = |(at, (id, size)): (usize, (&U32, &U32))| {
        let op = ops.map_or(Op::Read, |ops| Op::from_number(ops[at]));
        changes.is_changed(id.get(), u64::from(size.get()), op)
    };
    requests.map(is_changed).filter(|is_changed| *is_changed).count() as u64
}
