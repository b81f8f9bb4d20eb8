//! Notes on facts about samples that their centre does not show.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::effect::Effect;
use super::mean::Mean;
use super::summary::middle;

/// The level of each kind of note: of 100 tables with 20 rows of equal and independent samples, about 1 has a
/// note by chance.
const LEVEL: f64 = 1e-4;
/// The fewest samples that have notes.
const FEWEST: usize = 4;
/// The fewest samples that have two speeds or a trend.
const FEWEST_OF_SHAPE: usize = 8;
/// Slow samples take at least this many times the centre.
const SLOW: f64 = 1.25;
/// Slow samples are this many deviations of normal noise above the middle.
const SLOW_DEVIATIONS: f64 = 8.0;
/// The least deviation that noise is taken to have: of a few samples, it can be nearly nothing by luck.
const LEAST_DEVIATION: f64 = 0.02;
/// From a median absolute deviation to a standard deviation of normal noise.
const NORMAL_MAD: f64 = 1.4826;
/// Other speeds, trends and predecessors make at least this difference.
const DIFFERENT: f64 = 1.1;
/// The means of two speeds are this many deviations of the samples within each apart. The halves of normal noise
/// are less than 3 apart, and of a few samples hardly ever 5.
const APART: f64 = 6.0;
/// A mean that is further above the centre than this has a note.
const MEAN_ABOVE: f64 = 1.05;
/// Notes on two clocks say the same up to this factor.
const ALIKE: f64 = 1.25;
/// Most samples of which a trend takes notice: it needs all pairs.
const MOST_OF_TREND: usize = 500;

/// A sample in the order of its run, with its cost, for finding notes such as a trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// The cost of the sample, such as a time; finite and above 0.
    pub cost: f64,
    /// The number of the subject (cache) that was measured right before this sample; `None` for the first sample of a
    /// run.
    pub predecessor: Option<usize>,
    /// Whether other work on the machine explains a cost of the sample far above the centre.
    pub is_excused: bool,
}

/// A note on a fact about samples that their centre does not show, such as a trend. Each kind has a smallest effect and
/// a significance level, so that independent noise hardly ever causes a note.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// The first sample took far longer than the others.
    First {
        /// The cost of the first sample over the centre of the others.
        times: f64,
    },
    /// Some samples took far longer than the rest.
    Slow {
        /// The number of slow samples.
        count: usize,
        /// The number of slow samples that other work on the machine explains.
        excused: usize,
        /// The cost of the slowest sample over the centre.
        times: f64,
    },
    /// The samples are of two kinds, with nothing between them.
    TwoSpeeds {
        /// The number of samples of the slower kind.
        slower: usize,
        /// The mean cost of the slower kind over that of the faster one.
        times: f64,
    },
    /// The cost grows or falls from sample to sample.
    Trend {
        /// The change over all samples, as a part: 0.3 is 30 % more.
        change: f64,
    },
    /// The cost is higher after one of the subjects.
    After {
        /// The subject that was measured before.
        predecessor: usize,
        /// The cost after it over the cost after others.
        times: f64,
    },
    /// The mean is far above the centre.
    Mean {
        /// The mean over the centre less 1: 0.3 is 30 % above it.
        change: f64,
    },
}

impl Note {
    /// Returns whether both notes (facts about samples) are of one kind, such as two trends.
    pub fn is_of_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Returns whether both notes (facts about samples) are of one kind, such as two trends, and their factors are
    /// within a quarter of each other.
    pub fn is_like(&self, other: &Self) -> bool {
        let is_close = (self.factor() / other.factor()).ln().abs() < ALIKE.ln();
        self.is_of_kind(other) && is_close
    }

    fn factor(&self) -> f64 {
        match *self {
            Self::First { times }
            | Self::Slow { times, .. }
            | Self::TwoSpeeds { times, .. }
            | Self::After { times, .. } => times,
            Self::Trend { change } | Self::Mean { change } => 1.0 + change,
        }
    }

    /// Finds the notes on a series of samples, such as a trend, in the order in which they were measured. Costs have to
    /// be finite and above 0; fewer than four samples have no notes.
    pub fn of(turns: &[Turn]) -> Vec<Self> {
        if turns.len() < FEWEST || !turns.iter().all(|it| it.cost.is_finite() && it.cost > 0.0) {
            return Vec::new();
        }
        let mut notes = Vec::new();
        notes.extend(first(turns));
        let turns = &turns[notes.len()..];
        let logs = logs(turns);
        notes.extend(trend(&logs));
        let after = after(turns, &logs);
        notes.extend(after);
        // What the predecessor explains is told once.
        let is_other = |turn: &&Turn| match after {
            Some(Self::After { predecessor, .. }) => turn.predecessor != Some(predecessor),
            _ => true,
        };
        let others: Vec<Turn> = turns.iter().filter(is_other).copied().collect();
        notes.extend(two_speeds(&others).or_else(|| slow(&others)));
        if notes.is_empty() {
            notes.extend(mean(turns, &logs));
        }
        notes
    }
}

