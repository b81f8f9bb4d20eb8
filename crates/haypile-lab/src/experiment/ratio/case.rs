//! The cases of `ratio` and their jobs.

use haypile_measure::job::{self, JobError, Ops, Settings};
use haypile_measure::measure::{Case, Expected};

use super::super::{keys, parameters};
use super::{CAPACITY_BYTES, KEY_BYTES, KEYS, NAME, Ratio};

/// Returns the cases of the experiment `ratio` for these ratios of gets to sets, with this number
/// of operations in a measurement, sets and gets together (whole iterations, at least one). Keys
/// and values are drawn from `seed`.
pub fn cases(ratios: &[Ratio], operations: u32, seed: u64) -> Vec<Case> {
    ratios.iter().map(|&ratio| case(ratio, operations, seed)).collect()
}

fn case(ratio: Ratio, operations: u32, seed: u64) -> Case {
    Case {
        experiment: NAME,
        name: ratio.name(),
        parameters: parameters([
            ("sets", 1.into()),
            ("gets", ratio.gets.into()),
            ("size", ratio.size.name().into()),
            ("keys", KEYS.into()),
            ("key_bytes", KEY_BYTES.into()),
            ("value_bytes", ratio.size.bytes().into()),
            ("capacity_bytes", CAPACITY_BYTES.into()),
            ("operations", timed(ratio, operations).operations().into()),
            ("threads", 1.into()),
            ("processes", 1.into()),
        ]),
        processes: 1,
        skips: &[],
        write: Box::new(move |directory| {
            let timed = timed(ratio, operations);
            let expected = Expected {
                operations: timed.operations(),
                reads: timed.reads(),
                hits: Some(timed.reads()),
                verified_before: Some(u64::from(KEYS)),
                verified_after: Some(u64::from(KEYS)),
                ..Expected::default()
            };
            write(directory, ratio, seed, timed)?;
            Ok(expected)
        }),
    }
}

fn write(directory: &std::path::Path, ratio: Ratio, seed: u64, timed: Ops) -> Result<(), JobError> {
    let population = keys::population(seed, KEYS, KEY_BYTES, ratio.size.bytes())?;
    let entry_bytes = u64::from(KEY_BYTES + ratio.size.bytes());
    let settings = Settings::new(seed, CAPACITY_BYTES, CAPACITY_BYTES / entry_bytes);
    let mut prepare = Ops::new();
    (0..KEYS).for_each(|key| prepare.set(key));
    job::write(directory, &settings, &population, &prepare, &[timed])
}

fn timed(ratio: Ratio, operations: u32) -> Ops {
    let mut ops = Ops::new();
    let iterations = (operations / (1 + ratio.gets)).max(1);
    let mut read = KEYS / 2;
    for iteration in 0..iterations {
        ops.set(iteration % KEYS);
        for _ in 0..ratio.gets {
            ops.get(read);
            read = (read + 1) % KEYS;
        }
    }
    ops
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use haypile_measure::job::Op;

    use super::super::Size;
    use super::*;

    fn keys_of(ops: &Ops, kind: Op) -> Vec<u32> {
        let decoded = ops.words().iter().map(|&word| Op::decode(word).unwrap());
        decoded.filter(|(op, _)| *op == kind).map(|(_, key)| key).collect()
    }

    #[test]
    fn an_iteration_is_a_set_and_then_the_gets() {
        for ratio in Ratio::ALL {
            let ops = timed(ratio, 250_000);
            let iterations = 250_000 / (1 + ratio.gets);
            assert_eq!(ops.operations(), u64::from(iterations * (1 + ratio.gets)));
            assert_eq!(ops.reads(), u64::from(iterations * ratio.gets));
            let first = ops.words().iter().take(3).map(|&word| Op::decode(word).unwrap().0);
            let second = if ratio.gets == 1 { Op::Set } else { Op::Get };
            assert_eq!(first.collect::<Vec<_>>(), [Op::Set, Op::Get, second]);
        }
    }

    #[test]
    fn every_key_is_written_and_read_and_none_right_after_its_write() {
        let ops = timed(Ratio { gets: 1, size: Size::Medium }, 10_000);
        for kind in [Op::Set, Op::Get] {
            assert_eq!(keys_of(&ops, kind).into_iter().collect::<HashSet<_>>().len(), 2_000);
        }
        let pairs = keys_of(&ops, Op::Set).into_iter().zip(keys_of(&ops, Op::Get));
        assert!(pairs.into_iter().all(|(written, read)| written != read));
    }

    #[test]
    fn a_measurement_has_an_iteration_at_least() {
        assert_eq!(timed(Ratio { gets: 100, size: Size::Medium }, 1).operations(), 101);
    }
}
