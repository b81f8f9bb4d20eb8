//! The operations of a case.

use haypile_sim::splitmix::first as mix;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{CaseKind, MicroPoint};
use crate::job::Ops;

/// The uses of streams of random numbers.
const SHUFFLE: u64 = 1;
const PREPARE: u64 = 2;
const TIMED: u64 = 3;

/// The factor by which a writer has more operations than a reader of the same case, so that it
/// finishes later.
const WRITER_TIMES: u64 = 4;

/// The operations that come first, and those of each thread of each process that are timed. The
/// same point gives the same operations in every version: a test pins them.
pub(super) fn ops(point: &MicroPoint) -> (Ops, Vec<Ops>) {
    let threads = 0..u64::from(point.threads) * u64::from(point.processes);
    (prepare(point), threads.map(|thread| timed(point, thread)).collect())
}

fn prepare(point: &MicroPoint) -> Ops {
    let mut ops = Ops::new();
    let resident = if point.kind.holds_all() { point.resident() } else { point.keys };
    for key in shuffled(resident, stream(point.seed, SHUFFLE)) {
        ops.set(key);
    }
    let draw =
        || point.distribution.draw(point.keys, point.keys.into(), stream(point.seed, PREPARE));
    match point.kind {
        CaseKind::GetHit
        | CaseKind::GetMiss
        | CaseKind::GetBeside
        | CaseKind::Overwrite
        | CaseKind::SetEvict => {}
        CaseKind::Set => draw().for_each(|key| ops.set(key)),
        CaseKind::Mix { .. } | CaseKind::Aside => draw().for_each(|key| ops.get_set(key)),
    }
    ops
}

fn timed(point: &MicroPoint, thread: u64) -> Ops {
    let mut ops = Ops::new();
    let count = u64::from(point.operations);
    let seed = stream(point.seed, TIMED + thread);
    let draw = |keys| point.distribution.draw(keys, count, seed);
    let resident = point.resident();
    match point.kind {
        CaseKind::GetHit => draw(resident).for_each(|key| ops.get(key)),
        CaseKind::GetMiss => {
            draw(point.keys - resident).for_each(|key| ops.get(resident + key));
        }
        CaseKind::GetBeside if thread < u64::from(point.readers()) => {
            draw(resident).for_each(|key| ops.get(key));
        }
        CaseKind::GetBeside => {
            let keys = point.distribution.draw(resident, WRITER_TIMES * count, seed);
            keys.for_each(|key| ops.set(key));
        }
        CaseKind::Set => draw(point.keys).for_each(|key| ops.set(key)),
        CaseKind::Overwrite => draw(resident).for_each(|key| ops.set(key)),
        CaseKind::SetEvict => {
            let thread = u32::try_from(thread).expect("at most 1024 of 64 processes");
            let first = point.keys + thread * point.operations;
            (first..first + point.operations).for_each(|key| ops.set(key));
        }
        CaseKind::Mix { sets, gets } => {
            let turn = u64::from(sets) + u64::from(gets);
            for (at, key) in draw(point.keys).enumerate() {
                if at as u64 % turn < u64::from(sets) { ops.set(key) } else { ops.get(key) }
            }
        }
        CaseKind::Aside => draw(point.keys).for_each(|key| ops.get_set(key)),
    }
    ops
}

/// A seed of its own for each purpose.
fn stream(seed: u64, purpose: u64) -> u64 {
    mix(seed ^ mix(purpose))
}

/// The numbers below `count` in random order.
fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    let mut numbers: Vec<u32> = (0..count).collect();
    for last in (1..numbers.len()).rev() {
        let drawn = u128::from(random.next_u64()) * (last as u128 + 1);
        numbers.swap(last, usize::try_from(drawn >> 64).expect("at most last"));
    }
    numbers
}
