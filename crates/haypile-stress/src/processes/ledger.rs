//! The ledger: the writes that were attempted, and those that were acknowledged.
//!
//! The ledger is a file. What a process has written into it is there for all others at once, and
//! survives its kill. Each part has a checksum, because a read may meet a write half done.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use super::plan::{Plan, SHARED_KEYS};
use crate::filler::mix;

/// The bytes of an entry, and of a pair of counts.
const ENTRY_BYTES: u64 = 128;
const COUNT_BYTES: u64 = 32;

/// Acknowledged writes that an entry remembers, for the age of what levels may still serve.
const REMEMBERED: usize = 4;

/// The time of a read of the ledger after which a part of it is taken for damaged.
const READ_ATTEMPTS: u32 = 10_000;

/// The recorded expiry of an entry that never expires, in microseconds.
pub(super) const NEVER_US: u64 = u64::MAX;

/// The state of a key that one thread alone writes: the last write or deletion, and whether the
/// entry is present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The number of the key's write or deletion, counted from 1, that made the state; 0 before the
    /// first.
    pub(super) sequence: u64,
    pub(super) is_there: bool,
}

/// The record of the writes of a key that one thread alone writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The state of the key after the operation in progress; the acknowledged state if there is
    /// none.
    pub(super) attempted: State,
    pub(super) acknowledged: State,
    /// Bounds on the time at which the entry expires, in microseconds of the time of day.
    pub(super) expires_from_us: u64,
    pub(super) expires_until_us: u64,
    /// The latest acknowledged writes of the key: the sequence number of each, and the time by
    /// which it was acknowledged.
    pub(super) history: [(u64, u64); REMEMBERED],
}

/// The number of changes that one writer has made to a shared key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) attempted: u64,
    pub(super) acknowledged: u64,
}

/// A key that all writers share, and whose changes are counted: a counter, or a value changed by
/// compare-and-swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Counter(u64),
    Swapped(u64),
}

/// The open file in which all processes record their writes (the ledger).
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
    owned_keys: u64,
    writing_threads: u64,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            attempted: State::default(),
            acknowledged: State::default(),
            expires_from_us: NEVER_US,
            expires_until_us: NEVER_US,
            history: [(0, 0); REMEMBERED],
        }
    }
}

impl Entry {
    /// Returns this record of a key with its attempted state (after the operation in progress) as
    /// the acknowledged one.
    pub(super) fn acknowledge(mut self) -> Self {
        if self.attempted.sequence != self.acknowledged.sequence {
            self.history.rotate_right(1);
            self.history[0] = (self.attempted.sequence, now_us());
        }
        Self { acknowledged: self.attempted, ..self }
    }

    /// Returns the sequence number of the key's next write or deletion.
    pub(super) fn next_sequence(&self) -> u64 {
        self.attempted.sequence.max(self.acknowledged.sequence) + 1
    }

    /// Returns the time from which the key's value with this sequence number was certainly
    /// outdated, as far as the record remembers.
    pub(super) fn superseded_us(&self, sequence: u64) -> Option<u64> {
        let later = self.history.iter().filter(|(other, _)| *other > sequence);
        later.map(|(_, acknowledged_us)| *acknowledged_us).min()
    }

    fn encode(self) -> [u64; 6 + 2 * REMEMBERED] {
        let state = |state: State| state.sequence << 1 | u64::from(state.is_there);
        let mut words = [0; 6 + 2 * REMEMBERED];
        words[0] = state(self.attempted);
        words[1] = state(self.acknowledged);
        words[2] = self.expires_from_us;
        words[3] = self.expires_until_us;
        for (pair, (sequence, us)) in words[4..].chunks_exact_mut(2).zip(self.history) {
            pair.copy_from_slice(&[sequence, us]);
        }
        seal(&mut words);
        words
    }

    fn decode(words: &[u64]) -> Self {
        let state = |word: u64| State { sequence: word >> 1, is_there: word & 1 == 1 };
        let mut history = [(0, 0); REMEMBERED];
        for (pair, words) in history.iter_mut().zip(words[4..].chunks_exact(2)) {
            *pair = (words[0], words[1]);
        }
        Self {
            attempted: state(words[0]),
            acknowledged: state(words[1]),
            expires_from_us: words[2],
            expires_until_us: words[3],
            history,
        }
    }
}

