//! Laws that hold for any samples.

use haypile_measure::statistics::{Effect, EffectError, Rule, RuleError, Summary, Verdict};
use proptest::prelude::*;

/// Times from 1 ns to 10 s, in nanoseconds.
fn sample() -> impl Strategy<Value = f64> {
    (0.0..10.0_f64).prop_map(|exponent| 10.0_f64.powf(exponent))
}

fn pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((sample(), sample()), 1..40)
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

fn same(a: &Effect, b: &Effect) -> bool {
    let ends = |effect: &Effect| effect.interval().map(|interval| (interval.low, interval.high));
    close(a.change(), b.change())
        && close(a.p_value(), b.p_value())
        && match (ends(a), ends(b)) {
            (Some(a), Some(b)) => close(a.0, b.0) && close(a.1, b.1),
            (a, b) => a == b,
        }
}

proptest! {
    #[test]
    fn the_order_of_pairs_changes_nothing(
        (pairs, shuffled) in pairs().prop_flat_map(|pairs| {
            (Just(pairs.clone()), Just(pairs).prop_shuffle())
        })
    ) {
        let (one, other) = (Effect::paired(&pairs).unwrap(), Effect::paired(&shuffled).unwrap());
        prop_assert_eq!(one, other);
    }

    #[test]
    fn scaling_both_sides_changes_nothing(pairs in pairs(), factor in 1e-6..1e6_f64) {
        let scaled: Vec<_> =
            pairs.iter().map(|(old, new)| (old * factor, new * factor)).collect();
        let (one, other) = (Effect::paired(&pairs).unwrap(), Effect::paired(&scaled).unwrap());
        prop_assert!(same(&one, &other), "{one:?} {other:?}");
        let (old, new): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let (scaled_old, scaled_new): (Vec<_>, Vec<_>) = scaled.into_iter().unzip();
        let one = Effect::unpaired(&old, &new).unwrap();
        let other = Effect::unpaired(&scaled_old, &scaled_new).unwrap();
        prop_assert!(same(&one, &other), "{one:?} {other:?}");
    }

    /// Scaling the new side alone scales the ratio, and moves nothing else.
    #[test]
    fn a_common_factor_is_found(pairs in pairs(), factor in 0.1..10.0_f64) {
        let slowed: Vec<_> = pairs.iter().map(|(old, new)| (*old, new * factor)).collect();
        let (one, other) = (Effect::paired(&pairs).unwrap(), Effect::paired(&slowed).unwrap());
        prop_assert!(close(one.ratio() * factor, other.ratio()), "{one:?} {other:?}");
    }

    #[test]
    fn swapping_old_and_new_inverts(pairs in pairs(), floor in 0.0..=1.0_f64) {
        let swapped: Vec<_> = pairs.iter().map(|(old, new)| (*new, *old)).collect();
        let rule = Rule::with_noise_floor(floor).unwrap();
        let (old, new): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        for (there, back) in [
            (Effect::paired(&pairs).unwrap(), Effect::paired(&swapped).unwrap()),
            (Effect::unpaired(&old, &new).unwrap(), Effect::unpaired(&new, &old).unwrap()),
        ] {
            prop_assert!(close(there.ratio() * back.ratio(), 1.0), "{there:?} {back:?}");
            prop_assert!(close(there.p_value(), back.p_value()), "{there:?} {back:?}");
            prop_assert_eq!(rule.judge(&there), rule.judge(&back).inverse());
        }
    }

    #[test]
    fn the_estimate_lies_in_its_interval(pairs in pairs()) {
        let effect = Effect::paired(&pairs).unwrap();
        prop_assert!((0.0..=1.0).contains(&effect.p_value()));
        match effect.interval() {
            None => prop_assert_eq!(pairs.len(), 1),
            Some(interval) => {
                prop_assert!(interval.low <= effect.change() && effect.change() <= interval.high);
                // Zero lies outside exactly where p is below 5 %.
                let outside = interval.low > 0.0 || interval.high < 0.0;
                prop_assert_eq!(outside, effect.p_value() < 0.05, "{:?}", effect);
            }
        }
    }

    /// A ratio of sums is what a person computes with a sum, whatever the clusters are.
    #[test]
    fn a_ratio_of_sums_is_that_of_all_samples(
        (pairs, shuffled) in pairs().prop_flat_map(|pairs| {
            (Just(pairs.clone()), Just(pairs).prop_shuffle())
        })
    ) {
        let old: f64 = pairs.iter().map(|pair| pair.0).sum();
        let new: f64 = pairs.iter().map(|pair| pair.1).sum();
        let effect = Effect::of_sums(&pairs).unwrap();
        prop_assert!(close(effect.ratio(), new / old), "{effect:?}");
        prop_assert_eq!(effect, Effect::of_sums(&shuffled).unwrap());
        prop_assert!(close(Effect::of_sums(&[(old, new)]).unwrap().ratio(), new / old));
        match effect.interval() {
            None => prop_assert_eq!(pairs.len(), 1),
            Some(interval) => prop_assert!(
                interval.low <= effect.change() && effect.change() <= interval.high
            ),
        }
    }

    /// Against the definition: half of the samples lie on either side.
    #[test]
    fn medians_are_in_the_middle(samples in prop::collection::vec(-1e6..1e6_f64, 1..50)) {
        let summary = Summary::of(&samples).unwrap();
        let below = samples.iter().filter(|&&sample| sample < summary.median).count();
        let above = samples.iter().filter(|&&sample| sample > summary.median).count();
        prop_assert!(2 * below <= samples.len() && 2 * above <= samples.len());
        let near = |&&sample: &&f64| (sample - summary.median).abs() < summary.mad - 1e-6;
        prop_assert!(2 * samples.iter().filter(near).count() <= samples.len());
        prop_assert!(summary.min <= summary.median && summary.median <= summary.max);
    }

    #[test]
    fn any_numbers_are_an_answer_or_an_error(
        pairs in prop::collection::vec((any::<f64>(), any::<f64>()), 0..8)
    ) {
        let (old, new): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let effects =
            [Effect::paired(&pairs), Effect::unpaired(&old, &new), Effect::of_sums(&pairs)];
        for effect in effects.into_iter().flatten() {
            prop_assert!(!effect.change().is_nan() && !effect.p_value().is_nan());
            let interval = effect.interval();
            prop_assert!(interval.is_none_or(|ends| !ends.low.is_nan() && !ends.high.is_nan()));
        }
    }
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    assert_eq!(Effect::paired(&[]), Err(EffectError::Empty { old: 0, new: 0 }));
    assert_eq!(Effect::unpaired(&[1.0], &[]), Err(EffectError::Empty { old: 1, new: 0 }));
    assert_eq!(Effect::of_sums(&[]), Err(EffectError::Empty { old: 0, new: 0 }));
    for sample in [0.0, -1.0, f64::INFINITY] {
        let error = Err(EffectError::NotPositive { sample });
        assert_eq!(Effect::paired(&[(1.0, 2.0), (sample, 1.0)]), error);
        assert_eq!(Effect::unpaired(&[1.0], &[sample]), error);
        assert_eq!(Effect::of_sums(&[(1.0, 2.0), (sample, 1.0)]), error);
    }
    assert!(Effect::paired(&[(1.0, f64::NAN)]).is_err());
    assert!(matches!(Rule::with_noise_floor(f64::NAN), Err(RuleError::NoiseFloor { .. })));
    assert!(Rule::with_noise_floor(-0.01).is_err());
}

