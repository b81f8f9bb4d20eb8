//! The cases of `scale`: those of `micro`, by number of workers.

use std::thread;

use haypile_measure::measure::Case;

use super::super::micro::{self, Capacity, Distribution, MicroError};
use super::{NAME, ScaleOptions};

/// Zipf's exponent of the requested keys.
const EXPONENT: f64 = 0.99;

/// Subjects that live in one process.
const OF_ONE_PROCESS: &[&str] = &["memory", "none"];

/// Returns the cases of the experiment `scale`: one for each kind of operation and number of
/// threads or processes. One worker is measured once.
///
/// # Errors
///
/// [`MicroError`], for what cannot be done.
pub fn cases(options: &ScaleOptions, seed: u64) -> Result<Vec<Case>, MicroError> {
    let threads = or_powers_of_two(&options.threads);
    let processes = or_powers_of_two(&options.processes);
    let mut workers: Vec<(u32, u32)> = threads.into_iter().map(|threads| (threads, 1)).collect();
    workers.extend(processes.into_iter().map(|processes| (1, processes)));
    let mut cases = Vec::new();
    for &kind in &options.case {
        let mut measured = Vec::new();
        for &(threads, processes) in &workers {
            if measured.contains(&(threads, processes)) {
                continue;
            }
            measured.push((threads, processes));
            let of_kind = micro::MicroOptions {
                case: vec![kind],
                keys: vec![options.keys],
                key_bytes: vec![36],
                value_bytes: vec![options.value_bytes],
                distribution: vec![Distribution::Zipf { exponent: EXPONENT }],
                capacity: vec![Capacity::Share(0.5)],
                threads: vec![threads],
                processes: vec![processes],
                operations: options.operations,
                latency: false,
            };
            let skips = if processes > 1 { OF_ONE_PROCESS } else { &[] };
            let of_kind = micro::cases(&of_kind, seed, None)?;
            cases.extend(of_kind.into_iter().map(|case| Case { experiment: NAME, skips, ..case }));
        }
    }
    Ok(cases)
}

/// Returns the numbers, or else 1, 2, 4 and so on up to the number of processors.
fn or_powers_of_two(numbers: &[u32]) -> Vec<u32> {
    if !numbers.is_empty() {
        return numbers.to_vec();
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let processors =
        u32::try_from(processors).unwrap_or(u32::MAX).min(haypile_measure::job::MAX_PROCESSES);
    let mut numbers = vec![1];
    while let Some(next) = numbers.last().map(|last| last * 2).filter(|next| *next < processors) {
        numbers.push(next);
    }
    if processors > 1 {
        numbers.push(processors);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::micro::CaseKind;

    fn options(threads: &[u32], processes: &[u32]) -> ScaleOptions {
        ScaleOptions {
            case: vec![CaseKind::GetHit, CaseKind::Overwrite],
            threads: threads.to_vec(),
            processes: processes.to_vec(),
            keys: 100,
            value_bytes: 10,
            operations: 50,
        }
    }

    #[test]
    fn one_worker_is_measured_once() {
        let cases = cases(&options(&[1, 2], &[1, 2, 4]), 1).unwrap();
        let workers = |case: &Case| {
            let number = |name: &str| case.parameters[name].as_u64().unwrap();
            (number("threads"), number("processes"))
        };
        let all: Vec<_> = cases.iter().map(workers).collect();
        let each = [(1, 1), (2, 1), (1, 2), (1, 4)];
        assert_eq!(all, [each, each].concat());
        assert!(cases.iter().all(|case| case.experiment == NAME));
    }

    #[test]
    fn processes_are_for_caches_that_processes_share() {
        for case in cases(&options(&[1, 2], &[2]), 1).unwrap() {
            assert_eq!(case.skips.contains(&"memory"), case.processes > 1);
            let directory = tempfile::tempdir().unwrap();
            let expected = (case.write)(directory.path()).unwrap();
            let workers = case.parameters["threads"].as_u64().unwrap() * u64::from(case.processes);
            assert_eq!(expected.operations, 50 * workers, "each worker has as many");
        }
    }

    #[test]
    fn without_numbers_the_workers_double_up_to_the_processors() {
        let numbers = or_powers_of_two(&[]);
        assert_eq!(numbers[0], 1);
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
        assert!(numbers.iter().rev().skip(1).all(|number| number.is_power_of_two()));
    }
}
