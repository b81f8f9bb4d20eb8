//! Axes: the places of capacities and miss ratios on the picture, and their labels.

use super::drawing::text::width_em;
use super::{Point, Unit};

/// Part of the axis left free next to the outermost points, for their markers.
const MARGIN: f64 = 0.02;

/// Least distance between two names at the axis, in multiples of the font size.
const GAP_EM: f64 = 0.9;

/// An axis of fewer doublings is made wider: its names would differ only in their last digits.
const NARROWEST: f64 = 0.05;

/// Most named capacities.
const MAX_TICKS: usize = 9;

/// The horizontal axis of a chart, for cache sizes, or for other amounts in bytes or objects.
#[derive(Debug)]
pub struct CapacityAxis {
    unit: Unit,
    log: bool,
    low: f64,
    high: f64,
}

/// A labelled tick mark on an axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The position of the tick mark, from 0 at the start of the axis to 1 at its end.
    pub at: f64,
    /// The text of the tick mark's label.
    pub name: String,
}

impl CapacityAxis {
    /// Creates a horizontal axis whose range includes all cache sizes in `capacities`; on a logarithmic axis (`log`),
    /// they must be above 0.
    pub fn new(unit: Unit, log: bool, capacities: impl Iterator<Item = u64>) -> Self {
        let (min, max) =
            capacities.fold((u64::MAX, 0), |(min, max), next| (min.min(next), max.max(next)));
        let mut axis = Self { unit, log, low: 0.0, high: 1.0 };
        let (mut low, mut high) = (axis.raw(min), axis.raw(max));
        if log {
            if high - low < NARROWEST {
                (low, high) = (low - 1.0, high + 1.0);
            }
            let margin = (high - low) * MARGIN;
            (axis.low, axis.high) = (low - margin, high + margin);
        } else if max > 0 {
            axis.high = high * (1.0 + MARGIN);
        }
        axis
    }

    fn raw(&self, capacity: u64) -> f64 {
        if self.log { libm::log2(capacity as f64) } else { capacity as f64 }
    }

    /// Returns the position of a cache size on the axis, from 0 at its start to 1 at its end.
    pub fn at(&self, capacity: u64) -> f64 {
        (self.raw(capacity) - self.low) / (self.high - self.low)
    }

    /// Returns tick marks at round cache sizes: as many as fit next to each other on an axis that is `width_em` font
    /// sizes wide.
    pub fn ticks(&self, width_em: f64) -> Vec<Tick> {
        let fitting = |values: Vec<u64>| {
            let ticks = self.named(values);
            fits(&ticks, width_em).then_some(ticks)
        };
        let factors = if self.log { self.log_steps().into_iter().find_map(fitting) } else { None };
        match factors {
            Some(ticks) if ticks.len() >= 3 => ticks,
            // So narrow a part of a logarithmic axis is divided like a linear one.
            few => {
                let steps = self.linear_steps().into_iter().find_map(fitting).unwrap_or_default();
                few.filter(|few| few.len() >= steps.len()).unwrap_or(steps)
            }
        }
    }

    fn named(&self, values: Vec<u64>) -> Vec<Tick> {
        let tick = |value| Tick { at: self.at(value), name: capacity(value, self.unit) };
        let ticks = values.into_iter().map(tick);
        ticks.filter(|tick| (0.0..=1.0).contains(&tick.at)).collect()
    }

    /// Round capacities in equal factors, the densest first.
    fn log_steps(&self) -> Vec<Vec<u64>> {
        match self.unit {
            Unit::Bytes => [1, 2, 4, 5, 10, 20]
                .map(|step| (0..64).step_by(step).map(|n| 1 << n).collect())
                .into(),
            Unit::Objects => {
                let powers = |step| (0..20).step_by(step).map(|n| 10_u64.pow(n));
                let halves = |power: u64| [1, 2, 5].map(|factor| power.checked_mul(factor));
                let mut steps = vec![powers(1).flat_map(halves).flatten().collect()];
                steps.extend([1, 2, 3, 6].map(|step| powers(step).collect::<Vec<_>>()));
                steps
            }
        }
    }

