//! The next use of each key, which the offline optimum has to know.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Deref;

use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

use super::bytes::Bytes;
use super::table::u32s;
use super::{Trace, TraceError};

/// Requests whose next uses are written at once.
const BLOCK: usize = 1 << 16;

/// For each request of a trace, the number of the next request for the same key; [`u32::MAX`] stands for none.
#[derive(Debug)]
pub struct NextUse<'a>(NextUseColumn<'a>);

#[derive(Debug)]
enum NextUseColumn<'a> {
    OfTrace(&'a [U32]),
    Own(Bytes),
}

impl Deref for NextUse<'_> {
    type Target = [U32];

    fn deref(&self) -> &[U32] {
        match &self.0 {
            NextUseColumn::OfTrace(column) => column,
            NextUseColumn::Own(bytes) => u32s(bytes),
        }
    }
}

impl Trace {
    /// Returns, for each request, the number of the next request for the same key: from the trace's own column, or
    /// computed with up to `memory_bytes` of memory for the result.
    ///
    /// The trace's own column is tested in one pass over the requests, each time, with 4 bytes of
    /// memory per key. A new column is made in one pass from the end, with as much memory, and is
    /// kept in memory up to `memory_bytes` and in a temporary file beyond.
    ///
    /// # Errors
    /// [`TraceError::NextUse`] if the trace's own column is wrong, [`TraceError::Temporary`] if
    /// the temporary file fails.
    pub fn next_use_within(&self, memory_bytes: usize) -> Result<NextUse<'_>, TraceError> {
        Ok(NextUse(match self.next_use() {
            Some(column) => {
                verify(self.ids(), self.keys(), column)?;
                NextUseColumn::OfTrace(column)
            }
            None => NextUseColumn::Own(compute(self.ids(), self.keys(), memory_bytes)?),
        }))
    }

    /// Returns, for each request, the number of the next request for the same key, as
    /// [`next_use_within`](Self::next_use_within) does with 256 MiB of memory.
    ///
    /// # Errors
    /// [`TraceError::NextUse`] if the trace's own column is wrong, [`TraceError::Temporary`] if a
    /// temporary file is needed and fails.
    pub fn compute_next_use(&self) -> Result<NextUse<'_>, TraceError> {
        self.next_use_within(256 << 20)
    }
}

/// Proves that `column` has the next uses of `ids`: each key comes next where its last request
/// announced it, and never again where that was announced.
fn verify(ids: &[U32], keys: u32, column: &[U32]) -> Result<(), TraceError> {
    // By id, the request that was announced last. Keys are numbered in order of first appearance,
    // so that the next new key is the one behind the end.
    let mut announced: Vec<u32> = Vec::with_capacity(keys as usize);
    for (request, (id, next)) in ids.iter().zip(column).enumerate() {
        match announced.get_mut(id.get() as usize) {
            None => announced.push(next.get()),
            Some(announced) if *announced as usize == request => *announced = next.get(),
            Some(announced) => return Err(wrong(&ids[..request], *id, *announced, Some(request))),
        }
    }
    match announced.iter().position(|&announced| announced != u32::MAX) {
        None => Ok(()),
        Some(id) => {
            let key = U32::new(u32::try_from(id).expect("a trace has fewer than 2^32 keys"));
            Err(wrong(ids, key, announced[id], None))
        }
    }
}

/// The error about the last request for `id` among `before`, which announced another request than
/// `actual`.
#[cold]
fn wrong(before: &[U32], id: U32, announced: u32, actual: Option<usize>) -> TraceError {
    let request = before.iter().rposition(|other| *other == id).expect("it announced something");
    TraceError::NextUse {
        request: request as u64,
        announced: (announced != u32::MAX).then_some(announced.into()),
        actual: actual.map(|actual| actual as u64),
    }
}

/// Computes, for each request, the number of the next request for the same key, as a column.
pub(super) fn compute(ids: &[U32], keys: u32, memory_bytes: usize) -> Result<Bytes, TraceError> {
    // By id, the request that was seen last, which is the next one when looking from the end.
    let mut next = vec![u32::MAX; keys as usize];
    if size_of_val(ids) <= memory_bytes {
        let mut column = vec![0; size_of_val(ids)];
        let entries = <[U32] as zerocopy::FromBytes>::mut_from_bytes(&mut column)
            .expect("its length is a multiple of four");
        fill(entries, ids, 0, &mut next);
        return Ok(Bytes::Memory(column));
    }
    write(ids, &mut next).map_err(TraceError::temporary)
}

fn write(ids: &[U32], next: &mut [u32]) -> io::Result<Bytes> {
    let mut file: File = tempfile::tempfile()?;
    let mut block = vec![U32::ZERO; BLOCK];
    for (number, ids) in ids.chunks(BLOCK).enumerate().rev() {
        let column = &mut block[..ids.len()];
        fill(column, ids, number * BLOCK, next);
        file.seek(SeekFrom::Start((number * BLOCK * size_of::<U32>()) as u64))?;
        file.write_all(column.as_bytes())?;
    }
    Bytes::map(&file)
}

/// Fills the column for the requests `ids`, the first of which is request number `first`.
fn fill(column: &mut [U32], ids: &[U32], first: usize, next: &mut [u32]) {
    for (offset, (entry, id)) in column.iter_mut().zip(ids).enumerate().rev() {
        let request = u32::try_from(first + offset).expect("a trace has fewer than 2^32 requests");
        *entry = std::mem::replace(&mut next[id.get() as usize], request).into();
    }
}
