//! Assigns dense ids to keys, in order of first appearance.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use zerocopy::little_endian::U64;

use super::Key;

/// The kind of a key that is a number, in the column of key kinds of an `.hpt` file.
pub(super) const NUMBER: u8 = 0;
/// The kind of a key that is a text, in the column of key kinds of an `.hpt` file.
pub(super) const TEXT: u8 = 1;

/// The table that assigns numbers (ids) to the distinct keys of a trace that is being built.
///
/// The tables hold ids alone, and look at the keys in the columns of an `.hpt` image, which are
/// built at the same time: a number of 8 bytes costs 8 bytes and its place in a table.
#[derive(Debug, Default)]
pub(super) struct Keys {
    hasher: RandomState,
    numbers: HashTable<u32>,
    texts: HashTable<u32>,
    columns: KeyColumns,
}

/// The growing columns of an `.hpt` file that contain the keys of a trace: their numbers, kinds (number or text) and
/// texts.
#[derive(Debug, Default)]
pub(super) struct KeyColumns {
    /// The number of each key, or the place in `text` where its text begins.
    words: Vec<U64>,
    /// The kind of each key, `NUMBER` or `TEXT`, up to the last text.
    kinds: Vec<u8>,
    /// The texts of keys, each behind its length.
    text: Vec<u8>,
}

impl KeyColumns {
    /// Returns the number of keys in the columns so far.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.words.len()).expect("an id is tested when it is given")
    }

    /// Appends a key to the columns. A text has at most 65,535 bytes.
    pub(super) fn push(&mut self, key: Key<'_>) {
        match key {
            Key::Number(number) => self.words.push(number.into()),
            Key::Text(key) => {
                self.kinds.resize(self.words.len(), NUMBER);
                self.kinds.push(TEXT);
                self.words.push((self.text.len() as u64).into());
                let length = u16::try_from(key.len()).expect("the caller has tested the length");
                self.text.extend_from_slice(&length.to_le_bytes());
                self.text.extend_from_slice(key);
            }
        }
    }

    /// Returns the three columns of the keys: the number of each key or the position of its text, its kind, and the
    /// texts; the latter two are empty if every key is a number.
    pub(super) fn finish(self) -> (Vec<U64>, Vec<u8>, Vec<u8>) {
        let Self { words, mut kinds, text } = self;
        if !text.is_empty() {
            kinds.resize(words.len(), NUMBER);
        }
        (words, kinds, text)
    }
}

/// The error that a trace has too many distinct keys.
#[derive(Debug)]
pub(super) struct Full;

impl Keys {
    /// Returns the number of distinct keys of the trace so far.
    pub(super) fn len(&self) -> u32 {
        self.columns.len()
    }

    /// Returns the id of a key, and adds the key if it is new; a new key has the previous number of keys as its id.
    ///
    /// The caller has tested that a text has at most 65,535 bytes.
    pub(super) fn id(&mut self, key: Key<'_>) -> Result<u32, Full> {
        match key {
            Key::Number(number) => self.number(number),
            Key::Text(text) => self.text(text),
        }
    }

    fn number(&mut self, number: u64) -> Result<u32, Full> {
        let Self { hasher, numbers, columns, .. } = self;
        let words = &columns.words;
        let entry = numbers.entry(
            hasher.hash_one(number),
            |&id| words[id as usize].get() == number,
            |&id| hasher.hash_one(words[id as usize].get()),
        );
        match entry {
            Entry::Occupied(occupied) => Ok(*occupied.get()),
            Entry::Vacant(vacant) => {
                let id = next_id(words)?;
                vacant.insert(id);
                columns.push(Key::Number(number));
                Ok(id)
            }
        }
    }

    fn text(&mut self, key: &[u8]) -> Result<u32, Full> {
        let Self { hasher, texts, columns, .. } = self;
        let KeyColumns { words, text, .. } = &*columns;
        let entry = texts.entry(
            hasher.hash_one(key),
            |&id| text_at(text, words[id as usize].get()) == key,
            |&id| hasher.hash_one(text_at(text, words[id as usize].get())),
        );
        match entry {
            Entry::Occupied(occupied) => Ok(*occupied.get()),
            Entry::Vacant(vacant) => {
                let id = next_id(words)?;
                vacant.insert(id);
                columns.push(Key::Text(key));
                Ok(id)
            }
        }
    }

    /// Returns the three columns of the keys for an `.hpt` file: numbers or positions of texts, kinds, and texts, as
    /// [`KeyColumns::finish`] does.
    pub(super) fn finish(self) -> (Vec<U64>, Vec<u8>, Vec<u8>) {
        self.columns.finish()
    }
}

fn next_id(words: &[U64]) -> Result<u32, Full> {
    u32::try_from(words.len()).ok().filter(|&id| id < u32::MAX - 1).ok_or(Full)
}

/// Returns the text of the key that begins at `start` in a valid column of key texts.
pub(super) fn text_at(text: &[u8], start: u64) -> &[u8] {
    let start = usize::try_from(start).expect("it lies in memory");
    let (length, rest) = text[start..].split_at(2);
    &rest[..usize::from(u16::from_le_bytes([length[0], length[1]]))]
}
