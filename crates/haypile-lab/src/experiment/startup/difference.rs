//! The differences between conditions.

use haypile_measure::result::{Sample, Samples};
use haypile_measure::statistics::{MedianInterval, Summary};

use super::condition::Condition;

/// A figure of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartFigure {
    /// From the start until it was ready.
    Ready,
    /// Processor time of the tree.
    Cpu,
    /// Until it was quiet.
    Settled,
    /// From the first to the last operation on its cache.
    Span,
    /// The most memory.
    Memory,
    /// Bytes that it read, from memory or not.
    Read,
    /// Bytes that came from a disk.
    DiskRead,
    /// Page faults that read from a disk.
    MajorFaults,
}

impl StartFigure {
    pub(super) const ALL: [Self; 8] = [
        Self::Ready,
        Self::Cpu,
        Self::Settled,
        Self::Span,
        Self::Memory,
        Self::Read,
        Self::DiskRead,
        Self::MajorFaults,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready ms",
            Self::Cpu => "CPU ms",
            Self::Settled => "settled ms",
            Self::Span => "cache in use ms",
            Self::Memory => "memory MiB",
            Self::Read => "read MiB",
            Self::DiskRead => "from disk MiB",
            Self::MajorFaults => "major faults",
        }
    }

    /// The name in JSON.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Ready => "ready_ms",
            Self::Cpu => "cpu_ms",
            Self::Settled => "settled_ms",
            Self::Span => "span_ms",
            Self::Memory => "memory_mib",
            Self::Read => "read_mib",
            Self::DiskRead => "disk_read_mib",
            Self::MajorFaults => "major_faults",
        }
    }

    /// Its value in a sample, in the unit of its name.
    pub(super) fn of(self, sample: &Sample) -> Option<f64> {
        if sample.error.is_some() {
            return None;
        }
        let count = |name: &str| sample.counts.get(name).map(|count| *count as f64);
        let (ms, mib) = (1e6, f64::from(1 << 20));
        match self {
            Self::Ready => Some(sample.wall_ns as f64 / ms),
            Self::Cpu => Some(sample.cpu_ns as f64 / ms),
            Self::Settled => count("settled_ns").map(|ns| ns / ms),
            Self::Span => count("span_ns").map(|ns| ns / ms),
            Self::Memory => sample.memory_bytes.map(|bytes| bytes as f64 / mib),
            Self::Read => count("read_bytes").map(|bytes| bytes / mib),
            Self::DiskRead => count("disk_read_bytes").map(|bytes| bytes / mib),
            Self::MajorFaults => count("major_faults"),
        }
    }
}

/// One command, warm or cold, under its conditions.
#[derive(Clone, Debug)]
pub(super) struct StartCase<'a> {
    pub(super) name: &'a str,
    pub(super) page_cache: String,
    pub(super) ready: String,
    by_condition: Vec<(Condition, Samples<'a>)>,
}

/// Another condition compared with `with`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) condition: Condition,
    pub(super) figure: StartFigure,
    /// The other's figure minus that of `with`, within blocks.
    pub(super) later: MedianInterval,
    /// The difference as a part of the other's median: what the cache saves of it.
    pub(super) saved: Option<f64>,
}

/// The verdict of an interval, in words.
pub(super) fn verdict(difference: &MedianInterval) -> &'static str {
    match difference.is_significant() {
        Some(true) => "significant",
        Some(false) => "not significant",
        None => "too few blocks",
    }
}

/// All cases of samples, in their order. Starts that were watched are not measurements.
pub(super) fn cases<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<StartCase<'a>> {
    let measured: Samples<'a> =
        samples.into_iter().filter(|sample| !sample.parameters.contains_key("watched")).collect();
    let case = |samples: &Samples<'a>| {
        let text = |name: &str| {
            let value = samples[0].parameters.get(name).and_then(|value| value.as_str());
            value.unwrap_or_default().to_owned()
        };
        let of = |condition: &Condition| {
            let own = samples.iter().copied();
            own.filter(|sample| sample.subject.name == condition.name()).collect()
        };
        StartCase {
            name: &samples[0].case,
            page_cache: text("page_cache"),
            ready: text("ready"),
            by_condition: Condition::ALL
                .iter()
                .map(|condition| (*condition, of(condition)))
                .collect(),
        }
    };
    measured.cases().iter().map(case).collect()
}

