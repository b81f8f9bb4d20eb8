//! Ratios of sums, for claims such as "less time": a ratio of sums of times, and not a mean of ratios.

use super::effect::{Effect, EffectError, logarithm};

impl Effect {
    /// Compares sums of costs: each pair has the old and the new sum of one cluster of samples that depend on each
    /// other, such as the loads of one page. The effect is the sum of all new ones over the sum of all old ones.
    /// Nothing is trimmed, so that it says by how much the total changed.
    ///
    /// The order of the clusters makes no difference. All sums have to be finite and above 0. A single
    /// cluster has no interval.
    pub fn of_sums(clusters: &[(f64, f64)]) -> Result<Self, EffectError> {
        for &(old, new) in clusters {
            logarithm(old)?;
            logarithm(new)?;
        }
        if clusters.is_empty() {
            return Err(EffectError::Empty { old: 0, new: 0 });
        }
        // A sum of floats depends on the order of its parts.
        let mut ordered = clusters.to_vec();
        sort(&mut ordered);
        let (old, new) = sums(&ordered);
        // Finite numbers may have a sum that is not.
        let log_ratio = logarithm(new)? - logarithm(old)?;
        let (squared_error, freedom) = jackknife(&ordered, (old, new));
        Ok(Self::new(log_ratio, squared_error, freedom, clusters.len()))
    }
}

fn sort(pairs: &mut [(f64, f64)]) {
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
}

fn sums(clusters: &[(f64, f64)]) -> (f64, f64) {
    clusters.iter().copied().fold((0.0, 0.0), add)
}

fn add(sum: (f64, f64), pair: (f64, f64)) -> (f64, f64) {
    (sum.0 + pair.0, sum.1 + pair.1)
}

/// Returns the squared error of the logarithm of a ratio of sums, by the jackknife: from the ratios without each
/// of the clusters (Efron and Stein 1981); and its degrees of freedom, which are those of as many equal
/// clusters as weigh the same (Kish 1965): a single heavy cluster leaves few.
fn jackknife(clusters: &[(f64, f64)], (old, new): (f64, f64)) -> (Option<f64>, f64) {
    if clusters.len() < 2 {
        return (None, 0.0);
    }
    // From the sums before each cluster and after it: the sum of all less a cluster that is nearly all of it
    // would be rounding errors.
    let mut before = vec![(0.0, 0.0); clusters.len()];
    for i in 1..clusters.len() {
        before[i] = add(before[i - 1], clusters[i - 1]);
    }
    let mut after = (0.0, 0.0);
    let mut without = Vec::with_capacity(clusters.len());
    for (&before, &cluster) in before.iter().zip(clusters).rev() {
        let others = add(before, after);
        without.push(f64::ln(others.1) - f64::ln(others.0));
        after = add(after, cluster);
    }
    let count = clusters.len() as f64;
    let mean = without.iter().sum::<f64>() / count;
    let squares: f64 = without.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    // Of both sides alike: old and new can change places.
    let weight = |one: &(f64, f64)| f64::midpoint(one.0 / old, one.1 / new);
    let weights: f64 = clusters.iter().map(|one| weight(one).powi(2)).sum();
    (Some(squares * (count - 1.0) / count), (1.0 / weights - 1.0).max(1.0))
}