/// Returns two logarithms: that of the centre of samples, as tables have it, and the one above which a sample is slow.
fn slow_above(logs: &[f64]) -> (f64, f64) {
    let middle = median(logs);
    let deviations: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
    let deviation = (NORMAL_MAD * median(&deviations)).max(LEAST_DEVIATION);
    (centre(logs), middle + SLOW.ln().max(SLOW_DEVIATIONS * deviation))
}

fn centre(logs: &[f64]) -> f64 {
    Mean::trimmed(logs).map_or(0.0, |trimmed| trimmed.value)
}

fn first(turns: &[Turn]) -> Option<Note> {
    let (first, others) = turns.split_first()?;
    let logs = logs(others);
    let (centre, limit) = slow_above(&logs);
    let log = first.cost.ln();
    let is_slow = log > limit && !first.is_excused;
    // Where others are as slow, the first is nothing special.
    let is_alone = logs.iter().all(|other| *other < limit);
    (is_slow && is_alone).then(|| Note::First { times: (log - centre).exp() })
}

fn slow(turns: &[Turn]) -> Option<Note> {
    let logs = logs(turns);
    let (centre, limit) = slow_above(&logs);
    let slow: Vec<_> = turns.iter().zip(&logs).filter(|(_, log)| **log > limit).collect();
    let most = slow.iter().map(|(_, log)| **log).reduce(f64::max)?;
    let excused = slow.iter().filter(|(turn, _)| turn.is_excused).count();
    Some(Note::Slow { count: slow.len(), excused, times: (most - centre).exp() })
}

/// Returns the note on samples of two kinds: those on each side of the widest gap that leaves a fifth on each side.
fn two_speeds(turns: &[Turn]) -> Option<Note> {
    let count = turns.len();
    if count < FEWEST_OF_SHAPE {
        return None;
    }
    let sorted = sorted(&logs(turns));
    let least = (count / 5).max(3);
    let gap = |at: &usize| sorted[*at] - sorted[*at - 1];
    let at = (least..=count - least).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (fast, slow) = sorted.split_at(at);
    let distance = average(slow) - average(fast);
    let within = ((squares(fast) + squares(slow)) / (count - 2) as f64).sqrt();
    let are_apart = distance > DIFFERENT.ln() && distance > APART * within;
    are_apart.then(|| Note::TwoSpeeds { slower: slow.len(), times: distance.exp() })
}

/// Returns the note on a trend: by Kendall's tau against the order of the samples, in its normal approximation with
/// ties (Kendall 1975), and with the change by the median of all slopes (Theil 1950, Sen 1968).
fn trend(logs: &[f64]) -> Option<Note> {
    if logs.len() < FEWEST_OF_SHAPE {
        return None;
    }
    let step = logs.len().div_ceil(MOST_OF_TREND);
    let logs: Vec<f64> = logs.iter().copied().step_by(step).collect();
    let count = logs.len() as f64;
    let mut score = 0.0;
    let mut slopes = Vec::with_capacity(logs.len() * logs.len() / 2);
    for (i, before) in logs.iter().enumerate() {
        for (distance, after) in (1_u32..).zip(&logs[i + 1..]) {
            let difference = after - before;
            slopes.push(difference / f64::from(distance));
            if difference != 0.0 {
                score += difference.signum();
            }
        }
    }
    let pairs = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0) / 18.0;
    let sorted = sorted(&logs);
    let tied: f64 =
        sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|chunk| pairs(chunk.len() as f64)).sum();
    let deviation = (pairs(count) - tied).sqrt();
    let change = median(&slopes) * (count - 1.0);
    let normal = Normal::standard();
    let p_value = 2.0 * normal.cdf(-(score.abs() - 1.0).max(0.0) / deviation);
    (p_value < LEVEL && change.abs() > DIFFERENT.ln())
        .then(|| Note::Trend { change: change.exp_m1() })
}

