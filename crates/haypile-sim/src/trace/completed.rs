//! A column of a quantity that only some requests state.

use std::collections::HashMap;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::TraceError;
use super::bytes::Bytes;
use super::column::Column;

/// An integer as it is in a column; its default is 0.
pub(super) trait Entry:
    Copy + Default + PartialEq + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned
{
}

impl Entry for U32 {}
impl Entry for U64 {}

/// A column of a quantity of each key, such as its size, that only some requests state: the others have the last known one of
/// their key, or else the first that comes later, or 0.
#[derive(Debug)]
pub(super) struct CompletedColumn<T> {
    column: Column,
    /// Last quantity of each key, indexed by id; a key beyond the end has none that is known.
    last: Vec<T>,
    /// Whether the quantity of each key is known, indexed by id.
    is_known: Vec<bool>,
    /// The first known quantities of keys whose first requests state none.
    late: HashMap<u32, T>,
}

impl<T: Entry> CompletedColumn<T> {
    /// Creates the column of a quantity that no request before has stated: `column` has a 0 for each of these.
    pub(super) fn new(column: Column) -> Self {
        Self { column, last: Vec::new(), is_known: Vec::new(), late: HashMap::new() }
    }

    pub(super) fn push(&mut self, id: u32, stated: Option<T>, is_new_key: bool) {
        let at = id as usize;
        if self.last.len() <= at {
            self.last.resize(at + 1, T::default());
            self.is_known.resize(at + 1, false);
        }
        if let Some(stated) = stated {
            let was_known = std::mem::replace(&mut self.is_known[at], true);
            if !was_known && !is_new_key && stated != T::default() {
                self.late.insert(id, stated);
            }
            self.last[at] = stated;
        }
        self.column.push(self.last[at].as_bytes());
    }

    /// Moves what is in memory to a temporary file.
    pub(super) fn spill(&mut self) -> Result<(), TraceError> {
        self.column.spill()
    }

    /// Returns the whole column, in which requests before the first known quantity of their key have that.
    pub(super) fn finish(mut self, ids: &Bytes, memory_bytes: usize) -> Result<Bytes, TraceError> {
        let entries = self.column.finish()?;
        if self.late.is_empty() {
            return Ok(entries);
        }
        let mut completed = Column::default();
        let stated = <[T]>::ref_from_bytes(&entries).expect("whole entries were pushed");
        for (id, entry) in super::table::u32s(ids).iter().zip(stated) {
            let known = match self.late.get(&id.get()) {
                Some(&late) if *entry == T::default() => late,
                Some(_) => {
                    self.late.remove(&id.get());
                    *entry
                }
                None => *entry,
            };
            completed.push(known.as_bytes());
            if completed.buffered_bytes() > memory_bytes {
                completed.spill()?;
            }
        }
        completed.finish()
    }
}
