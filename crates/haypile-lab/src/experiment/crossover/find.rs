//! The sizes to measure, and the sizes at which the answer changes.

use std::collections::BTreeSet;

use haypile_measure::figure::write_factors;
use haypile_measure::measure::Case;
use haypile_measure::result::{Identity, Parameters, Sample, Samples};
use haypile_measure::statistics::{Effect, Rule};
use haypile_number::{Quantity, bytes};

use super::super::lookups::{KEY_BYTES, Lookups, roomy};
use super::super::parameters;
use super::{CrossoverPlan, NAME};

/// The most sizes that are measured: every size that there is between two crossovers of a cache.
const MAX_SIZES: usize = 64;

/// The most keys, however small entries are.
const MAX_KEYS: u64 = 1 << 20;

/// The sizes of values at which one cache becomes slower than the baseline, or no longer slower.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FoundCrossovers {
    /// Name of the cache that is compared with the baseline.
    pub subject: String,
    /// Name of the baseline: the cache that the other cache is compared with.
    pub baseline: String,
    /// The ratio of the cache's time to the baseline's time at each measured size of values in
    /// bytes, in ascending order of sizes.
    pub effects: Vec<(u32, Effect)>,
    /// Intervals of value sizes in which the cache becomes clearly slower than the baseline, or no
    /// longer clearly slower.
    pub crossovers: Vec<Crossover>,
    /// Whether the cache is clearly slower than the baseline at the smallest measured size of
    /// values.
    pub begins_slower: bool,
}

/// Two measured sizes of values between which a cache becomes clearly slower than the baseline, or
/// no longer slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Crossover {
    /// The size of values below the crossover, in bytes: the largest measured one before the
    /// change.
    pub from_bytes: u32,
    /// The size of values above the crossover, in bytes: the smallest measured one after the
    /// change.
    pub to_bytes: u32,
    /// Whether the cache is clearly slower than the baseline above the crossover.
    pub is_slower_after: bool,
}

/// Returns the sizes of values that are measured first: powers of four from the smallest on, and
/// the largest.
pub fn first_sizes(options: &CrossoverPlan) -> Vec<u32> {
    let mut sizes = Vec::new();
    let mut size = options.min_bytes.max(1);
    while size < options.max_bytes {
        sizes.push(size);
        size = size.saturating_mul(4);
    }
    sizes.push(options.max_bytes);
    sizes
}

/// Returns the measurement (case) of the experiment `crossover` for values of this size.
pub fn case(value_bytes: u32, options: &CrossoverPlan) -> Case {
    let entry_bytes = u64::from(KEY_BYTES) + u64::from(value_bytes);
    let keys = u32::try_from((options.total_bytes / entry_bytes).clamp(2, MAX_KEYS));
    let keys = keys.expect("at most 2^20");
    let fewer = (value_bytes >> 14).clamp(1, 100);
    let lookups = Lookups {
        filled: keys,
        looked_up: 0..keys,
        value_bytes,
        operations: (options.operations / fewer).max(1),
        // Caches in files cannot use the end of each part where a large entry does not fit.
        capacity_bytes: 2 * roomy(keys.into(), entry_bytes),
        seed: options.seed,
        is_killed: false,
    };
    Case {
        experiment: NAME,
        name: "get-hit".to_owned(),
        parameters: parameters([
            ("value_bytes", value_bytes.into()),
            ("key_bytes", KEY_BYTES.into()),
            ("keys", keys.into()),
            ("operations", lookups.operations.into()),
            ("margin", options.margin.into()),
            ("baseline", options.baseline.as_str().into()),
        ]),
        processes: 1,
        skips: &[],
        write: Box::new(move |directory| lookups.write(directory)),
    }
}

/// Returns the next size of values to measure: the middle of the widest interval with a crossover;
/// `None` if all are narrow enough.
pub fn next(samples: &[Sample], options: &CrossoverPlan) -> Option<u32> {
    // Also those at which there are nothing but errors.
    let measured: BTreeSet<u32> =
        samples.iter().filter_map(|sample| size_of(&sample.parameters)).collect();
    if measured.len() >= MAX_SIZES {
        return None;
    }
    let found = find(samples);
    let changes = found.iter().flat_map(|found| &found.crossovers);
    let wide = changes.filter(|change| change.width() > options.precision);
    let middles = wide.filter_map(|change| Some((change.width(), change.middle()?)));
    let new = middles.filter(|(_, middle)| !measured.contains(middle));
    new.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, middle)| middle)
}