/// Returns the note on the subject after which samples take longest, by Student's t with a shared variance.
fn after(turns: &[Turn], logs: &[f64]) -> Option<Note> {
    let mut subjects: Vec<usize> = turns.iter().filter_map(|turn| turn.predecessor).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let mut most: Option<(usize, f64)> = None;
    for &subject in &subjects {
        let of = |is_after: bool| -> Vec<f64> {
            let known = turns.iter().zip(logs).filter(|(turn, _)| turn.predecessor.is_some());
            let chosen = known.filter(|(turn, _)| (turn.predecessor == Some(subject)) == is_after);
            chosen.map(|(_, log)| *log).collect()
        };
        let (own, others) = (of(true), of(false));
        if own.len() < 2 || others.len() < FEWEST {
            continue;
        }
        let difference = average(&own) - average(&others);
        let freedom = (own.len() + others.len() - 2) as f64;
        let parts = 1.0 / own.len() as f64 + 1.0 / others.len() as f64;
        let error = ((squares(&own) + squares(&others)) / freedom * parts).sqrt();
        let is_larger = most.is_none_or(|(_, largest)| difference > largest);
        let least = own.iter().copied().reduce(f64::min).unwrap_or(f64::MIN);
        // A few slow samples that happen to come after one subject do not count: all of its own have to be slow.
        let others_upper = sorted(&others)[others.len() * 4 / 5];
        let level = LEVEL / subjects.len() as f64;
        if difference > DIFFERENT.ln()
            && is_larger
            && least > others_upper
            && upper_tail(difference, error, freedom) < level
        {
            most = Some((subject, difference));
        }
    }
    most.map(|(predecessor, difference)| Note::After { predecessor, times: difference.exp() })
}

/// Returns the probability that noise alone is as large as this difference or larger.
fn upper_tail(difference: f64, error: f64, freedom: f64) -> f64 {
    if error == 0.0 {
        return if difference > 0.0 { 0.0 } else { 1.0 };
    }
    let student = StudentsT::new(0.0, 1.0, freedom).expect("the degrees of freedom are above 0");
    student.cdf(-difference / error)
}

fn mean(turns: &[Turn], logs: &[f64]) -> Option<Note> {
    let centre = centre(logs).exp();
    let costs: Vec<(f64, f64)> = turns.iter().map(|turn| (centre, turn.cost)).collect();
    let above = Effect::of_sums(&costs).ok()?;
    (above.ratio() > MEAN_ABOVE && above.p_value() < LEVEL)
        .then(|| Note::Mean { change: above.change() })
}

fn logs(turns: &[Turn]) -> Vec<f64> {
    turns.iter().map(|turn| turn.cost.ln()).collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn median(values: &[f64]) -> f64 {
    middle(&sorted(values))
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sum of the squared distances from the average.
fn squares(values: &[f64]) -> f64 {
    let average = average(values);
    values.iter().map(|value| (value - average).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(costs: &[f64]) -> Vec<Note> {
        let turn = |cost: &f64| Turn { cost: *cost, predecessor: None, is_excused: false };
        Note::of(&costs.iter().map(turn).collect::<Vec<_>>())
    }

    #[test]
    fn few_samples_and_what_is_no_cost_have_no_notes() {
        assert_eq!(notes(&[1.0, 1.0, 9.0]), []);
        assert_eq!(notes(&[1.0, 1.0, 1.0, 1.0, 0.0]), []);
        assert_eq!(notes(&[1.0, 1.0, 1.0, 1.0, f64::NAN]), []);
        assert_eq!(notes(&[1.0; 40]), []);
    }

    #[test]
    fn slow_samples_are_counted_with_those_that_are_excused() {
        let mut turns = vec![Turn { cost: 100.0, predecessor: None, is_excused: false }; 20];
        turns[3].cost = 500.0;
        turns[9] = Turn { cost: 250.0, is_excused: true, ..turns[9] };
        let [Note::Slow { count: 2, excused: 1, times }] = Note::of(&turns)[..] else {
            panic!("{:?}", Note::of(&turns));
        };
        assert!((times - 5.0).abs() < 1e-9);
    }

    #[test]
    fn the_first_sample_alone_may_be_slow() {
        let mut costs = [100.0; 10];
        costs[0] = 2000.0;
        let [Note::First { times }] = notes(&costs)[..] else { panic!("{:?}", notes(&costs)) };
        assert!((times - 20.0).abs() < 1e-9);
        costs[5] = 2000.0;
        assert!(matches!(notes(&costs)[..], [Note::Slow { count: 2, .. }]), "{:?}", notes(&costs));
    }

    #[test]
    fn a_trend_has_its_change_over_all_samples() {
        let costs: Vec<f64> = (0..1_000).map(|at| f64::exp(f64::from(at) / 999.0)).collect();
        let found = notes(&costs);
        let [Note::Trend { change }] = found[..] else { panic!("{found:?}") };
        assert!((change - (1_f64.exp() - 1.0)).abs() < 0.01, "{change}");
    }
}
