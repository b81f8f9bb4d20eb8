//! Text of an advice.

use std::fmt;

use haypile_number::{Quantity, bytes, grouped, percent, with_plain_spaces};
use haypile_policy::rules::memory::default_shards;

use super::choose::WORTH_A_CACHE;
use super::{Advice, Certainty, Choice, Lead, Level};
use crate::simulate::{Accounting, Goal, Windows};

/// A lead over LRU that is one.
const NOTICEABLE: f64 = 0.005;

/// Sizes of `memory:` from which on shards cost few hits: `docs/simulator.md` has measurements.
const LARGE_BYTES: u64 = 64 << 20;

/// Characters up to which an exact size is shown.
const READABLE: usize = 7;

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(choice) = &self.choice else { return self.why_none(f) };
        self.answer(f, choice)?;
        self.why_this_size(f, choice)?;
        self.why_this_policy(f, choice)?;
        self.how_sure(f, choice)?;
        self.what_else(f, choice)?;
        self.what_was_sampled(f)?;
        if choice.url_assumes_sizes {
            writeln!(
                f,
                "The trace has no sizes; the size below assumes values of 1 KiB. Name the sizes of yours \
                for a better one."
            )?;
        }
        let is_of_store = matches!(self.accounting, Accounting::Engine | Accounting::Objects);
        let shards = default_shards(choice.capacity);
        if !is_of_store && shards > 1 && choice.capacity < LARGE_BYTES {
            writeln!(
                f,
                "In shards, the default, a cache this small may hit some points less than it did here, \
                 in one: add shards=1 where one lock is enough."
            )?;
        }
        if self.accounting == Accounting::Engine && shards > 1 && !choice.url.contains("shards=") {
            writeln!(
                f,
                "Simulated in {shards} shards, the default of this size with the processors of this machine; \
                 --shards states another number."
            )?;
        }
        writeln!(f, "\n{}", choice.url)
    }
}

impl Advice {
    fn why_none(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reads = grouped(self.reads);
        if self.by != Goal::Reads {
            let unit = self.unit();
            return writeln!(
                f,
                "No cache helps here: within the budget it would save less than 0.1 % of the {unit} of {reads} reads."
            );
        }
        if self.best_possible >= WORTH_A_CACHE {
            writeln!(
                f,
                "No cache helps here: within the budget it would answer less than 0.1 % of {reads} reads. \
                 Without a bound, {} would be possible.",
                percent(self.best_possible)
            )
        } else {
            writeln!(
                f,
                "No cache helps here: of {reads} reads, {} for a value that was stored before.",
                if self.best_possible > 0.0 { "hardly any asks" } else { "none asks" }
            )
        }
    }

    fn answer(&self, f: &mut fmt::Formatter<'_>, choice: &Choice) -> fmt::Result {
        write!(
            f,
            "Take {} with {}: it answers {} of {} reads",
            choice.policy,
            self.amount(choice.capacity),
            percent(choice.hit_ratio),
            grouped(self.reads)
        )?;
        if self.warmup > 0 {
            write!(f, " after a warm-up of {} requests", grouped(self.warmup))?;
        }
        if choice.byte_hit_ratio > 0.0 {
            write!(f, " and {} of their bytes", percent(choice.byte_hit_ratio))?;
        }
        if let (Some(saved), Some(ns)) = (choice.cost_saved_ratio, choice.cost_saved_ns) {
            let time = with_plain_spaces(&Quantity::Time.write(ns));
            write!(f, ", and saves {} of the cost of misses, {time}", percent(saved))?;
        }
        writeln!(f, ".\n")
    }

    fn what_else(&self, f: &mut fmt::Formatter<'_>, choice: &Choice) -> fmt::Result {
        write!(f, "What else: ")?;
        if let Some(more) = &choice.more_bytes {
            write!(
                f,
                "if bytes count more than reads, {} serves {} of the bytes, and {} of the reads. ",
                more.policy,
                percent(more.byte_hit_ratio),
                percent(more.hit_ratio)
            )?;
        }
        write!(
            f,
            "{} first {}, {}, has {}, and the last, with a warm one, {}. ",
            if choice.more_bytes.is_some() { "The" } else { "the" },
            self.part(),
            if self.warmup > 0 {
                "with the cache that was warmed up"
            } else {
                "with an empty cache at first"
            },
            percent(choice.first_part_hit_ratio),
            percent(choice.last_part_hit_ratio)
        )?;
        let best_possible = percent(self.best_possible);
        if self.by != Goal::Reads {
            return writeln!(
                f,
                "These are shares of the reads, of which {best_possible} would be possible without a bound; the points are of the {}, by \
                 which the choice was made.",
                self.unit()
            );
        }
        let Some(optimum) = choice.optimum_hit_ratio else {
            return writeln!(f, "Without a bound, {best_possible} would be possible.");
        };
        writeln!(
            f,
            "Knowing the future, {}{} would be possible, and {best_possible} without a bound.",
            if self.accounting == Accounting::Objects { "" } else { "at least " },
            percent(optimum)
        )
    }