impl FoundCrossovers {
    /// Returns a sentence that says at which sizes of values the cache is clearly slower than the
    /// baseline (the cache that it is compared with).
    pub fn answer(&self) -> String {
        let Self { subject, baseline, .. } = self;
        let sizes: Vec<u32> = self.effects.iter().map(|(size, _)| *size).collect();
        let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
            return format!("{subject} was not compared with {baseline}");
        };
        let range = format!("from {} to {}", size_text(*first), size_text(*last));
        let is_slower = format!("{subject} is clearly slower than {baseline}");
        let between = |at: &Crossover| {
            format!("a size between {} and {}", size_text(at.from_bytes), size_text(at.to_bytes))
        };
        match (&self.crossovers[..], self.begins_slower) {
            ([], true) => format!("{is_slower} at every size {range}"),
            ([], false) => {
                let not_shown = format!(
                    "{subject} is not shown to be clearly slower than {baseline} at any size {range}"
                );
                format!("{not_shown}{}", self.at_the_last())
            }
            ([one], false) => format!("{is_slower} from {} on", between(one)),
            ([one], true) => {
                format!("{is_slower} up to {}, and not shown to be above it", between(one))
            }
            (several, begins_slower) => {
                let changes = several.iter().map(|change| {
                    let what =
                        if change.is_slower_after { "slower" } else { "not shown to be slower" };
                    format!("{what} from {} on", between(change))
                });
                let changes = changes.collect::<Vec<_>>().join(", ");
                let begin = if begins_slower { "slower" } else { "not shown to be slower" };
                format!(
                    "{subject} compared with {baseline}: {begin} at {}, {changes}",
                    size_text(*first)
                )
            }
        }
    }
}

impl FoundCrossovers {
    /// The effect at the largest size, in words; what was measured may be too little to show one.
    fn at_the_last(&self) -> String {
        let Some((size, effect)) = self.effects.last() else { return String::new() };
        let interval = match effect.interval() {
            Some(ends) if effect.samples() >= Rule::MIN_BLOCKS => {
                format!("95 % interval {}", write_factors(ends))
            }
            _ => "too few blocks to say how surely".to_owned(),
        };
        let times = Quantity::Factor.write(effect.ratio());
        format!(": at {} it takes {times} times as long ({interval})", size_text(*size))
    }
}

impl Crossover {
    fn width(&self) -> f64 {
        f64::from(self.to_bytes) / f64::from(self.from_bytes)
    }

    /// The size between, on a logarithmic scale; `None` if there is none.
    fn middle(&self) -> Option<u32> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between two numbers of 32 bits"
        )]
        let middle = (f64::from(self.from_bytes) * f64::from(self.to_bytes)).sqrt().round() as u32;
        (self.from_bytes < middle && middle < self.to_bytes).then_some(middle)
    }
}

/// Finds the sizes of values at which each cache becomes slower than the baseline, or no longer
/// slower, in the samples of one run. The caches are ordered by name; samples with errors are left
/// out.
pub fn find<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<FoundCrossovers> {
    let samples = samples.into_iter().filter(|sample| sample.experiment == NAME);
    let samples: Samples<'_> = samples.collect();
    let own = || samples.iter().copied();
    let baseline = own().find_map(|sample| sample.parameters.get("baseline")?.as_str());
    let Some(baseline) = baseline else { return Vec::new() };
    let sizes: BTreeSet<u32> = own().filter_map(|sample| size_of(&sample.parameters)).collect();
    let subjects: BTreeSet<Identity<'_>> = own().map(|it| it.subject.identity()).collect();
    let others = subjects.iter().filter(|other| other.name != baseline);
    let found = others.map(|&subject| {
        // Each build is compared with its own baseline; a rival with that of the program that has
        // one.
        let programs = || subjects.iter().filter(|other| other.name == baseline);
        let own = programs().find(|other| other.program == subject.program);
        let base = own.or_else(|| programs().next()).copied();
        let label = subject.label(subjects.iter().copied());
        Some(FoundCrossovers { subject: label, ..found(&samples, subject, base?, &sizes) })
    });
    found.flatten().filter(|found| !found.effects.is_empty()).collect()
}

