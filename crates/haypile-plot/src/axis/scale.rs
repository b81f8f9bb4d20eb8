//! An axis of measured values of any quantity, linear or logarithmic.

use haypile_number::Quantity;

use super::{Tick, fit_along};

/// From this factor between the largest and the smallest value on, an axis is logarithmic: on a
/// linear one, the small ones would be nothing but a line.
const FROM_FACTOR: f64 = 20.0;
/// Intervals make an axis longer, but not by more than this factor: few samples have endless ones.
const MOST_BEYOND: f64 = 1.3;
/// Most named values.
const MOST_TICKS: usize = 7;
/// The least distance between the tick marks of a vertical axis, in font sizes.
const LINE_EM: f64 = 1.8;

/// A measured value that an axis is to show, with the ends of its interval if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The measured value, in the unit of the quantity that the axis shows.
    pub value: f64,
    /// The lower and the upper end of the interval of the value; they may be infinite.
    pub interval: Option<(f64, f64)>,
}

/// An axis of a chart for any quantity, linear or logarithmic.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    quantity: Quantity,
    /// Whether the axis is logarithmic.
    pub is_log: bool,
    low: f64,
    high: f64,
    /// Distance between the names of a linear axis.
    step: f64,
}

impl Scale {
    /// Creates a chart's axis that fits all these values: linear from 0, or logarithmic if they
    /// are far apart.
    pub fn fitting(quantity: Quantity, readings: &[Reading]) -> Self {
        let above = readings.iter().map(|reading| reading.value).filter(|value| *value > 0.0);
        let (least, most) = above
            .fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        let is_share = matches!(quantity, Quantity::Share | Quantity::HitRatio);
        if !is_share && quantity != Quantity::Count && most > least * FROM_FACTOR {
            return Self::log(quantity, readings);
        }
        let ends = readings.iter().filter_map(|reading| Some(reading.interval?.1));
        let longest = ends.filter(|end| *end <= most * MOST_BEYOND).fold(most, f64::max);
        let longest = if is_share { longest.min(1.0) } else { longest };
        Self::linear(quantity, longest)
    }

