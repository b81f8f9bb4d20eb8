//! An axis of cache sizes, at powers of two or in round numbers of objects.

use super::{Tick, fit_along};
use crate::Unit;

/// Part of the axis left free next to the outermost points, for their markers.
const MARGIN: f64 = 0.02;

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
            fit_along(&ticks, width_em, MAX_TICKS).then_some(ticks)
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
            prop_assert!(fit_along(&ticks, 35.0, MAX_TICKS));
        }
    }
}
