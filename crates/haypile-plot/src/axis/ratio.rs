//! An axis of miss ratios, which begins at 0, or at a round ratio if all ratios are high.

use super::Tick;
use crate::Point;

/// Part of the highest ratio above which all ratios have to lie for the axis to begin above 0.
const HIGH: f64 = 0.5;

/// Least range of an axis that begins above 0: differences below a point should not look large.
const LEAST_RANGE: f64 = 0.02;

/// The vertical axis of a chart, for miss ratios. It begins at 0, or at a round ratio if all miss ratios are high.
#[derive(Debug)]
pub struct RatioAxis {
    step: f64,
    /// Number of steps from 0 to the foot of the axis.
    first: u32,
    steps: u32,
}

impl RatioAxis {
    /// Creates a vertical axis whose range includes all these miss ratios, which are from 0 to 1.
    pub fn new(ratios: impl Iterator<Item = f64>) -> Self {
        let (lowest, highest) = ratios
            .fold((1.0, 0.0), |(low, high), ratio| (f64::min(low, ratio), f64::max(high, ratio)));
        let is_high = lowest > highest * HIGH;
        let foot = if is_high { lowest.min(highest - LEAST_RANGE).max(0.0) } else { 0.0 };
        // Below a millionth the curves lie on the floor, as they should.
        let rounds = (0..=5)
            .rev()
            .flat_map(|n| [1.0, 2.0, 5.0].map(|f| f * libm::exp10(-f64::from(n)) / 10.0));
        for step in rounds.filter(|_| highest > 0.0) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most a million steps"
            )]
            let (first, last) =
                ((foot / step + 1e-9).floor() as u32, (highest / step - 1e-9).ceil() as u32);
            let steps = last.saturating_sub(first).max(1);
            if steps <= 6 {
                return Self { step, first, steps: steps.max(2) };
            }
        }
        Self { step: 0.2, first: 0, steps: 5 }
    }

    /// Returns the position of a miss ratio on the axis, from 0 at its bottom to 1 at its top.
    pub fn at(&self, ratio: f64) -> f64 {
        (ratio / self.step - f64::from(self.first)) / f64::from(self.steps)
    }

    /// Returns the tick marks of the axis, at round miss ratios and with labels in per cent.
    pub fn ticks(&self) -> Vec<Tick> {
        let tick = |n| Tick {
            at: f64::from(n) / f64::from(self.steps),
            name: percent(f64::from(self.first + n) * self.step),
        };
        (0..=self.steps).map(tick).collect()
    }
}

/// Formats a miss ratio as text in per cent, with about three digits and no zeros at the end.
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let decimals = if percent >= 10.0 { 1 } else { 4 };
    let number = format!("{percent:.decimals$}");
    format!("{}\u{A0}%", number.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the upper end of the error interval of a point's miss ratio, at most 1.
pub(crate) fn upper(point: &Point) -> f64 {
    (point.miss_ratio + point.error).min(1.0)
}

pub(crate) fn lower(point: &Point) -> f64 {
    (point.miss_ratio - point.error).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ratios_end_at_a_round_number() {
        let names = |ratios: [f64; 2]| {
            let ticks = RatioAxis::new(ratios.into_iter()).ticks();
            ticks.into_iter().map(|tick| tick.name.replace('\u{A0}', " ")).collect::<Vec<_>>()
        };
        assert_eq!(names([0.0, 1.0]), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]);
        assert_eq!(names([0.01, 0.034]), ["0 %", "1 %", "2 %", "3 %", "4 %"]);
        assert_eq!(names([0.0, 0.0]), names([0.0, 1.0]));
        assert_eq!(names([1e-12, 1e-12]), ["0 %", "0.0001 %", "0.0002 %"]);
        // Ratios that fill a part of it have an axis of their own.
        assert_eq!(names([0.83, 0.95]), ["80 %", "85 %", "90 %", "95 %"]);
        assert_eq!(names([1.0, 1.0]), ["98 %", "98.5 %", "99 %", "99.5 %", "100 %"]);
    }

    proptest! {
        #[test]
        fn every_ratio_has_a_place(miss_ratio in 0.0..=1.0f64, error in 0.0..2.0f64) {
            let point = Point { capacity: 1, miss_ratio, error };
            let axis = RatioAxis::new([lower(&point), upper(&point)].into_iter());
            prop_assert!(axis.at(upper(&point)) <= 1.0 + 1e-9);
            prop_assert!(axis.at(lower(&point)) >= -1e-9);
            prop_assert!((2..=6).contains(&(axis.ticks().len() - 1)));
        }
    }
}
