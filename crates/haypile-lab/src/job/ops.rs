//! Operations as words of 32 bits.

/// The largest operand: a word keeps its operation in the upper 4 bits.
pub const MAX_OPERAND: u32 = (1 << OPERAND_BITS) - 1;

const OPERAND_BITS: u32 = 28;

/// What a word asks for. The operand is the number of a key unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Reads a key.
    Get = 0,
    /// Writes the value of a key.
    Set = 1,
    /// Reads several keys at once; the operand is their number, and the words that follow are
    /// these keys.
    Many = 2,
    /// Deletes a key.
    Delete = 3,
    /// Replaces the client by a new and empty one. The operand is zero.
    Fresh = 4,
    /// Reads a key and, if it is not there, writes it: cache-aside.
    GetSet = 5,
    /// Has everything written to disk. The operand is zero.
    Flush = 6,
    /// Does nothing for as many milliseconds as the operand says, so that entries grow old.
    Wait = 7,
}

impl Op {
    /// Every operation, by number.
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::Set,
        Self::Many,
        Self::Delete,
        Self::Fresh,
        Self::GetSet,
        Self::Flush,
        Self::Wait,
    ];

    /// How results call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Many => "many",
            Self::Delete => "delete",
            Self::Fresh => "fresh",
            Self::GetSet => "getset",
            Self::Flush => "flush",
            Self::Wait => "wait",
        }
    }

    /// Whether it is for the cache as a whole, and so for a thread that has it alone.
    pub fn is_for_the_whole(self) -> bool {
        matches!(self, Self::Fresh | Self::Flush | Self::Wait)
    }

    /// Splits a word; `None` for a number that is no operation.
    #[inline]
    pub fn decode(word: u32) -> Option<(Self, u32)> {
        let operand = word & MAX_OPERAND;
        Some(match word >> OPERAND_BITS {
            0 => (Self::Get, operand),
            1 => (Self::Set, operand),
            2 => (Self::Many, operand),
            3 => (Self::Delete, operand),
            4 => (Self::Fresh, operand),
            5 => (Self::GetSet, operand),
            6 => (Self::Flush, operand),
            7 => (Self::Wait, operand),
            _ => return None,
        })
    }

    fn word(self, operand: u32) -> u32 {
        assert!(operand <= MAX_OPERAND, "an operand of {operand}; at most {MAX_OPERAND}");
        (self as u32) << OPERAND_BITS | operand
    }
}

/// A list of operations that is being put together.
///
/// ```
/// use haypile_lab::job::Ops;
///
/// let mut ops = Ops::new();
/// ops.set(7);
/// ops.get_many(&[7, 8, 9]);
/// assert_eq!((ops.operations(), ops.reads()), (4, 3));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ops {
    words: Vec<u32>,
    operations: u64,
    reads: u64,
}

impl Ops {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a key.
    ///
    /// # Panics
    ///
    /// As all methods that add operations, if a number is above [`MAX_OPERAND`].
    pub fn get(&mut self, key: u32) {
        self.push(Op::Get, key, 1, 1);
    }

    /// Writes the value of a key.
    pub fn set(&mut self, key: u32) {
        self.push(Op::Set, key, 1, 0);
    }

    /// Reads several keys at once. It counts as one operation per key.
    pub fn get_many(&mut self, keys: &[u32]) {
        let count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        self.push(Op::Many, count, u64::from(count), u64::from(count));
        self.words.extend(keys.iter().map(|&key| Op::Get.word(key)));
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: u32) {
        self.push(Op::Delete, key, 1, 0);
    }

    /// Replaces the client by a new, empty one. It counts as no operation; its time counts.
    pub fn fresh(&mut self) {
        self.push(Op::Fresh, 0, 0, 0);
    }

    /// Reads a key and writes it on a miss. It counts as one operation.
    pub fn get_set(&mut self, key: u32) {
        self.push(Op::GetSet, key, 1, 1);
    }

    /// Has everything written to disk. It counts as no operation; its time counts.
    pub fn flush(&mut self) {
        self.push(Op::Flush, 0, 0, 0);
    }

    /// Does nothing for so many milliseconds. It counts as no operation; its time counts.
    pub fn wait(&mut self, milliseconds: u32) {
        self.push(Op::Wait, milliseconds, 0, 0);
    }

    /// What runners count as operations: one per key.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// How many of the operations are reads, each of which is a hit or a miss.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// The list as the format has it.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    fn push(&mut self, op: Op, operand: u32, operations: u64, reads: u64) {
        self.words.push(op.word(operand));
        self.operations += operations;
        self.reads += reads;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_the_format_says() {
        let mut ops = Ops::new();
        ops.get(1);
        ops.set(2);
        ops.get_many(&[3, 4]);
        ops.delete(5);
        ops.fresh();
        ops.get_set(MAX_OPERAND);
        ops.flush();
        ops.wait(1);
        let words = [
            1,
            0x1000_0002,
            0x2000_0002,
            3,
            4,
            0x3000_0005,
            0x4000_0000,
            0x5fff_ffff,
            0x6000_0000,
            0x7000_0001,
        ];
        assert_eq!(ops.words(), words);
        assert_eq!((ops.operations(), ops.reads()), (6, 4));
    }

    #[test]
    fn words_come_back() {
        for op in Op::ALL {
            assert_eq!(Op::decode(op.word(77)), Some((op, 77)));
        }
        for unknown in 8..16 {
            assert_eq!(Op::decode(unknown << OPERAND_BITS), None);
        }
    }
}
