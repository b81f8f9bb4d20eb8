//! Speed-ups: rates by number of workers, relative to the fewest workers.

use haypile_measure::figure::{SECOND_NS, WALL};
use haypile_measure::result::{Sample, Samples};
use haypile_measure::statistics::{Centre, Effect, Interval};

/// The kind of workers that share a cache: threads or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workers {
    /// Threads of one process.
    Threads,
    /// Processes with one thread each.
    Processes,
}

impl Workers {
    pub(super) const ALL: [Self; 2] = [Self::Threads, Self::Processes];

    /// Returns the name of the parameter with the number of workers of this kind: `threads` or
    /// `processes`.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }

    /// Returns the number of workers of a sample; `None` if it is of several of the other kind.
    fn of(self, sample: &Sample) -> Option<u64> {
        let number = |workers: Self| sample.parameters.get(workers.parameter())?.as_u64();
        let [threads, processes] = [number(Self::Threads)?, number(Self::Processes)?];
        match self {
            Self::Threads => (processes == 1).then_some(threads),
            Self::Processes => (threads == 1).then_some(processes),
        }
    }
}

/// The speed-ups of a cache in one case of the experiment `scale`, by number of workers (threads or
/// processes).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scaling {
    pub(super) case: String,
    pub(super) workers: Workers,
    /// Name of the cache, with the program that measured it if there are several.
    pub(super) subject: String,
    /// The cache's rate and speed-up for each number of workers, in ascending order, at least two.
    pub(super) points: Vec<Point>,
}

/// The rate and the speed-up of a cache with one number of workers (threads or processes).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) workers: u64,
    /// Operations of all workers per second of wall time: the rate with the fewest workers times
    /// the speed-up.
    pub(super) rate: f64,
    /// The rate of operations divided by that with the fewest workers.
    pub(super) speedup: f64,
    pub(super) interval: Option<Interval>,
    /// The speed-up divided by the ideal speed-up, of workers that never wait for each other: 1 is
    /// perfect.
    pub(super) efficiency: f64,
}

/// Returns the speed-ups of each cache in the samples, by case and kind of workers. Samples with
/// errors are left out.
pub(super) fn scalings(samples: &Samples<'_>) -> Vec<Scaling> {
    let programs = samples.grouped(|sample| sample.subject.program.as_str());
    let mut scalings = Vec::new();
    for (case, of_case) in samples.grouped(|sample| sample.case.as_str()) {
        for workers in Workers::ALL {
            for (identity, own) in of_case.by_subject() {
                let points = points(&own, workers);
                let subject = if programs.len() > 1 {
                    identity.to_string()
                } else {
                    identity.name.to_owned()
                };
                if points.len() > 1 {
                    scalings.push(Scaling { case: case.to_owned(), workers, subject, points });
                }
            }
        }
    }
    scalings
}

fn points(samples: &Samples<'_>, workers: Workers) -> Vec<Point> {
    let mut times: Vec<(u64, Vec<f64>)> = samples
        .grouped(|sample| workers.of(sample))
        .into_iter()
        .filter_map(|(number, own)| {
            let times = WALL.values(&own).to_vec();
            (!times.is_empty()).then_some((number?, times))
        })
        .collect();
    times.sort_by_key(|(number, _)| *number);
    let Some((fewest, baseline)) = times.first().cloned() else { return Vec::new() };
    let Some(time) = Centre::of(&baseline) else { return Vec::new() };
    let base_rate = SECOND_NS / time.value;
    let point = |(number, own): &(u64, Vec<f64>)| {
        let (speedup, interval) = if *number == fewest {
            (1.0, None)
        } else {
            // Time before over time after, so that more is faster.
            let effect = Effect::unpaired(own, &baseline).ok()?;
            (effect.ratio(), effect.interval())
        };
        let ideal = *number as f64 / fewest as f64;
        Some(Point {
            workers: *number,
            rate: base_rate * speedup,
            speedup,
            interval,
            efficiency: speedup / ideal,
        })
    };
    times.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(block: u64, threads: u64, processes: u64, wall_ns: u64) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": "scale", "case": "get-hit", "seed": 1,
            "position": 0, "parameters": { "threads": threads, "processes": processes },
            "subject": { "name": "file", "program": "haypile", "language": "rust", "version": "0" },
            "block": block, "operations": 100 * threads * processes, "wall_ns": wall_ns,
            "cpu_ns": 1, "hits": 0, "misses": 0,
        }))
        .unwrap()
    }

    #[test]
    fn twice_the_operations_in_the_same_time_are_a_speedup_of_two() {
        let mut samples = Vec::new();
        for block in 0..5 {
            samples.push(sample(block, 1, 1, 1_000));
            samples.push(sample(block, 2, 1, 1_000));
            samples.push(sample(block, 1, 4, 4_000));
        }
        let samples: Samples<'_> = samples.iter().collect();
        let scalings = scalings(&samples);
        let found: Vec<_> = scalings
            .iter()
            .map(|scaling| {
                let numbers = |of: fn(&Point) -> f64| {
                    scaling.points.iter().map(|point| of(point).round()).collect::<Vec<_>>()
                };
                (scaling.workers, numbers(|point| point.speedup), numbers(|point| point.rate))
            })
            .collect();
        let expected = [
            (Workers::Threads, vec![1.0, 2.0], vec![1e8, 2e8]),
            (Workers::Processes, vec![1.0, 1.0], vec![1e8, 1e8]),
        ];
        assert_eq!(found, expected);
        let efficiency = |at: usize| scalings[at].points[1].efficiency;
        assert!((efficiency(0) - 1.0).abs() < 1e-9 && (efficiency(1) - 0.25).abs() < 1e-9);
        let interval = scalings[0].points[1].interval.unwrap();
        assert!(interval.low <= 1.0 + 1e-9 && interval.high >= 1.0 - 1e-9, "{interval:?}");
    }

    #[test]
    fn one_number_of_workers_is_no_scaling() {
        let samples = [sample(0, 1, 1, 1_000), sample(1, 1, 1, 1_000)];
        assert_eq!(scalings(&samples.iter().collect()), []);
    }
}
