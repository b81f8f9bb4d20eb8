//! Laws that hold for any samples.

use haypile_measure::compare::{Comparison, Outcome, compare};
use haypile_measure::result::Sample;
use haypile_measure::statistics::Effect;
use proptest::prelude::*;

use crate::samples::{failed, question, sample};

/// Samples of a few subjects, runs and blocks; some are errors, some have no time.
fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let one = (0..3_usize, 0..2_usize, 0..6_u64, 0..200_u64, prop::bool::weighted(0.1));
    let one = one.prop_map(|(subject, run, block, cpu_ns, is_error)| {
        let sample = sample(["a", "b", "c"][subject], ["r", "s"][run], block, cpu_ns);
        if is_error { failed(sample) } else { sample }
    });
    prop::collection::vec(one, 1..60)
}

/// A row's subject, outcome, logarithm of the ratio and p-value, in numbers that rounding does not
/// touch.
type Told = (String, &'static str, Option<[[i64; 2]; 2]>);

/// The rows, sorted by subject.
fn rows(comparison: &Comparison) -> Vec<Told> {
    let mut rows: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| {
            let numbers = match row.outcome {
                Outcome::Judged { difference, .. } => {
                    #[expect(clippy::cast_possible_truncation, reason = "logarithms")]
                    let rounded = |number: f64| (number * 1e9).round() as i64;
                    let of = |effect: Effect| [effect.ratio().ln(), effect.p_value()].map(rounded);
                    Some([of(difference.centre), of(difference.mean)])
                }
                _ => None,
            };
            (row.old.subject.clone(), row.outcome.name(), numbers)
        })
        .collect();
    rows.sort();
    rows
}

proptest! {
    #[test]
    fn the_order_of_samples_changes_nothing(
        old in samples(),
        (new, shuffled) in samples().prop_flat_map(|new| (Just(new.clone()), Just(new).prop_shuffle()))
    ) {
        match (compare(&old, &new, &question()), compare(&old, &shuffled, &question())) {
            (Ok(one), Ok(other)) => prop_assert_eq!(rows(&one), rows(&other)),
            (one, other) => prop_assert_eq!(one.is_err(), other.is_err()),
        }
    }

    #[test]
    fn scaling_both_sides_changes_nothing(old in samples(), new in samples(), factor in 2..1000_u64) {
        let scale = |samples: &[Sample]| -> Vec<Sample> {
            let scale = |sample: &Sample| Sample { cpu_ns: sample.cpu_ns * factor, ..sample.clone() };
            samples.iter().map(scale).collect()
        };
        match (compare(&old, &new, &question()), compare(&scale(&old), &scale(&new), &question())) {
            (Ok(one), Ok(other)) => prop_assert_eq!(rows(&one), rows(&other)),
            (one, other) => prop_assert_eq!(one.is_err(), other.is_err()),
        }
    }

    #[test]
    fn swapping_old_and_new_inverts(old in samples(), new in samples()) {
        let (Ok(there), Ok(back)) =
            (compare(&old, &new, &question()), compare(&new, &old, &question()))
        else {
            return Ok(());
        };
        let inverse = |name| match name {
            "faster" => "slower",
            "slower" => "faster",
            "faster-on-average" => "slower-on-average",
            "slower-on-average" => "faster-on-average",
            // What fails is told of new alone.
            "failed" => "not-measured",
            name => name,
        };
        for (there, back) in rows(&there).into_iter().zip(rows(&back)) {
            prop_assert_eq!(&there.0, &back.0);
            prop_assert_eq!(there.2.map(|both| both.map(|[log, p]| [-log, p])), back.2);
            prop_assert!(there.1 == inverse(back.1) || back.1 == inverse(there.1));
        }
    }

    /// Every subject of both sides is a row; whatever is written of it is JSON.
    #[test]
    fn nothing_is_lost(old in samples(), new in samples()) {
        let Ok(comparison) = compare(&old, &new, &question()) else { return Ok(()) };
        let has = |samples: &[Sample], name: &str| samples.iter().any(|it| it.subject.name == name);
        let both = ["a", "b", "c"].into_iter().filter(|name| has(&old, name) && has(&new, name));
        prop_assert_eq!(comparison.rows.len(), both.count());
        let text = comparison.to_json().to_string();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}
