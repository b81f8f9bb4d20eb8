//! Statistics of samples, and their certainty.
//!
//! [`Summary`] describes one set of samples by figures that outliers do not move: the median and the
//! median absolute deviation. [`Effect`] compares two sets, best in pairs measured side by side.
//! [`Rule`] turns an effect into a [`Verdict`].
//!
//! # The method, and why this one
//!
//! Times are compared as ratios, so that the logarithm of new over old is what is averaged: nothing
//! depends on the unit, and old and new can change places. The average is the mean after a fifth is
//! trimmed from each end; its error is estimated from the winsorised samples and has Student's t
//! distribution (Yuen 1974). The distribution comes
//! from the crate statrs.
//!
//! `scripts/study-intervals` compares this with Student's t on all samples, Wilcoxon's signed ranks
//! with the Hodges-Lehmann estimate, the median's order statistics and the bootstrap, under six
//! kinds of noise; its table is in `record/`. With 40 blocks and under the rule of verdicts, the
//! trimmed mean finds a slowdown of 3 % in 82 to 98 of 100 comparisons where samples are disturbed,
//! as machines disturb them, and in 88 where noise is normal. Student's t finds 14 to 62 and 94,
//! signed ranks 71 to 86 and 93, the median 76 to 98 and 74. Where samples have two speeds, which
//! is a third of them at 8 % more, the trimmed mean finds 55, and t and the median more. None of
//! these shows a difference where there is none more often than it promises; the bootstrap does,
//! up to three times as often at 5 % and six times at 1 %.
//!
//! A total, such as the time of all page loads, is compared as a total: [`Effect::of_sums`] takes the
//! ratio of the sums, because "less time" is a sum of times and no mean of ratios is. Nothing is trimmed
//! from it. Its interval comes from leaving each cluster out in turn: each block, of what these pages save, and each
//! page, of what such pages save.
//!
//! # Why a verdict asks for more than its interval
//!
//! A 95 % interval leaves zero out in 5 of 100 comparisons of a thing with itself. A table has many
//! rows, so that a [`Rule`] asks for p < 0.01, and for an effect beyond a noise floor: what is
//! smaller than 1 % can come from where the linker has put a loop.

mod centre;
mod effect;
mod mean;
mod notes;
mod order;
mod summary;
mod sums;
mod verdict;

pub use centre::Centre;
pub use effect::{Effect, EffectError, Interval};
pub use notes::{Note, Turn};
pub use order::MedianInterval;
pub use summary::Summary;
pub use verdict::{Rule, RuleError, Timing, Verdict};
