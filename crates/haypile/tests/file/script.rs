//! A course of operations that follows from a seed: a process does it, and another knows what should
//! be there, however far the first got.

use std::collections::HashMap;
use std::time::Duration;

use haypile::{Error, SetOptions, Store, Ttl};

/// Keys that values are written to; counters are others.
pub(crate) const KEYS: u64 = 150;
const COUNTERS: u64 = 5;
const HOUR: Duration = Duration::from_hours(1);

/// Which operations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All that fits with room to spare: nothing has to be evicted.
    Roomy,
    /// Also values of several segments, and too much for the file.
    Crowded,
}

impl Kind {
    /// Its name, for another process.
    #[cfg(feature = "crash-points")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Roomy => "roomy",
            Self::Crowded => "crowded",
        }
    }

    /// The kind of a name.
    #[cfg(feature = "crash-points")]
    pub(crate) fn of(name: &str) -> Self {
        if name == "roomy" { Self::Roomy } else { Self::Crowded }
    }
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Set { key: u64, seed: u64, bytes: usize, ttl: bool },
    Add { key: u64, seed: u64, bytes: usize },
    Delete { key: u64 },
    Touch { key: u64, ttl: bool },
    Incr { counter: u64 },
    Clear,
}

pub(crate) fn name(key: u64) -> Vec<u8> {
    // Of many lengths.
    format!("key-{key}-{}", "k".repeat(usize::try_from(key % 60).expect("small"))).into_bytes()
}

fn counter(number: u64) -> Vec<u8> {
    format!("counter-{number}").into_bytes()
}

/// A value that says which it is, in every word.
pub(crate) fn value(key: u64, seed: u64, bytes: usize) -> Vec<u8> {
    let words =
        (0_u64..).map(|at| (key << 40) ^ seed.rotate_left(7) ^ at.wrapping_mul(0x9E37_79B9));
    words.flat_map(u64::to_le_bytes).take(bytes).collect()
}

fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// The operation of this number.
pub(crate) fn op(kind: Kind, seed: u64, number: u64) -> Op {
    let random = mix(seed ^ mix(number));
    let keys = if kind == Kind::Roomy { KEYS } else { KEYS * 20 };
    // Some are written often, and some so seldom that recycling has to keep them.
    let key = ((random >> 8) % keys) >> (random >> 20 & 7);
    let bytes = match (kind, random >> 40 & 63) {
        (Kind::Crowded, 0) => 150_000,
        (_, 1..5) => 9_000,
        (_, size) => usize::try_from(size).expect("small") * 13,
    };
    match random & 63 {
        0..4 => Op::Delete { key },
        4..8 => Op::Touch { key, ttl: random >> 30 & 1 == 0 },
        8..12 => Op::Incr { counter: key % COUNTERS },
        // A model does not know whether the old one was evicted.
        12..16 if kind == Kind::Roomy => Op::Add { key, seed: number, bytes },
        16 if random >> 50 & 31 == 0 => Op::Clear,
        _ => Op::Set { key, seed: number, bytes, ttl: random >> 31 & 3 == 0 },
    }
}

/// Does it. An answer that no model can have is a panic.
pub(crate) fn perform(store: &dyn Store, op: Op) -> Result<(), Error> {
    let options = |ttl: bool| SetOptions::set().with_ttl(ttl.then_some(HOUR));
    match op {
        Op::Set { key, seed, bytes, ttl } => {
            let _ = store.set(&name(key), &value(key, seed, bytes), &options(ttl))?;
        }
        Op::Add { key, seed, bytes } => {
            let _ = store.set(&name(key), &value(key, seed, bytes), &SetOptions::add())?;
        }
        Op::Delete { key } => {
            let _ = store.delete(&name(key))?;
        }
        Op::Touch { key, ttl } => {
            let _ = store.touch(&name(key), Ttl::from(ttl.then_some(HOUR)))?;
        }
        Op::Incr { counter: number } => {
            if store.incr(&counter(number), 1)?.is_none() {
                let _ = store.set(&counter(number), b"1", &SetOptions::add())?;
            }
        }
        Op::Clear => store.clear()?,
    }
    Ok(())
}

