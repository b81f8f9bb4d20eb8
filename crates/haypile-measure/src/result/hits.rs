//! Hit ratios of samples: the one definition for every table.

use super::samples::Samples;

/// The parameter with the bytes of the values of all requests, of which the bytes of hits are a share.
pub const REQUESTED_BYTES: &str = "requested_bytes";

/// The count with the bytes of the values of hits.
const HIT_BYTES: &str = "hit_bytes";

impl Samples<'_> {
    /// Returns the sum of hits over the sum of reads, from 0 to 1, of the samples without an error; `None`
    /// where nothing is read.
    pub fn hit_ratio(&self) -> Option<f64> {
        let good = || self.iter().filter(|sample| sample.error.is_none());
        let hits = good().fold(0, |sum, sample| sample.hits.saturating_add(sum));
        let misses = good().fold(0, |sum, sample| sample.misses.saturating_add(sum));
        share(hits, hits.saturating_add(misses))
    }

    /// Returns the sum of the bytes of hits over the sum of all requested bytes, from 0 to 1, of the samples
    /// without an error that have both; `None` where there are none.
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        let bytes = self.iter().filter(|sample| sample.error.is_none()).filter_map(|sample| {
            let requested = sample.parameters.get(REQUESTED_BYTES)?.as_f64()?;
            Some((*sample.counts.get(HIT_BYTES)?, requested))
        });
        let (hits, requested) =
            bytes.fold((0.0, 0.0), |sums: (f64, f64), one| (sums.0 + float(one.0), sums.1 + one.1));
        (requested > 0.0).then(|| hits / requested)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

fn float(count: u64) -> f64 {
    count as f64
}
