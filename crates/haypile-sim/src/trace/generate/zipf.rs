//! Zipf's law.

use super::random::Random;

/// A generator of random ranks from 1 to `ranks` by Zipf's law: the probability of rank `k` is proportional to
/// `k`^-`exponent`. It is exact and needs no table: Hörmann and Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions" (1996).
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    ranks: f64,
    exponent: f64,
    /// The integral of the density from below the first rank to above the last one.
    first: f64,
    last: f64,
    /// Distance above a rank's point within which no test is needed.
    squeeze: f64,
}

impl Zipf {
    /// Creates a Zipf generator for 1 to 2^48 ranks, and an exponent that is not negative.
    pub(super) fn new(ranks: u64, exponent: f64) -> Self {
        let mut zipf = Self { ranks: ranks as f64, exponent, first: 0.0, last: 0.0, squeeze: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.ranks + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Draws the next random rank, from 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a rank")]
    pub(super) fn next(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let point = self.inverse(area);
            let rank = libm::floor(point + 0.5).max(1.0).min(self.ranks);
            let accept = rank - point <= self.squeeze
                || area >= self.integral(rank + 0.5) - self.density(rank);
            if accept {
                return rank as u64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// (x^(1-e) - 1) / (1-e), which is ln x for the exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let ln = libm::log(x);
        let y = (1.0 - self.exponent) * ln;
        // The series keeps the digits that the difference near 0 would lose.
        let ratio = if y.abs() > 1e-8 { libm::expm1(y) / y } else { 1.0 + y / 2.0 };
        ratio * ln
    }

    fn inverse(&self, area: f64) -> f64 {
        // Rounding must not lead out of the logarithm's domain.
        let y = (area * (1.0 - self.exponent)).max(-1.0);
        let ratio = if y.abs() > 1e-8 { libm::log1p(y) / y } else { 1.0 - y / 2.0 };
        libm::exp(ratio * area)
    }
}