/// The contents that should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    values: HashMap<u64, (u64, usize)>,
    counters: HashMap<u64, u64>,
}

impl Model {
    #[cfg(feature = "crash-points")]
    pub(crate) fn after(kind: Kind, seed: u64, operations: u64) -> Self {
        let mut model = Self::default();
        (0..operations).for_each(|number| model.perform(op(kind, seed, number)));
        model
    }

    pub(crate) fn perform(&mut self, op: Op) {
        match op {
            Op::Set { key, seed, bytes, .. } => drop(self.values.insert(key, (seed, bytes))),
            Op::Add { key, seed, bytes } => drop(self.values.entry(key).or_insert((seed, bytes))),
            Op::Delete { key } => drop(self.values.remove(&key)),
            Op::Touch { .. } => {}
            Op::Incr { counter } => *self.counters.entry(counter).or_default() += 1,
            Op::Clear => *self = Self::default(),
        }
    }

    fn value(&self, key: u64) -> Option<Vec<u8>> {
        self.values.get(&key).map(|(seed, bytes)| value(key, *seed, *bytes))
    }

    fn counter(&self, number: u64) -> Option<Vec<u8>> {
        self.counters.get(&number).map(|count| count.to_string().into_bytes())
    }
}

/// Checks that the store has what one of the two models says: the second has one operation more,
/// which may have happened or not. Where entries may be evicted, each may be missing.
pub(crate) fn check(store: &dyn Store, kind: Kind, before: &Model, after: &Model) {
    let keys = if kind == Kind::Roomy { KEYS } else { KEYS * 20 };
    let wrong =
        |what: String, found: Option<Vec<u8>>, one: Option<Vec<u8>>, other: Option<Vec<u8>>| {
            if found == one || found == other || (kind == Kind::Crowded && found.is_none()) {
                return;
            }
            let short = |bytes: Option<Vec<u8>>| {
                bytes.map(|mut bytes| {
                    let length = bytes.len();
                    bytes.truncate(24);
                    (length, bytes)
                })
            };
            panic!("{what}: {:?}, neither {:?} nor {:?}", short(found), short(one), short(other));
        };
    for key in 0..keys {
        let found = store.get(&name(key)).expect("a read");
        wrong(format!("key {key}"), found, before.value(key), after.value(key));
    }
    for number in 0..COUNTERS {
        let found = store.get(&counter(number)).expect("a read");
        if kind == Kind::Crowded {
            // One that was evicted began again.
            let most = after.counters.get(&number).copied().unwrap_or(0);
            assert!(count(found) <= most, "counter {number}");
            continue;
        }
        wrong(format!("counter {number}"), found, before.counter(number), after.counter(number));
    }
}

/// Whether the store has what the model says, as far as it has anything.
#[cfg(feature = "crash-points")]
pub(crate) fn holds(store: &dyn Store, kind: Kind, model: &Model) -> bool {
    let keys = if kind == Kind::Roomy { KEYS } else { KEYS * 20 };
    let is_right = |found: Option<Vec<u8>>, expected: Option<Vec<u8>>| {
        found == expected || (kind == Kind::Crowded && found.is_none())
    };
    (0..keys).all(|key| is_right(store.get(&name(key)).expect("a read"), model.value(key)))
        && (0..COUNTERS).all(|number| {
            let found = store.get(&counter(number)).expect("a read");
            kind == Kind::Crowded || found == model.counter(number)
        })
}

/// The number that a counter has.
fn count(value: Option<Vec<u8>>) -> u64 {
    let text = value.map(|value| String::from_utf8(value).expect("digits"));
    text.map_or(0, |text| text.parse().expect("a number"))
}