fn found(
    samples: &Samples<'_>,
    subject: Identity<'_>,
    baseline: Identity<'_>,
    sizes: &BTreeSet<u32>,
) -> FoundCrossovers {
    let mut effects = Vec::new();
    let mut slower = Vec::new();
    for &size in sizes {
        let is_of_size = |sample: &&Sample| size_of(&sample.parameters) == Some(size);
        let of_size: Samples<'_> = samples.iter().copied().filter(is_of_size).collect();
        let (own, base) = (of_size.of_subject(subject), of_size.of_subject(baseline));
        let pairs = base.paired(&own, Sample::wall_ns_per_operation);
        let Ok(effect) = Effect::paired(&pairs) else { continue };
        let margin = own.first().and_then(|sample| sample.parameters.get("margin")?.as_f64());
        let low = effect.interval().map(|interval| interval.low);
        slower.push(low.is_some_and(|low| low > margin.unwrap_or(0.0)));
        effects.push((size, effect));
    }
    let changes = effects.windows(2).zip(slower.windows(2));
    let crossovers = changes.filter(|(_, slower)| slower[0] != slower[1]);
    let crossovers = crossovers.map(|(sizes, slower)| Crossover {
        from_bytes: sizes[0].0,
        to_bytes: sizes[1].0,
        is_slower_after: slower[1],
    });
    FoundCrossovers {
        subject: subject.name.to_owned(),
        baseline: baseline.name.to_owned(),
        crossovers: crossovers.collect(),
        begins_slower: slower.first().copied().unwrap_or(false),
        effects,
    }
}

/// A size for people.
fn size_text(size: u32) -> String {
    bytes(size.into())
}

