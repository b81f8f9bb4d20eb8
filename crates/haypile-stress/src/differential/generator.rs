//! The operation of each step, which follows from the seed and the step's number alone: a part of a
//! run has the same operations as the whole.

use std::time::Duration;

use haypile::{Durability, Ttl};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::key::Key;
use super::operation::{
    ComputedLife, Condition, Incident, KnownVersion, Operation, PinForm, ReadForm, Step, Write,
    WriteForm,
};
use super::value::{HEADS, TAILS, Value};
use crate::filler::mix;

/// Durations that are near a limit of some store: below its resolution, at it, at memcached's month
/// and at the engine's 500 years.
const LIVES: [Duration; 18] = [
    Duration::from_nanos(1),
    Duration::from_nanos(300),
    Duration::from_micros(400),
    Duration::from_nanos(999_999),
    Duration::from_millis(1),
    Duration::from_micros(1_500),
    Duration::from_millis(7),
    Duration::from_millis(40),
    Duration::from_millis(900),
    Duration::from_secs(1),
    Duration::from_secs(61),
    Duration::from_hours(5),
    Duration::from_hours(30 * 24),
    Duration::from_hours(31 * 24),
    Duration::from_hours(365 * 24),
    Duration::from_hours(20 * 365 * 24),
    Duration::from_hours(501 * 366 * 24),
    Duration::MAX,
];

/// The options of a random run of operations in addition to its seed: numbers of keys, namespaces
/// and handles, and the longest value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) keys: u16,
    pub(super) longest_value_bytes: usize,
    pub(super) tenants: usize,
    pub(super) handles: usize,
}

/// Returns the random operation with this number in a run, which the seed and the number determine.
pub(super) fn step(shape: Shape, seed: u64, number: u64) -> Step {
    let mut draw =
        Draw { random: ChaCha8Rng::seed_from_u64(mix(seed) ^ mix(!number)), shape, number };
    Step {
        number,
        tenant: draw.below(shape.tenants),
        handle: draw.below(shape.handles),
        operation: draw.operation(),
    }
}

