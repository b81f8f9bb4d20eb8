//! Random requests.

use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::driver::Op;

/// The input of a property test: a capacity, and requests.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) capacity: u64,
    pub(crate) weighted: bool,
    pub(crate) keys: u32,
    pub(crate) ops: Vec<Op>,
}

/// Small caches with few keys: reads, new values of other weights, removals.
pub(crate) fn cases() -> impl Strategy<Value = Case> {
    (1..50_u64, any::<bool>(), 2..60_u32).prop_flat_map(|(capacity, weighted, keys)| {
        let heaviest = if weighted { capacity / 2 + 1 } else { 1 };
        ops(keys, heaviest, 150).prop_map(move |ops| Case { capacity, weighted, keys, ops })
    })
}

/// Returns requests for keys below `keys` with weights up to `heaviest`, mostly light ones.
pub(crate) fn ops(keys: u32, heaviest: u64, count: usize) -> impl Strategy<Value = Vec<Op>> {
    let weight = prop_oneof![3 => 1..=heaviest.min(4), 1 => 1..=heaviest];
    let op = (0..20_u32, 0..keys, weight).prop_map(|(kind, key, weight)| match kind {
        0..=15 => Op::Read(key, weight),
        16..=18 => Op::Write(key, weight),
        _ => Op::Remove(key),
    });
    proptest::collection::vec(op, 1..count)
}

/// Returns a long run with a fixed seed: skewed popularity, scans, and ten times a new capacity up
/// to `capacity` for a while.
pub(crate) fn stress(seed: u64, count: usize, keys: u32, capacity: u64, heaviest: u64) -> Vec<Op> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let period = count.div_ceil(10);
    let mut scan = 0;
    let weight = move |random: &mut ChaCha8Rng| {
        if random.random_range(0..4) == 0 { random.random_range(1..=heaviest) } else { 1 }
    };
    let mut op = |at: usize| {
        if at % period == period - 1 {
            return Op::Resize(random.random_range(1..=capacity));
        }
        if at % period == period / 3 {
            return Op::Resize(capacity);
        }
        let key = match random.random_range(0..10) {
            0 | 1 => {
                scan = (scan + 1) % keys;
                scan
            }
            _ => skewed(&mut random, keys),
        };
        match random.random_range(0..100) {
            0..=84 => Op::Read(key, weight(&mut random)),
            85..=94 => Op::Write(key, weight(&mut random)),
            _ => Op::Remove(key),
        }
    };
    (0..count).map(&mut op).collect()
}

/// Half of the requests go to an eighth of the keys, and recursively within it.
fn skewed(random: &mut impl Rng, keys: u32) -> u32 {
    let mut range = keys;
    while range > 8 && random.random_bool(0.5) {
        range /= 8;
    }
    random.random_range(0..range)
}

/// Returns the request, with a weight of 1 unless entries have weights.
pub(crate) fn unless(weighted: bool, op: Op) -> Op {
    match op {
        Op::Read(key, _) if !weighted => Op::Read(key, 1),
        Op::Write(key, _) if !weighted => Op::Write(key, 1),
        other => other,
    }
}