    fn why_this_size(&self, f: &mut fmt::Formatter<'_>, choice: &Choice) -> fmt::Result {
        let at = self.sizes.iter().position(|size| size.capacity == choice.capacity);
        let half = self.sizes.iter().find(|size| size.capacity * 2 == choice.capacity);
        write!(f, "Why this size: ")?;
        match (self.knee, choice.doubling_adds) {
            (Some(_), None) => write!(f, "everything that is read again fits")?,
            (Some(_), Some(adds)) => {
                write!(f, "this is the knee; twice as much would add {}", points(adds))?;
            }
            (None, Some(adds)) => {
                write!(
                    f,
                    "the budget ends before the knee; twice as much would add {}",
                    points(adds)
                )?;
            }
            (None, None) => write!(f, "this is the budget")?,
        }
        if let (Some(at), Some(half)) = (at, half) {
            let costs = self.sizes[at].saved - half.saved;
            write!(f, ", half as much would cost {}", points(costs))?;
        }
        writeln!(f, ". Beyond {} even LRU gains nothing.", self.amount(self.holds_everything))
    }

    fn why_this_policy(&self, f: &mut fmt::Formatter<'_>, choice: &Choice) -> fmt::Result {
        write!(f, "Why this policy: ")?;
        match &choice.over_lru {
            None => write!(f, "nothing beats LRU here")?,
            Some(lead) if lead.difference > NOTICEABLE => {
                let verb = if self.by == Goal::Reads { "hits" } else { "saves" };
                write!(f, "LRU {verb} {} less ({})", points(lead.difference), self.spread(lead))?;
            }
            Some(lead) if lead.least == 0.0 && lead.most == 0.0 => {
                write!(f, "LRU does as well")?;
            }
            Some(lead) => {
                write!(f, "LRU does about as well ({})", self.spread(lead))?;
            }
        }
        match choice.lru_needs {
            Some(needs) if choice.over_lru.is_some() && needs > choice.capacity => {
                write!(f, "; it needs {} for the same", self.amount(needs))?;
            }
            _ => {}
        }
        if let Some(other) = &choice.too_close_to_call {
            write!(f, "; {other} is ahead by less than is worth a setting")?;
        }
        writeln!(f, ".")
    }

    fn how_sure(&self, f: &mut fmt::Formatter<'_>, choice: &Choice) -> fmt::Result {
        let Certainty { level, reasons } = self.certainty(choice);
        let level = match level {
            Level::Very => "very, as far as tomorrow is like this trace",
            Level::Moderately => "moderately",
            Level::NotVery => "not very",
            Level::NotAtAll => "not at all of the policy",
        };
        writeln!(f, "How sure: {level}: {}.", reasons.join("; "))
    }

    fn what_was_sampled(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(sample) = &self.sample else { return Ok(()) };
        writeln!(
            f,
            "Sampled: all figures are estimates from {sample}. Another --seed takes other keys; --sample 1 simulates the whole trace."
        )
    }

    /// Whether the parts of the trace are days.
    pub(super) fn has_days(&self) -> bool {
        matches!(self.windows, Windows::Days(_))
    }

    /// Returns the word for a part of the trace.
    pub(super) fn part(&self) -> &'static str {
        if self.has_days() { "day" } else { "tenth" }
    }

    fn spread(&self, lead: &Lead) -> String {
        format!(
            "{:+.1} to {:+.1} points in {}s of the trace, ahead in {} of {}",
            lead.least * 100.0,
            lead.most * 100.0,
            self.part(),
            lead.ahead,
            lead.windows
        )
    }

    /// Returns the unit of the goal, of which the points are shares.
    fn unit(&self) -> &'static str {
        match self.by {
            Goal::Reads => "reads",
            Goal::Bytes => "bytes",
            Goal::Cost(_) => "cost of misses",
        }
    }

    fn amount(&self, capacity: u64) -> String {
        if self.accounting == Accounting::Objects {
            return format!("{} objects", grouped(capacity));
        }
        let exact = haypile::ByteSize(capacity).to_string();
        // People do not write such a size without a unit.
        let is_readable = exact.ends_with('B') && exact.len() <= READABLE;
        if is_readable { exact } else { bytes(capacity) }
    }
}

/// A gain or a loss. Not every policy gains from more space; less than nothing is nothing here.
fn points(difference: f64) -> String {
    if difference < 0.0005 {
        "nothing".to_owned()
    } else {
        format!("{:.1} points", difference * 100.0)
    }
}
