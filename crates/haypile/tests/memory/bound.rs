//! A memory store never exceeds its size, and only ever returns the last value set.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::{Error, ManualClock, SetOptions};
use haypile_policy::PolicySpec;
use haypile_policy::rules::memory::charge;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Set { key: u8, value_bytes: usize, ttl: bool },
    Get(u8),
    Incr(u8),
    Delete(u8),
    Touch(u8),
    Advance,
}

fn op() -> impl Strategy<Value = Op> {
    let value_bytes = prop_oneof![0..40_usize, 0..1_500_usize];
    prop_oneof![
        6 => (any::<u8>(), value_bytes, any::<bool>())
            .prop_map(|(key, value_bytes, ttl)| Op::Set { key: key % 24, value_bytes, ttl }),
        6 => (0..24_u8).prop_map(Op::Get),
        1 => (0..24_u8).prop_map(Op::Incr),
        1 => (0..24_u8).prop_map(Op::Delete),
        1 => (0..24_u8).prop_map(Op::Touch),
        1 => Just(Op::Advance),
    ]
}

fn run(policy: &PolicySpec, size_bytes: u64, ops: &[Op]) {
    let clock = Arc::new(ManualClock::new());
    let builder = MemoryBuilder::new(size_bytes).clock(clock.clone()).policy(policy.clone());
    let store = builder.store().unwrap();
    let largest = store.limits().max_value_bytes - 1;
    let mut last: HashMap<u8, Vec<u8>> = HashMap::new();
    for (turn, op) in ops.iter().enumerate() {
        match *op {
            Op::Set { key, value_bytes, ttl } => {
                let mut value = turn.to_string().into_bytes();
                value.resize(value_bytes.max(value.len()), b'0');
                let ttl = ttl.then_some(Duration::from_secs(2));
                match store.set(&[key], &value, &SetOptions::set().with_ttl(ttl)) {
                    Ok(_) => {
                        last.insert(key, value);
                    }
                    Err(Error::ValueTooLarge { limit_bytes, .. }) => {
                        assert_eq!(limit_bytes, largest);
                        assert!(value.len() as u64 > largest);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Op::Get(key) => {
                if let Some(value) = store.get(&[key]).unwrap() {
                    assert_eq!(Some(&value), last.get(&key));
                }
            }
            Op::Incr(key) => {
                if let Ok(Some(number)) = store.incr(&[key], 7) {
                    last.insert(key, number.to_string().into_bytes());
                }
            }
            Op::Delete(key) => {
                store.delete(&[key]).unwrap();
                last.remove(&key);
            }
            Op::Touch(key) => {
                store.touch(&[key], Duration::from_secs(2).into()).unwrap();
            }
            Op::Advance => clock.advance(Duration::from_secs(1)),
        }
        let stats = store.stats().unwrap();
        assert!(stats.bytes <= size_bytes, "{stats:?} after {op:?}");
        assert!(stats.entries * charge(1, 0) <= stats.bytes, "{stats:?}");
    }
    store.clear().unwrap();
    assert_eq!((store.bytes().unwrap(), store.len().unwrap()), (0, 0));
}

proptest! {
    #[test]
    fn every_policy_keeps_the_bound(
        size_bytes in 1_024..4_000_u64,
        ops in prop::collection::vec(op(), 0..300),
    ) {
        // These two give entries up although there is room.
        let variants = ["slru4:fall=1", "lirs:demote=1"];
        for name in PolicySpec::kinds().iter().map(|kind| kind.name).chain(variants) {
            let spec: PolicySpec = name.parse().unwrap();
            if !spec.is_of_file_store() {
                run(&spec, size_bytes, &ops);
            }
        }
    }
}

/// A value that was reserved in a larger store evicts nothing when it no longer fits.
#[test]
fn a_value_that_does_not_fit_any_more_is_refused_and_costs_nobody_its_place() {
    for shards in [1, 4] {
        let store = MemoryBuilder::new(1 << 20).shards(shards).store().unwrap();
        let mut reservation = store.reserve(b"large", 500_000, &SetOptions::set()).unwrap();
        reservation.buffer().fill(7);
        store.resize(64 << 10).unwrap();
        for number in 0..100_u32 {
            let _ = store.set(&number.to_le_bytes(), b"value", &SetOptions::set()).unwrap();
        }
        let entries = store.len().unwrap();
        assert!(matches!(reservation.commit(), Err(Error::ValueTooLarge { .. })));
        assert_eq!(store.len().unwrap(), entries);
    }
}