impl<'a> StartCase<'a> {
    pub(super) fn samples(&self, condition: Condition) -> &Samples<'a> {
        let found = self.by_condition.iter().find(|(it, _)| *it == condition);
        &found.expect("all conditions are there").1
    }

    /// The conditions that have samples.
    pub(super) fn conditions(&self) -> impl Iterator<Item = Condition> {
        let with = self.by_condition.iter().filter(|(_, samples)| !samples.is_empty());
        with.map(|(condition, _)| *condition)
    }

    pub(super) fn summary(&self, condition: Condition, figure: StartFigure) -> Option<Summary> {
        Summary::of(&self.samples(condition).values(|sample| figure.of(sample)).to_vec())
    }

    /// The figures that were measured of this case, and are not all 0.
    pub(super) fn figures(&self) -> Vec<StartFigure> {
        let is_known = |figure: &StartFigure| {
            let mut conditions = self.conditions();
            let summary = |condition| self.summary(condition, *figure);
            conditions.any(|condition| summary(condition).is_some_and(|summary| summary.max > 0.0))
        };
        let is_needed = |figure: &StartFigure| {
            // Of a command that is ready when it exits, being settled is nothing of its own.
            *figure != StartFigure::Settled || self.ready != "exit"
        };
        StartFigure::ALL.into_iter().filter(is_needed).filter(is_known).collect()
    }

    /// A condition compared with `with`, block by block.
    pub(super) fn difference(
        &self,
        condition: Condition,
        figure: StartFigure,
    ) -> Option<Difference> {
        let cost = |sample: &Sample| figure.of(sample);
        let pairs = self.samples(Condition::With).paired(self.samples(condition), cost);
        let differences: Vec<f64> = pairs.iter().map(|(with, other)| other - with).collect();
        let later = MedianInterval::of(&differences)?;
        let median = self.summary(condition, figure).map(|summary| summary.median);
        let saved = median.filter(|median| *median > 0.0).map(|median| later.median / median);
        Some(Difference { condition, figure, later, saved })
    }

    /// The sum of a count over all samples of a condition.
    pub(super) fn count(&self, condition: Condition, name: &str) -> u64 {
        let counts = self.samples(condition).iter().filter_map(|sample| sample.counts.get(name));
        counts.sum()
    }

    /// The first error of each condition, and how many there are.
    pub(super) fn errors(&self) -> Vec<(Condition, &'a str, usize)> {
        let of = |(condition, samples): &(Condition, Samples<'a>)| {
            let errors: Vec<&'a str> =
                samples.iter().filter_map(|sample| sample.error.as_deref()).collect();
            Some((*condition, *errors.first()?, errors.len()))
        };
        self.by_condition.iter().filter_map(of).collect()
    }

    /// The part of the files that was in memory before the starts, at most; `None` if they are warm.
    pub(super) fn resident_share(&self) -> Option<f64> {
        let share = |sample: &&Sample| {
            let of = |name: &str| sample.counts.get(name).map(|bytes| *bytes as f64);
            Some(of("cold_resident_bytes")? / of("cold_file_bytes")?.max(1.0))
        };
        let all = self.by_condition.iter().flat_map(|(_, samples)| samples.iter());
        all.filter_map(share).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(condition: Condition, block: u64, wall_ns: u64) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": "startup", "case": "x", "seed": 1, "position": 0,
            "parameters": { "page_cache": "warm", "ready": "exit" },
            "subject": { "name": condition.name(), "program": "haypile", "language": "", "version": "" },
            "block": block, "operations": 1, "wall_ns": wall_ns, "cpu_ns": 5_000_000, "hits": 0,
            "misses": 0, "counts": { "cold_file_bytes": 100, "cold_resident_bytes": block },
        }))
        .unwrap()
    }

    /// With 10, 11, … ms and without 30 ms more, in blocks that differ much more from each other.
    #[test]
    fn differences_are_of_blocks_and_their_median_is_exact() {
        let mut samples = Vec::new();
        for block in 0..8 {
            let base = 10_000_000 * (block + 1);
            samples.push(sample(Condition::With, block, base));
            samples.push(sample(Condition::Again, block, base + block % 3 * 1_000_000 - 1_000_000));
            samples.push(sample(Condition::Off, block, base + 30_000_000 + block * 1_000));
        }
        let mut watched = sample(Condition::With, 0, 900_000_000);
        watched.parameters.insert("watched".to_owned(), json!(true));
        samples.push(watched);
        samples[0].error = Some("late".to_owned());
        let cases = cases(&samples);
        assert_eq!(cases.len(), 1);
        let off = cases[0].difference(Condition::Off, StartFigure::Ready).unwrap();
        assert_eq!(off.later.count, 7);
        assert!((off.later.median - 30.004).abs() < 1e-9, "{off:?}");
        assert_eq!(verdict(&off.later), "significant");
        let again = cases[0].difference(Condition::Again, StartFigure::Ready).unwrap();
        assert_eq!(verdict(&again.later), "not significant");
        assert_eq!(cases[0].difference(Condition::Fill, StartFigure::Ready), None);
        assert_eq!(cases[0].errors(), [(Condition::With, "late", 1)]);
        assert!((cases[0].resident_share().unwrap() - 0.07).abs() < 1e-9);
        assert_eq!(cases[0].figures(), [StartFigure::Ready, StartFigure::Cpu]);
    }
}