#[test]
fn one_pair_shows_nothing() {
    let effect = Effect::paired(&[(1.0, 2.0)]).unwrap();
    assert_eq!((effect.change(), effect.interval(), effect.p_value()), (1.0, None, 1.0));
    assert_eq!(Rule::default().judge(&effect), Verdict::TooFew);
    assert_eq!(Rule::default().least_shown(&effect), None);
}

/// Figures of a fake clock.
#[test]
fn exact_figures_have_intervals_without_width() {
    let effect = |new| Effect::paired(&[(100.0, new); 4]).unwrap();
    let verdict = |new| Rule::default().judge(&effect(new));
    assert_eq!(effect(100.0).p_value(), 1.0);
    assert_eq!(verdict(100.0), Verdict::NoDifference);
    assert_eq!(verdict(103.0), Verdict::Slower);
    assert_eq!(verdict(97.0), Verdict::Faster);
    // Certain, and below the noise floor.
    assert_eq!(effect(100.9).p_value(), 0.0);
    assert_eq!(verdict(100.9), Verdict::NoDifference);
    assert_eq!(Rule::with_noise_floor(0.0).unwrap().judge(&effect(100.9)), Verdict::Slower);
}

/// An effect that a comparison says it would have shown, it shows; a little less it does not.
#[test]
fn the_least_effect_that_would_have_been_shown_is_the_border() {
    let noise = [0.97_f64, 0.99, 1.0, 1.01, 1.03, 1.0];
    let of = |factor: f64| {
        let pairs: Vec<(f64, f64)> =
            noise.iter().map(|noise| (100.0, 100.0 * noise * factor)).collect();
        Effect::paired(&pairs).unwrap()
    };
    let rule = Rule::default();
    let least = rule.least_shown(&of(1.0)).unwrap();
    assert!(least > 0.01, "{least}");
    let bias = of(1.0).ratio();
    assert_eq!(rule.judge(&of((1.0 + least * 1.02) / bias)), Verdict::Slower);
    assert_eq!(rule.judge(&of((1.0 + least * 0.98) / bias)), Verdict::NoDifference);
    // Below the noise floor nothing is.
    let exact = Effect::paired(&[(100.0, 100.0); 4]).unwrap();
    assert!((rule.least_shown(&exact).unwrap() - 0.01).abs() < 1e-9);
}
