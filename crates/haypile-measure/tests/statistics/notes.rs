//! Rates of notes where there is something to find, and where there is nothing.

use haypile_measure::statistics::{Note, Turn};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::error_rates::normal;

const SERIES: usize = 2_000;
const BLOCKS: usize = 20;
/// Subjects that are measured in the same blocks, in random order.
const SUBJECTS: usize = 6;
/// The subject after which others are slower.
const TROUBLING: usize = 1;

/// Subjects with a known distribution.
#[derive(Clone, Copy, Debug)]
enum Truth {
    /// Normal noise with this standard deviation.
    Plain(f64),
    /// Disturbances that only slow down, by 5 % or so.
    OneSided,
    /// 15 % of the samples take five times as long.
    Tail15,
    /// Half of the samples take half as much again.
    Bimodal50,
    /// Each sample takes 2 % of the first one more.
    Drift2,
    /// The first sample takes 20 times as long.
    First20,
    /// Takes 30 % more after one of the other subjects.
    After,
}

/// Costs of blocks, with whoever came before.
fn series(truth: Truth, random: &mut ChaCha8Rng) -> Vec<Turn> {
    let mut last = None;
    let mut turns = Vec::new();
    for block in 0..BLOCKS {
        let mut order: Vec<usize> = (0..SUBJECTS).collect();
        for at in (1..SUBJECTS).rev() {
            order.swap(at, random.random_range(0..=at));
        }
        for subject in order {
            let predecessor = last.replace(subject);
            if subject == 0 {
                let cost = cost(truth, block, predecessor, random);
                turns.push(Turn { cost, predecessor, is_excused: false });
            }
        }
    }
    turns
}

fn cost(truth: Truth, block: usize, predecessor: Option<usize>, random: &mut ChaCha8Rng) -> f64 {
    let noise = |deviation: f64, random: &mut ChaCha8Rng| (deviation * normal(random)).exp();
    let factor = match truth {
        Truth::Plain(deviation) => return 100.0 * noise(deviation, random),
        Truth::OneSided => return 100.0 * (0.05 * normal(random).abs()).exp(),
        Truth::Tail15 if random.random_bool(0.15) => 5.0,
        Truth::Bimodal50 if random.random_bool(0.5) => 1.5,
        Truth::Drift2 => 1.0 + 0.02 * block as f64,
        Truth::First20 if block == 0 => 20.0,
        Truth::After if predecessor == Some(TROUBLING) => 1.3,
        _ => 1.0,
    };
    100.0 * factor * noise(0.01, random)
}

/// Whether a note counts.
type Counts<'a> = &'a dyn Fn(&Note) -> bool;

/// The series, of 100, with a note that counts.
fn rate(truth: Truth, counts: Counts<'_>) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(37);
    let noted =
        (0..SERIES).filter(|_| Note::of(&series(truth, &mut random)).iter().any(counts)).count();
    100.0 * noted as f64 / SERIES as f64
}

/// Of 100 reports with 24 rows each, at most 5 have any note.
#[test]
fn plain_noise_has_no_notes() {
    const ROWS: i32 = 24;
    for truth in [
        Truth::Plain(0.001),
        Truth::Plain(0.01),
        Truth::Plain(0.03),
        Truth::Plain(0.1),
        Truth::OneSided,
    ] {
        let rate = rate(truth, &|_| true);
        let reports = 100.0 * (1.0 - (1.0 - rate / 100.0).powi(ROWS));
        println!("{truth:?}: {rate} of 100 rows, {reports:.1} of 100 reports have a note");
        assert!(reports <= 5.0, "{truth:?}: {reports} of 100 reports");
    }
}

#[test]
fn whatever_a_centre_hides_is_noted() {
    let slow = |note: &Note| {
        matches!(note, Note::Slow { .. } | Note::TwoSpeeds { .. } | Note::First { .. })
    };
    let trend = |note: &Note| matches!(note, Note::Trend { .. });
    let first = |note: &Note| matches!(note, Note::First { .. });
    let after = |note: &Note| matches!(note, Note::After { predecessor: TROUBLING, .. });
    let any = |_: &Note| true;
    let wanted: [(Truth, Counts<'_>, f64); 6] = [
        // 3.9 % of these have no slow sample at all.
        (Truth::Tail15, &any, 95.0),
        (Truth::Bimodal50, &slow, 95.0),
        (Truth::Drift2, &trend, 95.0),
        (Truth::First20, &first, 95.0),
        // It follows on the other one in a sixth of the blocks: in an eighth of the series once or never.
        (Truth::After, &after, 80.0),
        (Truth::After, &any, 95.0),
    ];
    for (truth, counts, least) in wanted {
        let rate = rate(truth, counts);
        println!("{truth:?}: {rate} of 100 are noted");
        assert!(rate >= least, "{truth:?}: {rate}");
    }
}
