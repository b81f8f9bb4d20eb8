//! Rates of wrong verdicts under the noise of machines.
//!
//! `scripts/study-intervals` compares other methods under the same noise. Every draw is seeded, so
//! that the counts are always the same.

use haypile_measure::statistics::{Effect, Rule, Verdict};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const COMPARISONS: usize = 2_000;
const SLOWDOWN: f64 = 1.03;

/// The disturbance of samples. Each is a factor around 1 on the time of one sample.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// A standard deviation of 3 %.
    Normal,
    /// A standard deviation of 1.5 %, and every tenth sample 10 to 60 % slower.
    Outliers,
    /// A long tail: logarithms that are log-normal themselves, with a median of 3 %.
    Skewed,
    /// A neighbour that works for about ten samples at up to 30 %, and then rests for thirty; in
    /// addition the machine drifts by 1 % from sample to sample.
    Bursts,
}

/// The state that lasts from one sample to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    is_disturbed: bool,
    drift: f64,
}

pub(crate) fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (a, b): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// The logarithm of the factor on the next sample.
fn disturb(noise: Noise, machine: &mut Machine, random: &mut ChaCha8Rng) -> f64 {
    match noise {
        Noise::Normal => 0.03 * normal(random),
        Noise::Outliers => {
            let outlier =
                if random.random_bool(0.1) { random.random_range(0.1..0.47) } else { 0.0 };
            0.015 * normal(random) + outlier
        }
        Noise::Skewed => 0.03 * normal(random).exp(),
        Noise::Bursts => {
            let change = if machine.is_disturbed { 0.1 } else { 0.033 };
            machine.is_disturbed ^= random.random_bool(change);
            machine.drift += 0.01 * normal(random);
            let neighbour = if machine.is_disturbed { random.random_range(0.0..0.26) } else { 0.0 };
            0.015 * normal(random) + machine.drift + neighbour
        }
    }
}

/// One comparison: in each block both sides run, in random order.
fn comparison(noise: Noise, blocks: usize, slowdown: f64, random: &mut ChaCha8Rng) -> Effect {
    let mut machine = Machine::default();
    let pairs: Vec<(f64, f64)> = (0..blocks)
        .map(|_| {
            let first = 100.0 * disturb(noise, &mut machine, random).exp();
            let second = 100.0 * disturb(noise, &mut machine, random).exp();
            let (old, new) = if random.random() { (first, second) } else { (second, first) };
            (old, new * slowdown)
        })
        .collect();
    Effect::paired(&pairs).unwrap()
}

/// The number of comparisons, of 100, that have this verdict, or another one.
fn rate(noise: Noise, blocks: usize, slowdown: f64, is_counted: fn(Verdict) -> bool) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(20_261_121);
    let rule = Rule::default();
    let counted = (0..COMPARISONS)
        .filter(|_| is_counted(rule.judge(&comparison(noise, blocks, slowdown, &mut random))))
        .count();
    100.0 * counted as f64 / COMPARISONS as f64
}

#[test]
fn a_thing_compared_with_itself_hardly_ever_differs() {
    for noise in [Noise::Normal, Noise::Outliers, Noise::Skewed, Noise::Bursts] {
        for blocks in [4, 5, 10, 20, 40] {
            let wrong = rate(noise, blocks, 1.0, |verdict| verdict != Verdict::NoDifference);
            println!("{noise:?}, {blocks} blocks: {wrong} of 100 verdicts are wrong");
            assert!(wrong <= 2.0, "{noise:?}, {blocks} blocks: {wrong} of 100 are wrong");
        }
    }
}

#[test]
fn a_slowdown_of_three_percent_is_found_in_forty_blocks() {
    for (noise, least) in [
        (Noise::Normal, 85.0),
        (Noise::Outliers, 95.0),
        (Noise::Skewed, 75.0),
        (Noise::Bursts, 85.0),
    ] {
        let found = rate(noise, 40, SLOWDOWN, |verdict| verdict == Verdict::Slower);
        let half = rate(noise, 20, SLOWDOWN, |verdict| verdict == Verdict::Slower);
        println!("{noise:?}: found by {found} of 100 with 40 blocks, by {half} with 20");
        assert!(found >= least, "{noise:?}: found by {found} of 100");
        assert_eq!(rate(noise, 40, SLOWDOWN, |verdict| verdict == Verdict::Faster), 0.0);
    }
}

/// Times of a thing of which 15 of 100 samples take five times as long, with noise of 1 %.
fn tail(random: &mut ChaCha8Rng) -> f64 {
    let factor = if random.random_bool(0.15) { 5.0 } else { 1.0 };
    100.0 * factor * (0.01 * normal(random)).exp()
}

/// The checks, of 100, of the centre and of the mean that find new slower.
fn gate(blocks: usize, is_old_tailed: bool) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(20_261_127);
    let failed = (0..COMPARISONS)
        .filter(|_| {
            let old = |random: &mut ChaCha8Rng| {
                if is_old_tailed { tail(random) } else { 100.0 * (0.01 * normal(random)).exp() }
            };
            let pairs: Vec<(f64, f64)> =
                (0..blocks).map(|_| (old(&mut random), tail(&mut random))).collect();
            let effects = [Effect::paired(&pairs).unwrap(), Effect::of_sums(&pairs).unwrap()];
            effects
                .iter()
                .any(|effect| effect.p_value() < Rule::SIGNIFICANCE && effect.change() > 0.03)
        })
        .count();
    100.0 * failed as f64 / COMPARISONS as f64
}

