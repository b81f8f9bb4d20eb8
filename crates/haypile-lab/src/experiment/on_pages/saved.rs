//! The part of the time that a cache saves, and how certain it is of these pages and of pages like these.

use std::collections::BTreeMap;
use std::fmt;

use haypile_measure::figure::Estimate;
use haypile_measure::statistics::{Effect, Interval};

/// An interval whose ends differ by more than this factor of the time says nothing.
const MAX_INTERVAL_FACTOR: f64 = 5.0;

/// The fewest pages that say something of others: from here on a jackknife over pages holds the truth in 93 of 100
/// (`intervals_of_sums_hold_the_truth`), and fewer pages are hardly a sample of any kind of page.
pub(crate) const FEWEST_PAGES: usize = 20;

/// The beginning of the interval of pages like these.
const LIKE_THESE: &str = "like these";

/// The part of the time of page loads that a cache saves.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    /// Of these pages: loaded again, how different would it be?
    these: Effect,
    /// Of pages like these: of others of their kind, how different would it be? `None` of too few.
    like_these: Option<Effect>,
}

impl Saved {
    /// Returns the saving of loads, each with what it has in common with those that differ from it by chance alone:
    /// its page, and whether it is a first view; and with its times without the cache and with it. `None` without
    /// any.
    pub(super) fn of<'a>(
        loads: impl Iterator<Item = ((&'a str, bool), (f64, f64))>,
    ) -> Option<Self> {
        let mut strata: BTreeMap<(&str, bool), Vec<(f64, f64)>> = BTreeMap::new();
        let mut pages: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for ((page, is_first), times) in loads {
            strata.entry((page, is_first)).or_default().push(times);
            let sum = pages.entry(page).or_default();
            *sum = (sum.0 + times.0, sum.1 + times.1);
        }
        let these = Effect::of_strata(&strata.into_values().collect::<Vec<_>>()).ok()?;
        let sums: Vec<(f64, f64)> = pages.into_values().collect();
        let like_these =
            (sums.len() >= FEWEST_PAGES).then(|| Effect::of_sums(&sums).ok()).flatten();
        Some(Self { these, like_these })
    }

    /// Returns the part, with its 95 % interval of these pages where that says something.
    pub(crate) fn estimate(&self) -> Estimate {
        estimate(&self.these)
    }

    /// Returns the part, with its 95 % interval of pages like these; `None` of fewer than [`FEWEST_PAGES`].
    pub(crate) fn of_pages_like_these(&self) -> Option<Estimate> {
        self.like_these.as_ref().map(estimate)
    }

    /// Returns whether the interval leaves open that nothing is saved, one of too few loads included.
    pub(crate) fn may_be_nothing(&self) -> bool {
        self.these.interval().is_some_and(|ends| ends.high >= 0.0)
    }
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

    fn saved(loads: &[(&str, bool, f64, f64)]) -> Saved {
        Saved::of(loads.iter().map(|&(page, first, old, new)| ((page, first), (old, new)))).unwrap()
    }

    #[test]
    fn an_improvement_without_an_interval_says_so() {
        let one = |new: f64| saved(&[("p", false, 100.0, new)]).to_string();
        assert_eq!(one(50.0), "50 % (no interval)");
        assert_eq!(one(100.4), "0 % (no interval)");
        let many: Vec<_> = (0..20).map(|n| ("p", false, 100.0, 49.0 + f64::from(n % 3))).collect();
        assert_eq!(saved(&many).to_string(), "50 % (50 to 50)");
        let few = [("p", false, 100.0, 5.0), ("p", false, 100.0, 505.0)];
        assert_eq!(saved(&few).to_string(), "-155 % (no interval: too few loads)");
    }

    /// However different pages are, what these save is known from their own loads; what others save is not, from
    /// a few.
    #[test]
    fn pages_are_these_or_a_sample_of_others() {
        let names: Vec<String> = (0..20).map(|page| format!("p{page}")).collect();
        let loads = |pages: usize| -> Vec<(&str, bool, f64, f64)> {
            names
                .iter()
                .take(pages)
                .enumerate()
                .flat_map(|(at, name)| {
                    let new = if at % 2 == 0 { 10.0 } else { 90.0 };
                    [0.0, 1.0].map(|more| (name.as_str(), false, 100.0, new + more))
                })
                .collect()
        };
        let twenty = saved(&loads(20));
        let these = twenty.estimate().interval.unwrap();
        assert!(these.high - these.low < 0.01, "{these:?}");
        let like_these = twenty.of_pages_like_these().unwrap().interval.unwrap();
        assert!(like_these.low < 0.4 && like_these.high > 0.6, "{like_these:?}");
        assert_eq!(twenty.to_string(), "50 % (49 to 50; like these 26 to 66)");
        assert_eq!(saved(&loads(19)).of_pages_like_these(), None);
    }

    /// A first view is not like its repetitions: two visits of a page are one of each.
    #[test]
    fn first_and_repeat_views_do_not_vary_by_chance() {
        let both = [("p", true, 100.0, 100.0), ("p", false, 100.0, 10.0)];
        assert_eq!(saved(&both).to_string(), "45 % (no interval)");
        let twice = [both, both].concat();
        assert_eq!(saved(&twice).to_string(), "45 % (45 to 45)");
    }
}
