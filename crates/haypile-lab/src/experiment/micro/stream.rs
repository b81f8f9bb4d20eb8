//! The operations of a case.

use std::collections::{BTreeMap, BTreeSet};

use haypile_measure::job::{Op, Ops};
use haypile_measure::measure::shuffle;
use haypile_number::splitmix::first as mix;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::{CaseKind, MicroPoint};

/// The uses of streams of random numbers.
const SHUFFLE: u64 = 1;
const PREPARE: u64 = 2;
const TIMED: u64 = 3;

/// The factor by which a writer has more operations than a reader of the same case, so that it
/// finishes later.
const WRITER_TIMES: u64 = 4;

/// The most keys that the timed part writes first: that they are there afterwards shows that it wrote.
const LEFT_OUT: usize = 16;

/// Returns the untimed operations that prepare the cache, and the timed ones of each thread of each
/// process. The same point gives the same operations.
pub(super) fn ops(point: &MicroPoint) -> (Ops, Vec<Ops>) {
    let threads = 0..u64::from(point.threads) * u64::from(point.processes);
    let timed: Vec<Ops> = threads.map(|thread| timed(point, thread)).collect();
    (prepare(point, &left_out(point, &timed)), timed)
}

/// Chooses keys that the preparation of the cache leaves out, so that only the timed operations
/// insert them, which proves afterwards that these were executed: of the keys that the first thread
/// writes last, those written the fewest times and not used by the warm-up. They are few, because
/// most of the timed writes are to overwrite.
pub(super) fn left_out(point: &MicroPoint, timed: &[Ops]) -> BTreeSet<u32> {
    // A mixture would also read them.
    if !matches!(point.kind, CaseKind::Set | CaseKind::Overwrite) {
        return BTreeSet::new();
    }
    let resident = point.resident() as usize;
    let words = timed[0].words().iter().filter_map(|&word| Op::decode(word));
    let sets: Vec<u32> = words.filter(|(op, _)| *op == Op::Set).map(|(_, key)| key).collect();
    let last = sets.iter().rev().take((resident / 8).max(1));
    let mut writes: BTreeMap<u32, u64> = last.map(|key| (*key, 0)).collect();
    for key in sets {
        writes.entry(key).and_modify(|writes| *writes += 1);
    }
    if point.kind != CaseKind::Overwrite {
        for key in warming_up(point) {
            writes.remove(&key);
        }
    }
    let mut keys: Vec<(u64, u32)> = writes.into_iter().map(|(key, writes)| (writes, key)).collect();
    keys.sort_unstable();
    keys.into_iter().take(LEFT_OUT.min(resident / 64)).map(|(_, key)| key).collect()
}

/// Keys that warm a cache up, by the distribution.
fn warming_up(point: &MicroPoint) -> impl Iterator<Item = u32> {
    point.distribution.draw(point.keys, point.keys.into(), stream(point.seed, PREPARE))
}

fn prepare(point: &MicroPoint, left_out: &BTreeSet<u32>) -> Ops {
    let mut ops = Ops::new();
    let resident = if point.kind.holds_all() { point.resident() } else { point.keys };
    let order = shuffled(resident, stream(point.seed, SHUFFLE));
    for key in order.into_iter().filter(|key| !left_out.contains(key)) {
        ops.set(key);
    }
    match point.kind {
        CaseKind::GetHit
        | CaseKind::GetMiss
        | CaseKind::GetBeside
        | CaseKind::Overwrite
        | CaseKind::SetEvict => {}
        CaseKind::Set => warming_up(point).for_each(|key| ops.set(key)),
        CaseKind::Mix { .. } | CaseKind::Aside => {
            warming_up(point).for_each(|key| ops.get_set(key));
        }
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
    shuffle(&mut random, &mut numbers);
    numbers
}
