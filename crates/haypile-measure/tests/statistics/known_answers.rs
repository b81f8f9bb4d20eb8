//! Answers of SciPy 1.17.1 (Python 3.11, NumPy 2.4.6), computed with
//!
//! ```python
//! import numpy as np
//! from scipy import stats
//! r = stats.ttest_ind(np.log(new), np.log(old), equal_var=False, trim=0.2)        # unpaired
//! r = stats.ttest_ind(np.log(new) - np.log(old), np.zeros(12), equal_var=False, trim=0.2)  # paired
//! r.pvalue; np.expm1(r.confidence_interval())
//! np.expm1(stats.trim_mean(np.log(new), 0.2) - stats.trim_mean(np.log(old), 0.2))
//! ```
//!
//! Zeros have no variance, so that the paired form is the test of one sample.

use haypile_measure::statistics::Effect;

const OLD: [f64; 12] =
    [102.1, 99.8, 101.5, 98.7, 100.4, 155.0, 100.9, 99.1, 101.2, 100.0, 97.9, 103.3];
const NEW: [f64; 12] =
    [104.9, 103.1, 105.2, 101.0, 103.8, 104.4, 103.2, 180.5, 104.6, 102.7, 101.4, 106.0];

#[track_caller]
fn assert_effect(effect: &Effect, change: f64, low: f64, high: f64, p_value: f64) {
    let interval = effect.interval().unwrap();
    for (ours, known) in [
        (effect.change(), change),
        (interval.low, low),
        (interval.high, high),
        (effect.p_value(), p_value),
    ] {
        assert!((ours / known - 1.0).abs() < 1e-9, "{ours} is not {known}");
    }
}

fn pairs(count: usize) -> Vec<(f64, f64)> {
    OLD.into_iter().zip(NEW).take(count).collect()
}

#[test]
fn paired_effects_are_those_of_scipy() {
    let effect = Effect::paired(&pairs(12)).unwrap();
    assert_effect(
        &effect,
        0.030_008_999_562_826_086,
        0.024_535_990_546_972_305,
        0.035_511_245_060_330_085,
        3.480_728_993_327_425e-6,
    );
    // Nothing is trimmed from four.
    let effect = Effect::paired(&pairs(4)).unwrap();
    assert_effect(
        &effect,
        0.030_049_147_930_139_262,
        0.020_787_541_391_811_25,
        0.039_394_785_035_252_844,
        0.001_880_210_788_036_446_6,
    );
}

/// By hand: 60 of 100 are left, 0.6. Without the first page 20 of 40 are left, without the second 40 of
/// 60; the logarithms of these are ln 4/3 apart, and the error is a half of that. The pages weigh as 60
/// and 40, which is 1.92 equal ones: a single degree of freedom, at least.
#[test]
fn a_ratio_of_sums_is_the_one_by_hand() {
    let effect = Effect::of_sums(&[(60.0, 40.0), (40.0, 20.0)]).unwrap();
    let quantile = 12.706_204_736_174_694;
    let margin = quantile * (4.0_f64 / 3.0).ln() / 2.0;
    let interval = effect.interval().unwrap();
    for (ours, known) in [
        (effect.change(), -0.4),
        (interval.low, 0.6 * (-margin).exp() - 1.0),
        (interval.high, 0.6 * margin.exp() - 1.0),
    ] {
        assert!((ours / known - 1.0).abs() < 1e-6, "{ours} is not {known}");
    }
    assert_eq!(Effect::of_sums(&[(100.0, 60.0)]).unwrap().interval(), None);
}

/// `old[:9]` against all of `new`.
#[test]
fn unpaired_effects_are_those_of_scipy() {
    let effect = Effect::unpaired(&OLD[..9], &NEW).unwrap();
    assert_effect(
        &effect,
        0.032_510_725_807_151_24,
        0.017_473_726_816_590_603,
        0.047_769_952_981_774_735,
        0.000_435_675_494_926_734_4,
    );
}

/// The interval of `n` pairs, half of which doubled and half of which halved, against
/// `stats.t.ppf(0.975, df)` times its standard error: with nothing trimmed, or with many pairs.
#[test]
fn intervals_have_the_quantiles_of_scipy() {
    for (pairs, freedom, quantile) in [
        (2, 1.0, 12.706_204_736_174_694),
        (4, 3.0, 3.182_446_305_283_707_8),
        (168, 101.0, 1.983_731_002_955_606),
        (1_668, 1_001.0, 1.962_336_705_280_879_8),
        (200_000, 119_999.0, 1.959_983_753_827_727_2),
    ] {
        let samples: Vec<(f64, f64)> =
            (0..pairs).map(|at| if at % 2 == 0 { (1.0, 2.0) } else { (2.0, 1.0) }).collect();
        let interval = Effect::paired(&samples).unwrap().interval().unwrap();
        let all = f64::from(pairs);
        let kept = freedom + 1.0;
        let standard_error = 2.0_f64.ln() * (all / (kept * freedom)).sqrt();
        let ours = interval.high.ln_1p() / standard_error;
        assert!((ours / quantile - 1.0).abs() < 2e-6, "{pairs} pairs: {ours} is not {quantile}");
    }
}
