//! The time that a cache saves as a part of the whole, and its certainty for these pages and for pages like these.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use haypile_measure::figure::Estimate;
use haypile_measure::statistics::{Effect, Interval};

/// An interval whose ends differ by more than this factor of the time says nothing.
const MAX_INTERVAL_FACTOR: f64 = 5.0;

/// The smallest number of measured pages from which a statement about the load time of other,
/// similar pages is made. From 20 on, the interval of a jackknife over pages contains the true
/// value in 93 of 100 tests.
pub(crate) const FEWEST_PAGES: usize = 20;

/// The beginning of the interval of pages like these.
const LIKE_THESE: &str = "like these";

/// Two loads of the same page visit, one without the cache and one with it.
pub(super) struct PairedLoad<'a> {
    /// The run and the block (round of the experiment) of the two page loads.
    pub(super) block: (&'a str, u64),
    pub(super) page: &'a str,
    pub(super) visit: u64,
    /// The times of the page load without the cache and with it, in nanoseconds.
    pub(super) times: (f64, f64),
}

/// The share of the load time that a cache saves, for the measured pages and for pages like them.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    /// The effect on these pages: loaded again, how different would it be? A block is one observation: a disturbance of
    /// a column disturbs all of its loads in a block.
    these: Effect,
    /// The effect on pages like these: of others of their kind, how different would it be? `None` of too few.
    like_these: Option<Effect>,
}

impl Saved {
    /// Returns the share of the load time that a cache saves; `None` without loads. One interval is
    /// over blocks, the other over pages.
    pub(super) fn of<'a>(loads: impl Iterator<Item = PairedLoad<'a>>) -> Option<Self> {
        let loads: Vec<PairedLoad<'_>> = loads.collect();
        let blocks: BTreeSet<_> = loads.iter().map(|load| load.block).collect();
        let mut visits: BTreeMap<(&str, u64), usize> = BTreeMap::new();
        for load in &loads {
            *visits.entry((load.page, load.visit)).or_default() += 1;
        }
        let is_whole = |load: &&PairedLoad<'_>| visits[&(load.page, load.visit)] == blocks.len();
        let whole: Vec<&PairedLoad<'_>> = loads.iter().filter(is_whole).collect();
        // An interrupted run may have no visit in every block: then all is one observation.
        let is_one = whole.is_empty();
        let own = if is_one { loads.iter().collect() } else { whole };
        let these = sums(&own, |load| if is_one { ("", 0) } else { load.block });
        let pages = sums(&loads.iter().collect::<Vec<_>>(), |load| (load.page, 0));
        let like_these =
            (pages.len() >= FEWEST_PAGES).then(|| Effect::of_sums(&pages).ok()).flatten();
        Some(Self { these: Effect::of_sums(&these).ok()?, like_these })
    }

    /// Returns the share of the load time that a cache saves, with its 95 % interval for the
    /// measured pages where there are enough loads for one.
    pub(crate) fn estimate(&self) -> Estimate {
        estimate(&self.these)
    }

    /// Returns the share of the load time that a cache saves, with its 95 % interval for similar
    /// pages; `None` for fewer than [`FEWEST_PAGES`].
    pub(crate) fn of_pages_like_these(&self) -> Option<Estimate> {
        self.like_these.as_ref().map(estimate)
    }

    /// Returns whether the 95 % interval of the saved load time reaches zero or below, so that the
    /// cache may have saved nothing; false without an interval.
    pub(crate) fn may_be_nothing(&self) -> bool {
        self.these.interval().is_some_and(|ends| ends.high >= 0.0)
    }
}

/// Returns the sums of the times of loads that have a key in common.
fn sums<'a>(
    loads: &[&PairedLoad<'a>],
    key: impl Fn(&PairedLoad<'a>) -> (&'a str, u64),
) -> Vec<(f64, f64)> {
    let mut sums: BTreeMap<(&str, u64), (f64, f64)> = BTreeMap::new();
    for load in loads {
        let sum = sums.entry(key(load)).or_default();
        *sum = (sum.0 + load.times.0, sum.1 + load.times.1);
    }
    sums.into_values().collect()
}