/// Of a tail that both sides have, the check is wrong in hardly any; one that is new it finds, with enough blocks:
/// three slow samples of 20 come by chance in 1 of 9 cases where both sides have as many.
#[test]
fn a_tail_is_found_by_the_mean() {
    for blocks in [4, 10, 20, 40, 60, 80] {
        let (wrong, found) = (gate(blocks, true), gate(blocks, false));
        println!("{blocks} blocks: {wrong} of 100 equal tails fail, {found} of 100 new ones do");
        assert!(wrong <= 2.0, "{blocks} blocks: {wrong}");
    }
    assert!(gate(80, false) >= 95.0);
}

/// The interval keeps its word: the truth lies in 95 of 100.
#[test]
fn intervals_hold_the_truth() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for noise in [Noise::Normal, Noise::Outliers, Noise::Skewed, Noise::Bursts] {
        for blocks in [10, 20, 40] {
            let held = (0..COMPARISONS)
                .filter(|_| {
                    let effect = comparison(noise, blocks, SLOWDOWN, &mut random);
                    let interval = effect.interval().unwrap();
                    (interval.low..interval.high).contains(&(SLOWDOWN - 1.0))
                })
                .count();
            let held = 100.0 * held as f64 / COMPARISONS as f64;
            println!("{noise:?}, {blocks} blocks: the interval holds the truth in {held} of 100");
            // 95, less what trimming costs with few blocks, less three errors of 2,000 draws.
            assert!(held >= 93.0, "{noise:?}, {blocks} blocks: {held} of 100");
        }
    }
}

/// Pages of a site: their times without a cache, and the parts of these that are left with one.
/// `weights` and `parts` are standard deviations of logarithms.
fn site(pages: usize, weights: f64, parts: f64, random: &mut ChaCha8Rng) -> Vec<(f64, f64)> {
    let page = |_| {
        let old = (weights * normal(random)).exp();
        (old, old * 0.3 * (parts * normal(random)).exp())
    };
    (0..pages).map(page).collect()
}

/// The interval of a ratio of sums holds the ratio of all pages that there could be in about 95 of 100,
/// even where a few heavy pages make up most of the time.
#[test]
fn intervals_of_sums_hold_the_truth() {
    let mut random = ChaCha8Rng::seed_from_u64(36);
    for (weights, parts) in [(0.3, 0.3), (0.8, 0.5), (1.2, 0.5)] {
        // The mean of a log-normal part.
        let truth = 0.3 * (f64::powi(parts, 2) / 2.0).exp() - 1.0;
        for pages in [2, 4, 12, 20, 100] {
            let held = (0..COMPARISONS)
                .filter(|_| {
                    let effect = Effect::of_sums(&site(pages, weights, parts, &mut random));
                    let interval = effect.unwrap().interval().unwrap();
                    (interval.low..interval.high).contains(&truth)
                })
                .count();
            let held = 100.0 * held as f64 / COMPARISONS as f64;
            println!("{weights}, {parts}, {pages} pages: the interval holds the truth in {held}");
            assert!(held >= 93.0, "{weights}, {parts}, {pages} pages: {held} of 100");
        }
    }
}

/// Blocks in which all pages of a site are loaded, without a cache and with it: within a block, the loads of a column
/// share a disturbance, and each has noise of its own. The clusters are blocks, with the sums over all pages.
#[test]
fn intervals_of_blocks_hold_the_truth() {
    let mut random = ChaCha8Rng::seed_from_u64(37);
    for (shared, noise) in [(0.0, 0.03), (0.03, 0.03), (0.05, 0.2)] {
        for (pages, blocks) in [(1, 2), (12, 2), (12, 5), (40, 3), (4, 20)] {
            let held = (0..COMPARISONS)
                .filter(|_| {
                    let site = site(pages, 0.8, 0.5, &mut random);
                    let sum = |sum: (f64, f64), it: &(f64, f64)| (sum.0 + it.0, sum.1 + it.1);
                    let total = site.iter().fold((0.0, 0.0), sum);
                    let mut block = || {
                        let both = [0, 1].map(|_| (shared * normal(&mut random)).exp());
                        let mut load = |time: f64| time * (noise * normal(&mut random)).exp();
                        let loads: Vec<(f64, f64)> = site
                            .iter()
                            .map(|page| (both[0] * load(page.0), both[1] * load(page.1)))
                            .collect();
                        loads.iter().fold((0.0, 0.0), sum)
                    };
                    let clusters: Vec<(f64, f64)> = (0..blocks).map(|_| block()).collect();
                    let interval = Effect::of_sums(&clusters).unwrap().interval().unwrap();
                    (interval.low..interval.high).contains(&(total.1 / total.0 - 1.0))
                })
                .count();
            let held = 100.0 * held as f64 / COMPARISONS as f64;
            println!(
                "{shared}, {noise}, {pages} pages, {blocks} blocks: holds the truth in {held}"
            );
            assert!(held >= 93.0, "{shared}, {noise}, {pages} pages, {blocks} blocks: {held}");
        }
    }
}