fn size_of(parameters: &Parameters) -> Option<u32> {
    parameters.get("value_bytes")?.as_u64()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options() -> CrossoverPlan {
        CrossoverPlan {
            baseline: "memory".to_owned(),
            min_bytes: 16,
            max_bytes: 1 << 20,
            margin: 0.1,
            precision: 1.1,
            total_bytes: 1 << 20,
            operations: 1000,
            seed: 1,
        }
    }

    /// Three blocks of both caches at a size; the other takes `ratio` times as long.
    fn measured(size: u32, ratio: f64) -> Vec<Sample> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some milliseconds"
        )]
        let sample = |name: &str, block: u64, wall_ns: f64| -> Sample {
            serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": NAME, "case": "get-hit",
                "parameters": {"value_bytes": size, "margin": 0.1, "baseline": "memory"},
                "seed": 1, "block": block, "position": 0,
                "subject": {"name": name, "version": "", "language": "", "program": ""},
                "operations": 1000, "wall_ns": wall_ns as u64, "cpu_ns": 1, "server_cpu_ns": null,
                "hits": 1000, "misses": 0, "memory_bytes": null, "latency_ns": null, "counts": {},
                "error": null,
            }))
            .unwrap()
        };
        let block = |block: u64| {
            let wall_ns = 1e6 * (1.0 + 0.001 * f64::from(u32::try_from(block).unwrap()));
            [sample("file", block, wall_ns * ratio), sample("memory", block, wall_ns)]
        };
        (0..3).flat_map(block).collect()
    }

    /// Measures until nothing is asked for: the sizes that were measured, and what was found.
    fn searched(ratio: impl Fn(u32) -> f64) -> (usize, FoundCrossovers) {
        let options = options();
        let mut sizes = first_sizes(&options);
        let mut samples: Vec<Sample> =
            sizes.iter().flat_map(|&size| measured(size, ratio(size))).collect();
        while let Some(size) = next(&samples, &options) {
            assert!(!sizes.contains(&size), "{size} again");
            sizes.push(size);
            samples.extend(measured(size, ratio(size)));
        }
        (sizes.len(), find(&samples).pop().unwrap())
    }

    #[test]
    fn the_size_is_found_from_which_on_a_cache_is_clearly_slower() {
        let (sizes, found) = searched(|size| if size >= 50_000 { 1.2 } else { 1.05 });
        assert_eq!((found.subject.as_str(), found.baseline.as_str()), ("file", "memory"));
        assert!(!found.begins_slower);
        let answer = found.answer();
        assert!(answer.starts_with("file is clearly slower than memory from a size"), "{answer}");
        let [crossover] = found.crossovers[..] else { panic!("{found:?}") };
        assert!(crossover.is_slower_after);
        assert!(crossover.from_bytes < 50_000 && 50_000 <= crossover.to_bytes, "{crossover:?}");
        assert!(crossover.width() <= 1.1 && sizes < 16, "{crossover:?} {sizes}");
    }

    #[test]
    fn a_cache_that_is_slower_for_small_entries_alone_is_found_too() {
        let (_, found) = searched(|size| 1.0 + 100.0 / f64::from(size));
        let [crossover] = found.crossovers[..] else { panic!("{found:?}") };
        assert!(found.begins_slower && !crossover.is_slower_after);
        assert!((900..1100).contains(&crossover.from_bytes), "{crossover:?}");
    }

    #[test]
    fn a_cache_that_is_slower_between_two_sizes_has_two_crossovers() {
        let (_, found) = searched(|size| if (100..5_000).contains(&size) { 1.5 } else { 1.0 });
        assert_eq!(found.crossovers.len(), 2, "{found:?}");
        let answer = found.answer();
        assert!(
            answer.starts_with(
                "file compared with memory: not shown to be slower at 16 B, slower from a size"
            ),
            "{answer}"
        );
    }

    #[test]
    fn a_size_at_which_there_are_only_errors_is_not_measured_again() {
        let options = options();
        let mut samples = measured(64, 1.0);
        samples.extend(measured(1024, 2.0));
        let failed = measured(256, 1.0).into_iter();
        samples.extend(failed.map(|sample| Sample { operations: 0, wall_ns: 0, ..sample }));
        assert_eq!(find(&samples)[0].effects.len(), 2);
        assert_eq!(next(&samples, &options), None);
    }

    #[test]
    fn each_build_is_beside_its_own_baseline() {
        let of = |program: &str, ratio: f64| {
            let mut samples = measured(64, ratio);
            for sample in &mut samples {
                sample.subject.program = program.to_owned();
                sample.wall_ns *= if program == "old" { 3 } else { 1 };
            }
            samples
        };
        let found = find(&[of("old", 1.0), of("new", 2.0)].concat());
        let ratios: Vec<_> = found
            .iter()
            .map(|found| (found.subject.as_str(), (found.effects[0].1.ratio() * 10.0).round()))
            .collect();
        assert_eq!(ratios, [("file@new", 20.0), ("file@old", 10.0)]);
    }

    #[test]
    fn where_nothing_changes_nothing_more_is_measured() {
        for ratio in [1.0, 2.0] {
            let (sizes, found) = searched(|_| ratio);
            assert_eq!((sizes, found.crossovers.len()), (first_sizes(&options()).len(), 0));
            assert_eq!(found.begins_slower, ratio > 1.5);
            let expected = if ratio > 1.5 {
                "at every size from"
            } else {
                "is not shown to be clearly slower than memory at any size from"
            };
            assert!(found.answer().contains(expected), "{}", found.answer());
        }
    }

    #[test]
    fn sizes_next_to_each_other_are_the_end() {
        let mut close = options();
        close.precision = 1.0;
        let mut samples = measured(16, 1.0);
        samples.extend(measured(17, 2.0));
        assert_eq!(next(&samples, &close), None);
        assert_eq!((next(&[], &close), find(&[]).len()), (None, 0));
    }

    #[test]
    fn the_first_sizes_reach_both_ends() {
        assert_eq!(
            first_sizes(&options()),
            [16, 64, 256, 1024, 4096, 16384, 65536, 262_144, 1 << 20]
        );
        assert_eq!(first_sizes(&CrossoverPlan { min_bytes: 5, max_bytes: 5, ..options() }), [5]);
    }

    #[test]
    fn a_case_says_with_what_it_compares() {
        let case = case(1 << 20, &options());
        assert_eq!(case.experiment, NAME);
        assert_eq!(case.parameters["baseline"], "memory");
        assert_eq!(case.parameters["operations"], 15);
        let directory = tempfile::tempdir().unwrap();
        let expected = (case.write)(directory.path()).unwrap();
        assert_eq!((expected.hits, expected.verified_after), (Some(15), Some(2)));
    }
}
