//! The cost of kills in hits: the hit ratio compared with those of the same runs without kills.

/// The number of control runs that are compared with each other, to find out how much chance alone
/// changes the hit ratio.
pub(super) const COMPARED: u64 = 2;

/// The hit ratios of control runs of a torture case, in which no process is killed.
#[derive(Debug, Default)]
pub(super) struct Controls(Vec<f64>);

impl Controls {
    /// Adds the hit ratio of another control run; `None` if the run read nothing.
    pub(super) fn add(&mut self, ratio: Option<f64>) {
        self.0.extend(ratio);
    }

    /// The lowest and the highest.
    fn ends(&self) -> Option<(f64, f64)> {
        let low = self.0.iter().copied().reduce(f64::min)?;
        Some((low, self.0.iter().copied().reduce(f64::max)?))
    }

    /// Returns a finding if kills of processes cost hits: the hit ratio is lower than the lowest of
    /// the control runs (without kills) by more than `tolerance` plus the range of the control
    /// runs. A higher ratio is not an error.
    pub(super) fn judge(&self, ratio: Option<f64>, tolerance: f64) -> Option<String> {
        let ((low, high), ratio) = (self.ends()?, ratio?);
        let least = low - tolerance - (high - low);
        (ratio < least).then(|| {
            let [ratio, low, high, least] = [ratio, low, high, least].map(|part| part * 100.0);
            format!(
                "the hit ratio is {ratio:.2} %, and {low:.2} % to {high:.2} % without kills; at \
                 least {least:.2} % was due"
            )
        })
    }

    /// Returns the hit ratios, with and without kills, as named counts of a result row, in
    /// millionths.
    pub(super) fn counts(&self, ratio: Option<f64>) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.ends().zip(ratio).map(|((low, high), ratio)| {
            [("hits_ppm", ratio), ("control_low_ppm", low), ("control_high_ppm", high)]
        });
        counts.into_iter().flatten().map(|(name, ratio)| (name, millionths(ratio)))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of 1 is neither negative nor large"
)]
fn millionths(ratio: f64) -> u64 {
    (ratio * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controls(ratios: &[f64]) -> Controls {
        let mut controls = Controls::default();
        for &ratio in ratios {
            controls.add(Some(ratio));
        }
        controls
    }

    #[test]
    fn only_what_is_lower_is_an_error() {
        let controls = controls(&[0.5, 0.5]);
        for good in [0.491, 0.5, 0.52, 1.0] {
            assert_eq!(controls.judge(Some(good), 0.01), None, "{good}");
        }
        let error = controls.judge(Some(0.489), 0.01).expect("too low");
        assert_eq!(
            error,
            "the hit ratio is 48.90 %, and 50.00 % to 50.00 % without kills; at least 49.00 % was \
             due"
        );
    }

    #[test]
    fn what_controls_differ_by_is_chance() {
        let controls = controls(&[0.52, 0.5]);
        assert_eq!(controls.judge(Some(0.471), 0.01), None);
        assert!(controls.judge(Some(0.469), 0.01).is_some());
        let counts: Vec<_> = controls.counts(Some(0.47)).collect();
        let due =
            [("hits_ppm", 470_000), ("control_low_ppm", 500_000), ("control_high_ppm", 520_000)];
        assert_eq!(counts, due);
    }

    #[test]
    fn nothing_is_said_where_nothing_was_read() {
        assert_eq!(controls(&[]).judge(Some(0.1), 0.01), None);
        assert_eq!(controls(&[0.5]).judge(None, 0.01), None);
        assert_eq!(controls(&[]).counts(Some(0.1)).count(), 0);
    }
}
