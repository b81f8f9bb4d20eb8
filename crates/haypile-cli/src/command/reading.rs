//! The line about sizes that change, which `simulate` and `advise` print.

use haypile_sim::simulate::{Accounting, OtherReading, SizeRule};

use crate::output::capacity::capacity;
use crate::output::number::{grouped, percent};

/// Returns a line of text with two hit ratios: with reads of another size than before counted as
/// hits, and with them counted as misses.
pub(crate) fn other_reading(accounting: Accounting, other: &OtherReading) -> String {
    let (now, then) = match other.other_sizes {
        SizeRule::Changed => ("hits", "misses"),
        SizeRule::First | SizeRule::Last => ("misses", "hits"),
    };
    format!(
        "{} reads have another size than their key had before: counted as {now}, {} with {} answers {}; as \
         {then} (--sizes {}), {}.\n",
        grouped(other.changed_reads),
        other.policy,
        capacity(accounting, other.capacity),
        percent(other.hit_ratio),
        other.other_sizes,
        percent(other.other_hit_ratio)
    )
}
