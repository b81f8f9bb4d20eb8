//! Hit ratios of `replay`, computed from samples.

use std::collections::BTreeMap;

use haypile_measure::figure::{BYTE_HIT_RATIO, HIT_RATIO};
use haypile_measure::result::{Sample, Samples};

use super::CAPACITY_PERCENT;

/// Hit ratios of a cache on a trace at one capacity, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratios {
    /// The share of the requested bytes that the cache answered: the byte hit ratio.
    pub bytes: f64,
    /// The share of the requests that the cache answered: the hit ratio.
    pub objects: f64,
}

/// The hit ratios of one cache on all replayed traces, for a row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayRow {
    /// Name of the cache whose hit ratios these are.
    pub subject: String,
    /// The hit ratios of the cache over all blocks together, for each pair of trace and capacity;
    /// `None` where nothing was measured.
    pub cases: Vec<Option<Ratios>>,
    /// The mean hit ratios of the cache over all traces and capacities; `None` if one of them is
    /// missing, because it would not be comparable.
    pub mean: Option<Ratios>,
}

/// Returns the traces and capacities of the samples, and a row of hit ratios for each cache, the
/// best byte hit ratio first.
pub fn ratios(samples: &[Sample]) -> (Vec<(String, f64)>, Vec<ReplayRow>) {
    let mut cases: Vec<(String, f64)> = Vec::new();
    let mut found: BTreeMap<&str, BTreeMap<usize, Samples<'_>>> = BTreeMap::new();
    for sample in samples {
        let number = |name: &str| sample.parameters.get(name).and_then(serde_json::Value::as_f64);
        let case = (sample.case.clone(), number(CAPACITY_PERCENT).unwrap_or(f64::NAN));
        let place = cases.iter().position(|other| *other == case).unwrap_or_else(|| {
            cases.push(case);
            cases.len() - 1
        });
        let of_subject = found.entry(&sample.subject.name).or_default();
        of_subject.entry(place).or_default().push(sample);
    }
    let of_case = |samples: &Samples<'_>| {
        Some(Ratios {
            bytes: BYTE_HIT_RATIO.of(samples)?.value,
            objects: HIT_RATIO.of(samples)?.value,
        })
    };
    let row = |(subject, by_case): (&str, BTreeMap<usize, Samples<'_>>)| {
        let cases: Vec<Option<Ratios>> =
            (0..cases.len()).map(|place| of_case(by_case.get(&place)?)).collect();
        let all: Option<Vec<Ratios>> = cases.iter().copied().collect();
        let mean = all.filter(|all| !all.is_empty()).map(|all| mean(&all));
        ReplayRow { subject: subject.to_owned(), cases, mean }
    };
    let mut rows: Vec<ReplayRow> = found.into_iter().map(row).collect();
    let bytes = |row: &ReplayRow| row.mean.map_or(-1.0, |mean| mean.bytes);
    rows.sort_by(|one, other| bytes(other).total_cmp(&bytes(one)));
    (cases, rows)
}

fn mean(all: &[Ratios]) -> Ratios {
    let of = |part: fn(&Ratios) -> f64| all.iter().map(part).sum::<f64>() / all.len() as f64;
    Ratios { bytes: of(|ratios| ratios.bytes), objects: of(|ratios| ratios.objects) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use haypile_measure::figure::REQUESTED_BYTES;
    use haypile_measure::result::{SCHEMA, SubjectId};

    use super::*;

    fn sample(subject: &str, case: &str, percent: f64, hits: u64, hit_bytes: u64) -> Sample {
        let parameters = [(CAPACITY_PERCENT, percent), (REQUESTED_BYTES, 1_024.0)];
        Sample {
            schema: SCHEMA,
            run: String::new(),
            experiment: super::super::NAME.to_owned(),
            case: case.to_owned(),
            parameters: parameters
                .map(|(name, number)| (name.to_owned(), number.into()))
                .into_iter()
                .collect(),
            seed: 1,
            subject: SubjectId {
                name: subject.to_owned(),
                version: String::new(),
                language: String::new(),
                program: String::new(),
            },
            block: 0,
            position: 0,
            operations: 8,
            wall_ns: 1,
            cpu_ns: 1,
            server_cpu_ns: None,
            hits,
            misses: 8 - hits,
            memory_bytes: None,
            latency_ns: None,
            timeline: None,
            calls: None,
            load: None,
            counts: BTreeMap::from([("hit_bytes".to_owned(), hit_bytes)]),
            error: None,
        }
    }

    #[test]
    fn the_best_mean_of_bytes_comes_first() {
        let samples = [
            sample("a", "zipf", 1.0, 7, 128),
            sample("b", "zipf", 1.0, 1, 256),
            sample("b", "zipf", 1.0, 3, 512),
            sample("a", "zipf", 10.0, 8, 384),
            sample("b", "zipf", 10.0, 5, 512),
        ];
        let (cases, rows) = ratios(&samples);
        assert_eq!(cases, [("zipf".to_owned(), 1.0), ("zipf".to_owned(), 10.0)]);
        assert_eq!(rows.iter().map(|row| row.subject.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(rows[0].cases[0], Some(Ratios { bytes: 0.375, objects: 0.25 }));
        let means = rows.iter().map(|row| row.mean.map(|mean| mean.bytes)).collect::<Vec<_>>();
        assert_eq!(means, [Some(0.4375), Some(0.25)]);
    }

    #[test]
    fn without_one_case_there_is_no_mean() {
        let mut samples = [sample("a", "zipf", 1.0, 7, 100), sample("a", "oltp", 1.0, 7, 100)];
        samples[1].error = Some("it crashed".to_owned());
        let (_, rows) = ratios(&samples);
        assert_eq!((rows[0].cases[1], rows[0].mean), (None, None));
        assert!(rows[0].cases[0].is_some());
    }
}