    /// Round capacities in equal amounts, the densest first.
    fn linear_steps(&self) -> Vec<Vec<u64>> {
        let (low, high) = if self.log {
            (libm::exp2(self.low), libm::exp2(self.high))
        } else {
            (self.low, self.high)
        };
        let steps: Vec<u64> = match self.unit {
            Unit::Bytes => (0..64).map(|n| 1 << n).collect(),
            Unit::Objects => (0..20)
                .flat_map(|n| [1, 2, 5].map(|factor| 10_u64.pow(n).checked_mul(factor)))
                .flatten()
                .collect(),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few steps between two capacities"
        )]
        let multiples = |step: u64| {
            let (first, last) = (low / step as f64, high / step as f64);
            (last - first <= MAX_TICKS as f64).then(|| {
                let (first, last) = (first.ceil() as u64, last.floor() as u64);
                (first..=last).filter_map(|n| n.checked_mul(step)).collect()
            })
        };
        steps.into_iter().filter_map(multiples).collect()
    }
}

fn fits(ticks: &[Tick], axis_em: f64) -> bool {
    ticks.len() <= MAX_TICKS
        && ticks.windows(2).all(|pair| {
            let names_em = f64::midpoint(width_em(&pair[0].name), width_em(&pair[1].name));
            (pair[1].at - pair[0].at) * axis_em >= names_em + GAP_EM
        })
}

/// Formats a cache size as text in its unit, such as "64 KiB" or "5,000".
pub fn capacity(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => scaled(value, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], " "),
        Unit::Objects if value < 1_000_000 => thousands(value),
        Unit::Objects => scaled(value, 1000, &["", "k", "M", "G", "T", "P", "E"], ""),
    }
}

fn thousands(value: u64) -> String {
    if value < 1000 { value.to_string() } else { format!("{},{:03}", value / 1000, value % 1000) }
}

/// At most three decimals, and no zeros at the end.
fn scaled(value: u64, base: u64, units: &[&str], space: &str) -> String {
    let power = value.checked_ilog(base).unwrap_or(0);
    let number = format!("{:.3}", value as f64 / base.pow(power) as f64);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    let unit = units[power as usize];
    format!("{number}{}{unit}", space.replace(' ', "\u{A0}"))
}

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
pub(super) fn upper(point: &Point) -> f64 {
    (point.miss_ratio + point.error).min(1.0)
}

pub(super) fn lower(point: &Point) -> f64 {
    (point.miss_ratio - point.error).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(unit: Unit, log: bool, capacities: [u64; 2]) -> Vec<String> {
        let axis = CapacityAxis::new(unit, log, capacities.into_iter());
        axis.ticks(40.0).into_iter().map(|tick| tick.name.replace('\u{A0}', " ")).collect()
    }

    #[test]
    fn bytes_are_named_in_powers_of_two() {
        let names = names(Unit::Bytes, true, [64 << 10, 1 << 30]);
        assert_eq!(
            names,
            ["64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB"]
        );
    }

    #[test]
    fn objects_are_named_in_round_numbers() {
        assert_eq!(
            names(Unit::Objects, true, [1000, 20_000]),
            ["1,000", "2,000", "5,000", "10,000", "20,000"]
        );
        assert_eq!(
            names(Unit::Objects, true, [10, 10_000_000]),
            ["10", "100", "1,000", "10,000", "100,000", "1M", "10M"]
        );
        assert_eq!(
            names(Unit::Objects, false, [0, 400]),
            ["0", "50", "100", "150", "200", "250", "300", "350", "400"]
        );
    }

    #[test]
    fn a_narrow_part_of_a_logarithmic_axis_has_names_too() {
        assert_eq!(
            names(Unit::Objects, true, [1000, 1200]),
            ["1,000", "1,050", "1,100", "1,150", "1,200"]
        );
        assert!(names(Unit::Bytes, true, [1 << 30, 3 << 29]).contains(&"1.25 GiB".to_owned()));
    }

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
        fn every_axis_has_names_that_fit_and_holds_its_capacities(
            low in 1..u64::MAX,
            high in 1..u64::MAX,
            shift in (0..64_u32, 0..64_u32),
            bytes: bool,
            log: bool,
        ) {
            let capacities = [(low >> shift.0).max(1), (high >> shift.1).max(1)];
            let unit = if bytes { Unit::Bytes } else { Unit::Objects };
            let axis = CapacityAxis::new(unit, log, capacities.into_iter());
            for capacity in capacities {
                prop_assert!((0.0..=1.0).contains(&axis.at(capacity)));
            }
            let ticks = axis.ticks(35.0);
            prop_assert!(ticks.len() >= 2, "{capacities:?} {ticks:?}");
            for pair in ticks.windows(2) {
                prop_assert_ne!(&pair[0].name, &pair[1].name);
            }
            prop_assert!(fits(&ticks, 35.0));
        }

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