fn estimate(effect: &Effect) -> Estimate {
    let turned = |ends: Interval| Interval { low: -ends.high, high: -ends.low };
    let interval = effect.interval().filter(|ends| !is_wide(*ends));
    Estimate::exact(-effect.change()).within(interval.map(turned))
}

fn is_wide(ends: Interval) -> bool {
    1.0 + ends.high > MAX_INTERVAL_FACTOR * (1.0 + ends.low)
}

/// Returns a part of the time in whole per cent: the intervals of page loads are wider than that.
fn percent(part: f64) -> String {
    // Nothing is neither more nor less.
    let percent = if part.abs() < 0.005 { 0.0 } else { part * 100.0 };
    format!("{percent:.0}")
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { value, interval, .. } = self.estimate();
        write!(f, "{} %", percent(value))?;
        let range = |ends: Interval| format!("{} to {}", percent(ends.low), percent(ends.high));
        let others = self.of_pages_like_these().and_then(|others| others.interval);
        match (interval, others) {
            (Some(ends), None) => write!(f, " ({})", range(ends)),
            (Some(ends), Some(others)) => {
                write!(f, " ({}; {LIKE_THESE} {})", range(ends), range(others))
            }
            (None, Some(others)) => write!(f, " (no interval; {LIKE_THESE} {})", range(others)),
            (None, None) if self.these.interval().is_some_and(is_wide) => {
                f.write_str(" (no interval: too few loads)")
            }
            (None, None) => f.write_str(" (no interval)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads: block, page, visit, and times.
    fn saved(loads: &[(u64, &str, u64, f64, f64)]) -> Saved {
        let load = |&(block, page, visit, old, new)| PairedLoad {
            block: ("r", block),
            page,
            visit,
            times: (old, new),
        };
        Saved::of(loads.iter().map(load)).unwrap()
    }

    #[test]
    fn an_improvement_without_an_interval_says_so() {
        let one = |new: f64| saved(&[(0, "p", 2, 100.0, new), (0, "p", 3, 100.0, new)]).to_string();
        assert_eq!(one(50.0), "50 % (no interval)");
        assert_eq!(one(100.4), "0 % (no interval)");
        let block = |block: u64| (block, "p", 2, 100.0, 49.0 + (block % 3) as f64);
        let many: Vec<_> = (0..20).map(block).collect();
        assert_eq!(saved(&many).to_string(), "50 % (50 to 50)");
        let few = [(0, "p", 2, 100.0, 5.0), (1, "p", 2, 100.0, 505.0)];
        assert_eq!(saved(&few).to_string(), "-155 % (no interval: too few loads)");
    }

    /// A block that was interrupted lacks a page, and so the blocks differ by more than what the cache saves.
    #[test]
    fn blocks_are_compared_by_the_visits_that_all_have() {
        let all = [(0, "p", 1, 100.0, 50.0), (0, "q", 1, 100.0, 90.0), (1, "p", 1, 100.0, 50.0)];
        assert_eq!(saved(&all).to_string(), "50 % (50 to 50)");
        let none = [(0, "p", 1, 100.0, 50.0), (1, "q", 1, 100.0, 70.0)];
        assert_eq!(saved(&none).to_string(), "40 % (no interval)");
    }

    /// However different pages are, what these save is known from blocks; what others save is not, from a few.
    #[test]
    fn pages_are_these_or_a_sample_of_others() {
        let names: Vec<String> = (0..20).map(|page| format!("p{page}")).collect();
        let loads = |pages: usize| -> Vec<(u64, &str, u64, f64, f64)> {
            let of_block = |block: u64| {
                names.iter().take(pages).enumerate().map(move |(at, name)| {
                    let new = if at % 2 == 0 { 10.0 } else { 90.0 };
                    (block, name.as_str(), 2, 100.0, new + block as f64)
                })
            };
            (0..3).flat_map(of_block).collect()
        };
        let twenty = saved(&loads(20));
        let these = twenty.estimate().interval.unwrap();
        assert!(these.high - these.low < 0.06, "{these:?}");
        let like_these = twenty.of_pages_like_these().unwrap().interval.unwrap();
        assert!(like_these.low < 0.4 && like_these.high > 0.6, "{like_these:?}");
        assert!(twenty.to_string().contains("; like these 2"), "{twenty}");
        assert_eq!(saved(&loads(19)).of_pages_like_these(), None);
    }
}