impl Ledger {
    /// Opens the file in which writes are recorded, or creates it.
    pub(super) fn open(plan: &Plan) -> io::Result<Self> {
        let path = plan.directory.join("ledger");
        let file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let (owned_keys, writing_threads) = (plan.owned_keys(), plan.writing_threads());
        Ok(Self { file, owned_keys, writing_threads })
    }

    /// Creates and initializes the file in which writes are recorded.
    pub(super) fn create(plan: &Plan) -> io::Result<Self> {
        let ledger = Self::open(plan)?;
        for key in 0..ledger.owned_keys {
            ledger.write(key, Entry::default())?;
        }
        for writer in 0..ledger.writing_threads {
            for counted in Counted::all() {
                ledger.write_count(writer, counted, Count::default())?;
            }
        }
        Ok(ledger)
    }

    pub(super) fn read(&self, key: u64) -> io::Result<Entry> {
        let mut words = [0; 6 + 2 * REMEMBERED];
        self.read_words(key * ENTRY_BYTES, &mut words)?;
        Ok(Entry::decode(&words))
    }

    pub(super) fn write(&self, key: u64, entry: Entry) -> io::Result<()> {
        self.write_words(key * ENTRY_BYTES, &entry.encode())
    }

    pub(super) fn read_count(&self, writer: u64, counted: Counted) -> io::Result<Count> {
        let mut words = [0; 3];
        self.read_words(self.count_at(writer, counted), &mut words)?;
        Ok(Count { attempted: words[0], acknowledged: words[1] })
    }

    pub(super) fn write_count(
        &self,
        writer: u64,
        counted: Counted,
        count: Count,
    ) -> io::Result<()> {
        let mut words = [count.attempted, count.acknowledged, 0];
        seal(&mut words);
        self.write_words(self.count_at(writer, counted), &words)
    }

    /// Returns the number of changes that all writers together have made to a shared key.
    pub(super) fn sum(&self, counted: Counted) -> io::Result<Count> {
        let mut sum = Count::default();
        for writer in 0..self.writing_threads {
            let count = self.read_count(writer, counted)?;
            sum.attempted += count.attempted;
            sum.acknowledged += count.acknowledged;
        }
        Ok(sum)
    }

    fn count_at(&self, writer: u64, counted: Counted) -> u64 {
        let number = match counted {
            Counted::Counter(number) => number,
            Counted::Swapped(number) => SHARED_KEYS + number,
        };
        self.owned_keys * ENTRY_BYTES + (writer * 2 * SHARED_KEYS + number) * COUNT_BYTES
    }

    fn read_words(&self, at: u64, words: &mut [u64]) -> io::Result<()> {
        let mut bytes = [0; 8 * (6 + 2 * REMEMBERED)];
        let bytes = &mut bytes[..8 * words.len()];
        for _ in 0..READ_ATTEMPTS {
            self.file.read_exact_at(bytes, at)?;
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            }
            if is_sealed(words) {
                return Ok(());
            }
            thread::yield_now();
        }
        Err(io::Error::other(format!("the ledger is damaged at byte {at}")))
    }

    fn write_words(&self, at: u64, words: &[u64]) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, at)
    }
}

impl Counted {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let numbers = 0..SHARED_KEYS;
        numbers.clone().map(Self::Counter).chain(numbers.map(Self::Swapped))
    }
}

/// Returns the time of day in microseconds since 1970.
pub(super) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Sets the last word to the checksum of the others.
fn seal(words: &mut [u64]) {
    if let Some((sum, others)) = words.split_last_mut() {
        *sum = checksum(others);
    }
}

fn is_sealed(words: &[u64]) -> bool {
    words.split_last().is_some_and(|(sum, others)| *sum == checksum(others))
}

fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(1, |sum, word| mix(sum ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_what_was_written() {
        let attempted = State { sequence: 7, is_there: true };
        let entry =
            Entry { attempted, expires_from_us: 5, expires_until_us: 6, ..Entry::default() };
        assert_eq!(Entry::decode(&entry.encode()), entry);
        assert!(is_sealed(&entry.encode()));
        let acknowledged = entry.acknowledge();
        assert_eq!(acknowledged.acknowledged, attempted);
        assert!(acknowledged.superseded_us(6).is_some());
        assert_eq!(acknowledged.superseded_us(7), None);
    }

    #[test]
    fn a_word_that_is_torn_is_noticed() {
        let mut words = Entry::default().encode();
        words[2] ^= 1 << 40;
        assert!(!is_sealed(&words));
        assert!(!is_sealed(&[0; 14]), "a hole in the file");
    }
}
