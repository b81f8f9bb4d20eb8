//! Operations as words of 32 bits.

/// The largest operand of a job's operation: the upper 4 of 32 bits encode the operation.
pub const MAX_OPERAND: u32 = (1 << OPERAND_BITS) - 1;

const OPERAND_BITS: u32 = 28;

/// An operation of a job on the cache, such as a read. The operand is the number of a key unless
/// stated otherwise.
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
    /// Waits for as many milliseconds as the operand says, so that entries grow old.
    Wait = 7,
    /// Removes all entries. The operand is zero.
    Clear = 8,
    /// Reads a key and, if it is not there, makes its value and does not write it: for values that
    /// must not be stored.
    Load = 9,
    /// Writes the value of a key, which expires after a second.
    Expire = 10,
    /// Reads a key and, if it is not there, has its value computed, by no more callers than the
    /// cache has to have: protection from a stampede.
    Compute = 11,
}

impl Op {
    /// All operations that a job can have, in the order of their numbers in the job format.
    pub const ALL: [Self; 12] = [
        Self::Get,
        Self::Set,
        Self::Many,
        Self::Delete,
        Self::Fresh,
        Self::GetSet,
        Self::Flush,
        Self::Wait,
        Self::Clear,
        Self::Load,
        Self::Expire,
        Self::Compute,
    ];

    /// Returns the name of the operation in results, such as `get`.
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
            Self::Clear => "clear",
            Self::Load => "load",
            Self::Expire => "expire",
            Self::Compute => "compute",
        }
    }

    /// Whether the operation affects the whole cache, so that only one thread may do it while no
    /// other works.
    pub fn is_for_the_whole(self) -> bool {
        matches!(self, Self::Fresh | Self::Flush | Self::Wait | Self::Clear)
    }

    /// Whether the operation is unknown to runners of the job format's versions 1 and 2.
    pub(super) fn is_of_schema_3(self) -> bool {
        self as u8 >= Self::Clear as u8
    }

    /// Splits an encoded operation of a job into operation and operand; `None` for an unknown
    /// operation.
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
            8 => (Self::Clear, operand),
            9 => (Self::Load, operand),
            10 => (Self::Expire, operand),
            11 => (Self::Compute, operand),
            _ => return None,
        })
    }

    fn word(self, operand: u32) -> u32 {
        assert!(operand <= MAX_OPERAND, "an operand of {operand}; at most {MAX_OPERAND}");
        (self as u32) << OPERAND_BITS | operand
    }
}

/// A list of a job's operations, to which operations are added.
///
/// ```
/// use haypile_measure::job::Ops;
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
    /// Creates an empty list of a job's operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operation that reads a key.
    ///
    /// # Panics
    ///
    /// As all methods that add operations, if a number is above [`MAX_OPERAND`].
    pub fn get(&mut self, key: u32) {
        self.push(Op::Get, key, 1, 1);
    }

    /// Adds an operation that writes the value of a key.
    pub fn set(&mut self, key: u32) {
        self.push(Op::Set, key, 1, 0);
    }

    /// Adds a read of several keys at once. It counts as one operation per key.
    pub fn get_many(&mut self, keys: &[u32]) {
        let count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        self.push(Op::Many, count, u64::from(count), u64::from(count));
        self.words.extend(keys.iter().map(|&key| Op::Get.word(key)));
    }

    /// Adds an operation that deletes a key.
    pub fn delete(&mut self, key: u32) {
        self.push(Op::Delete, key, 1, 0);
    }

    /// Adds an operation that replaces the client by a new, empty one. It is not counted as an
    /// operation; its time counts.
    pub fn fresh(&mut self) {
        self.push(Op::Fresh, 0, 0, 0);
    }

    /// Adds an operation that reads a key and writes it on a miss. It counts as one operation.
    pub fn get_set(&mut self, key: u32) {
        self.push(Op::GetSet, key, 1, 1);
    }

    /// Adds an operation that flushes the cache to disk. It is not counted as an operation; its
    /// time counts.
    pub fn flush(&mut self) {
        self.push(Op::Flush, 0, 0, 0);
    }

    /// Adds a wait for a number of milliseconds. It is not counted as an operation; its time
    /// counts.
    pub fn wait(&mut self, milliseconds: u32) {
        self.push(Op::Wait, milliseconds, 0, 0);
    }

    /// Adds an operation that removes all entries of the cache. It is not counted as an operation;
    /// its time counts.
    pub fn clear(&mut self) {
        self.push(Op::Clear, 0, 0, 0);
    }

    /// Adds an operation that reads a key, and on a miss creates the value without writing it. It
    /// counts as one operation.
    pub fn load(&mut self, key: u32) {
        self.push(Op::Load, key, 1, 1);
    }

    /// Adds an operation that writes the value of a key, which expires after a second.
    pub fn expire(&mut self, key: u32) {
        self.push(Op::Expire, key, 1, 0);
    }

    /// Adds an operation that reads a key or computes its value. It counts as one operation, and as
    /// a miss if the caller computed the value itself.
    pub fn compute(&mut self, key: u32) {
        self.push(Op::Compute, key, 1, 1);
    }

    /// Appends the operations of another list of a job's operations.
    pub fn extend(&mut self, other: &Self) {
        self.words.extend_from_slice(&other.words);
        self.operations += other.operations;
        self.reads += other.reads;
    }

    /// Whether the list has an operation that is unknown to runners of the job format's versions 1
    /// and 2.
    pub(super) fn is_of_schema_3(&self) -> bool {
        let mut words = self.words.iter();
        let mut decoded = words.by_ref().filter_map(|&word| Op::decode(word));
        // The keys of a read of many look like reads, which every schema has.
        decoded.any(|(op, _)| op.is_of_schema_3())
    }

    /// Returns the number of operations in the list, as runners count them: one per key.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Returns the number of reads in the list of operations, each a hit or a miss.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Returns the list of operations as encoded words of the job format.
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
        assert!(!ops.is_of_schema_3());
        ops.clear();
        ops.load(2);
        ops.expire(3);
        ops.compute(4);
        assert!(ops.is_of_schema_3());
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
            0x8000_0000,
            0x9000_0002,
            0xa000_0003,
            0xb000_0004,
        ];
        assert_eq!(ops.words(), words);
        assert_eq!((ops.operations(), ops.reads()), (9, 6));
    }

    #[test]
    fn words_come_back() {
        for op in Op::ALL {
            assert_eq!(Op::decode(op.word(77)), Some((op, 77)));
        }
        for unknown in 12..16 {
            assert_eq!(Op::decode(unknown << OPERAND_BITS), None);
        }
    }
}