/// The random choices of one step.
struct Draw {
    random: ChaCha8Rng,
    shape: Shape,
    number: u64,
}

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    /// Returns true once in `number` draws.
    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a key, one of a few more often than one of many.
    fn key(&mut self) -> Key {
        let number = self.random.random_range(0..self.shape.keys);
        Key(number >> self.of(&[0, 0, 0, 1, 2, 3]))
    }

    /// Returns some keys, which may repeat.
    fn keys(&mut self) -> Vec<Key> {
        let count = self.of(&[0, 1, 2, 3, 5, 9, 20, 40]);
        let few = self.one_in(3);
        let first = self.key();
        (0..count).map(|_| if few && self.one_in(2) { first } else { self.key() }).collect()
    }

    /// Returns a life that is written; zero, which every store refuses, now and then.
    fn ttl(&mut self) -> Ttl {
        match self.below(20) {
            0..9 => Ttl::Default,
            9..12 => Ttl::Never,
            12 if self.one_in(4) => Ttl::After(Duration::ZERO),
            _ => Ttl::After(self.of(&LIVES)),
        }
    }

    fn length(&mut self) -> usize {
        let longest = self.shape.longest_value_bytes;
        let bytes = match self.below(100) {
            0..8 => self.of(&[0, 0, 1, 2]),
            8..60 => self.below(300),
            60..88 => self.below(4_000),
            // Around the lengths from which values are read in place and span segments.
            88..92 => self.of(&[16_300, 32_700, 65_400]) + self.below(300),
            92..98 => self.below(120_000),
            _ => self.below(longest + 1),
        };
        bytes.min(longest)
    }

    fn value(&mut self) -> Value {
        if self.one_in(5) {
            return Value::Number(match self.below(5) {
                0 => u64::MAX,
                1 => self.random.random(),
                _ => self.random.random_range(0..120),
            });
        }
        // Number and a few bits more, because a step can have several values.
        let identity = self.number << 8 | self.random.random_range(0..256);
        let head = if self.one_in(6) { self.of(&HEADS) } else { &[] };
        let tail = if self.one_in(12) { self.of(&TAILS) } else { &[] };
        Value::Bytes { identity, bytes: self.length(), head, tail, repeats: self.one_in(3) }
    }

    fn known_version(&mut self) -> KnownVersion {
        match self.below(8) {
            0 => KnownVersion::Invented,
            1 | 2 => KnownVersion::Earlier,
            _ => KnownVersion::Latest,
        }
    }

    fn write(&mut self) -> Write {
        let condition = match self.below(12) {
            0 | 1 => Condition::Add,
            2 => Condition::Replace,
            3 | 4 => Condition::Cas(self.known_version()),
            _ => Condition::None,
        };
        Write { key: self.key(), value: self.value(), condition, ttl: self.ttl() }
    }

    fn computation(&mut self) -> Operation {
        let incident = match self.below(16) {
            0 => Incident::Write(self.value()),
            1 => Incident::WriteMany(self.value()),
            2 => Incident::Delete,
            3 => Incident::DeleteMany,
            7 if self.one_in(6) => Incident::Clear,
            4 => Incident::Recurse,
            5 => Incident::Fail,
            6 if self.one_in(3) => Incident::Panic,
            _ => Incident::None,
        };
        let freshness = if self.one_in(2) {
            ComputedLife::Ttl(self.ttl())
        } else {
            let zero = Duration::ZERO;
            ComputedLife::Fresh {
                fresh: if self.one_in(30) { zero } else { self.of(&LIVES) },
                stale: if self.one_in(3) { zero } else { self.of(&LIVES) },
                early: if self.one_in(3) { zero } else { self.of(&LIVES) },
            }
        };
        Operation::Compute { key: self.key(), value: self.value(), freshness, incident }
    }

    fn operation(&mut self) -> Operation {
        match self.below(1_000) {
            0..250 => {
                let form = self.of(&[
                    ReadForm::Get,
                    ReadForm::GetInto,
                    ReadForm::GetVersioned,
                    ReadForm::GetVersioned,
                    ReadForm::GetPinned,
                    ReadForm::GetInPlace,
                ]);
                Operation::Read { key: self.key(), form }
            }
            250..300 => Operation::ReadMany { keys: self.keys() },
            300..330 => Operation::Contains { key: self.key() },
            330..570 => {
                let form = match self.below(12) {
                    0 | 1 => WriteForm::Reserve,
                    2 => WriteForm::Abandon,
                    3 => WriteForm::Keep,
                    _ => WriteForm::Set,
                };
                Operation::Write { write: self.write(), form }
            }
            570..620 => {
                let keys = self.keys();
                let writes = keys.into_iter().map(|key| Write { key, ..self.write() }).collect();
                Operation::WriteMany { writes }
            }
            620..640 => Operation::Commit { is_dropped: self.one_in(3) },
            640..680 => Operation::Delete { key: self.key() },
            680..710 => Operation::DeleteVersion { key: self.key(), version: self.known_version() },
            710..725 => Operation::DeleteMany { keys: self.keys() },
            725..765 => Operation::Touch { key: self.key(), ttl: self.ttl() },
            765..820 => {
                let delta = if self.one_in(8) { u64::MAX } else { self.random.random_range(0..30) };
                Operation::Count { key: self.key(), delta, is_up: self.one_in(2) }
            }
            820..875 => self.computation(),
            875..905 => {
                let form = self.of(&[PinForm::Pinned, PinForm::InPlace]);
                Operation::Pin { key: self.key(), form }
            }
            905..925 => Operation::Unpin,
            925..965 => {
                // Years are rare: the clock ends after 584 of them.
                let lives = if self.one_in(2_000) { 16 } else { 12 };
                Operation::Advance { by: self.of(&LIVES[..lives]) }
            }
            965..977 => Operation::Census { page: self.of(&[1, 2, 7, 50, 1_000]) },
            977..982 => {
                let durability = self.of(&[Durability::Visible, Durability::Disk]);
                Operation::Flush { durability }
            }
            982..994 => Operation::ReadBelow { key: self.key() },
            994 => Operation::Clear,
            995 | 996 => {
                let writes = (0..self.below(4)).map(|_| self.write()).collect();
                Operation::Reopen { writes }
            }
            _ => Operation::Resize { percent: self.of(&[25, 50, 80, 100, 100, 100]) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { keys: 48, longest_value_bytes: 1_500_000, tenants: 2, handles: 2 };

    #[test]
    fn a_step_depends_on_seed_and_number_alone() {
        let text = |seed, number| step(SHAPE, seed, number).to_string();
        assert_eq!(text(1, 77), text(1, 77));
        let others: Vec<String> = (0..50).map(|number| text(2, number)).collect();
        assert_ne!(others, (0..50).map(|number| text(1, number)).collect::<Vec<_>>());
    }

    #[test]
    fn a_run_has_every_operation() {
        let mut kinds: Vec<_> = (0..20_000)
            .map(|number| std::mem::discriminant(&step(SHAPE, 3, number).operation))
            .collect();
        kinds.sort_by_key(|kind| format!("{kind:?}"));
        kinds.dedup();
        assert_eq!(kinds.len(), 21, "from Read to Reopen");
    }
}