    fn linear(quantity: Quantity, most: f64) -> Self {
        let most = if most > 0.0 && most.is_finite() { most } else { 1.0 };
        let power = 10_f64.powf(most.log10().floor() - 1.0);
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| step * 5.0 >= most * 0.999).unwrap_or(most);
        let high = step * (most / step * 0.999).ceil().max(1.0);
        Self { quantity, is_log: false, low: 0.0, high, step }
    }

    /// Creates a chart's logarithmic axis that fits all these values, of which at least one is
    /// above 0.
    pub fn log(quantity: Quantity, readings: &[Reading]) -> Self {
        let (mut low, mut high) = (f64::MAX, f64::MIN_POSITIVE);
        for Reading { value, interval } in readings.iter().filter(|one| one.value > 0.0) {
            let (from, to) = interval.unwrap_or((*value, *value));
            low = low.min(from.max(value / MOST_BEYOND));
            high = high.max(to.min(value * MOST_BEYOND));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        // Some room beyond the outermost, and at least a factor of 4 in all.
        let margin = (high / low).powf(0.04).max(1.05);
        let (low, high) = (low / margin, high * margin);
        let widen = (4.0 / (high / low)).max(1.0).sqrt();
        Self { quantity, is_log: true, low: low / widen, high: high * widen, step: 0.0 }
    }

    /// Returns the position of a value on the chart's axis, from 0 (start) to 1 (end); values
    /// beyond are at the end.
    pub fn at(&self, value: f64) -> f64 {
        let at = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        at.clamp(0.0, 1.0)
    }

    /// Whether a value lies between the start and the end of the chart's axis.
    pub fn holds(&self, value: f64) -> bool {
        value >= self.low * (1.0 - 1e-9) && value <= self.high * (1.0 + 1e-9)
    }

    /// Returns the tick marks of a horizontal axis at round values: as many as fit on an axis that is
    /// `width_em` font sizes wide.
    pub fn ticks_along(&self, width_em: f64) -> Vec<Tick> {
        let fits = |ticks: &Vec<Tick>| fit_along(ticks, width_em, MOST_TICKS);
        self.choices().into_iter().find(fits).unwrap_or_default()
    }

    /// Returns the tick marks of a vertical axis at round values: as many as fit on an axis that is
    /// `height_em` font sizes high.
    pub fn ticks_up(&self, height_em: f64) -> Vec<Tick> {
        let fits = |ticks: &Vec<Tick>| {
            ticks.len() <= MOST_TICKS
                && ticks.windows(2).all(|pair| (pair[1].at - pair[0].at) * height_em >= LINE_EM)
        };
        self.choices().into_iter().find(fits).unwrap_or_default()
    }

    /// Round values, the densest first.
    fn choices(&self) -> Vec<Vec<Tick>> {
        let tick = |value| Tick { at: self.at(value), name: self.quantity.write_round(value) };
        if !self.is_log {
            return [1.0, 2.0, 5.0, 10.0]
                .map(|times| {
                    let step = self.step * times;
                    let values = (0..=50).map(|n| f64::from(n) * step);
                    values.filter(|value| self.holds(*value)).map(tick).collect()
                })
                .into();
        }
        let powers = |step| (-3..20).step_by(step).map(|n| 10_f64.powi(n));
        let dense = |factors: &[f64]| -> Vec<f64> {
            powers(1).flat_map(|power| factors.iter().map(move |f| f * power)).collect()
        };
        let mut all = vec![
            dense(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]),
            dense(&[1.0, 2.0, 5.0]),
            dense(&[1.0, 3.0]),
        ];
        all.extend([1, 2, 3, 6].map(|step| powers(step).collect()));
        let named = |values: Vec<f64>| -> Vec<Tick> {
            values.into_iter().filter(|value| self.holds(*value)).map(tick).collect()
        };
        all.into_iter().map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Reading {
        Reading { value, interval: None }
    }

    fn names(scale: &Scale, length_px: f64) -> Vec<String> {
        let ticks = scale.ticks_along(length_px / 12.0).into_iter();
        ticks.map(|tick| tick.name.replace('\u{A0}', " ")).collect()
    }

    #[test]
    fn values_of_one_size_begin_at_zero() {
        let scale = Scale::fitting(Quantity::Rate, &[5e6, 17e6].map(exact));
        assert!(!scale.is_log);
        assert_eq!(
            names(&scale, 600.0),
            ["0/s", "5 M/s", "10 M/s", "15 M/s", "20 M/s"]
                .map(|it| it.trim_end_matches("/s").to_owned())
        );
        assert!((scale.at(10e6) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn values_far_apart_have_a_logarithmic_axis() {
        let scale = Scale::fitting(Quantity::Time, &[50.0, 80_000.0].map(exact));
        assert!(scale.is_log);
        assert_eq!(names(&scale, 300.0), ["100 ns", "1 µs", "10 µs", "100 µs"]);
        assert!(scale.at(50.0) > 0.0 && scale.at(80_000.0) < 1.0);
    }

    #[test]
    fn an_endless_interval_does_not_stretch_the_axis() {
        let wild = Reading { value: 10.0, interval: Some((1e-9, f64::INFINITY)) };
        assert!(Scale::fitting(Quantity::Time, &[wild]).holds(10.0));
        assert!(!Scale::fitting(Quantity::Time, &[wild]).holds(100.0));
        assert!(!Scale::log(Quantity::Time, &[wild]).holds(100.0));
    }

    #[test]
    fn nothing_and_zero_have_an_axis() {
        assert!(Scale::fitting(Quantity::Count, &[]).holds(0.5));
        assert!(Scale::fitting(Quantity::Share, &[exact(0.0)]).holds(0.0));
        assert!(Scale::log(Quantity::Time, &[]).holds(5.0));
    }
}
