//! Checks an image once, so that nothing has to be tested when it is used.

use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

use super::HptError;
use super::layout::{
    ALIGNMENT, BYTE_ORDER, CHECKED_HEADER_BYTES, ColumnType, DirectoryEntry, ENTRY_BYTES,
    HEADER_BYTES, Header, MAGIC, MAX_COLUMNS, VERSION,
};
use crate::trace::sample;

/// The positions of the columns in the checked bytes of an `.hpt` file (Haypile's trace format).
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) requests: usize,
    pub(crate) keys: u32,
    ranges: [Option<Range<usize>>; ColumnType::ALL.len()],
}

impl Columns {
    /// Returns the range of bytes of a column in the `.hpt` file; `None` if the file does not have the column.
    pub(crate) fn get(&self, kind: ColumnType) -> Option<Range<usize>> {
        self.ranges[Self::slot(kind)].clone()
    }

    fn slot(kind: ColumnType) -> usize {
        ColumnType::ALL.iter().position(|&other| other == kind).expect("ALL has every kind")
    }
}

/// Checks that the bytes of an `.hpt` file are valid (checksums, lengths, ids and so on), and returns the positions of
/// its columns.
pub(crate) fn check(image: &[u8]) -> Result<Columns, HptError> {
    let (header, directory) = check_header(image)?;
    let mut columns = Columns {
        requests: usize::try_from(header.requests.get())
            .ok()
            .filter(|&n| n < u32::MAX as usize)
            .ok_or_else(|| HptError::damaged("it claims more than 4,294,967,294 requests"))?,
        keys: header.keys.get(),
        ranges: Default::default(),
    };
    if columns.keys == u32::MAX {
        return Err(HptError::damaged("it claims more than 4,294,967,294 keys"));
    }
    for entry in directory {
        // A column of an unknown kind was added by a later minor version: it may be ignored.
        let Some(kind) = ColumnType::ALL.into_iter().find(|kind| kind.number() == entry.kind.get())
        else {
            continue;
        };
        let range = check_entry(image, kind, entry, &columns)?;
        if columns.ranges[Columns::slot(kind)].replace(range).is_some() {
            return Err(HptError::damaged(format!("it has the column of {} twice", kind.name())));
        }
    }
    check_requests(image, &columns)?;
    check_keys(image, &columns)?;
    check_sample(image, &columns)?;
    Ok(columns)
}

fn check_header(image: &[u8]) -> Result<(&Header, &[DirectoryEntry]), HptError> {
    let magic = &image[..image.len().min(MAGIC.len())];
    if magic.is_empty() || !MAGIC.starts_with(magic) {
        return Err(HptError::NotHpt);
    }
    let actual_bytes = image.len() as u64;
    let truncated = |expected_bytes| HptError::Truncated { actual_bytes, expected_bytes };
    let (header, rest) =
        Header::ref_from_prefix(image).map_err(|_| truncated(HEADER_BYTES as u64))?;
    if header.byte_order.get() == BYTE_ORDER.swap_bytes() {
        return Err(HptError::ByteOrder);
    }
    if header.major.get() != VERSION.0 {
        return Err(HptError::Version { major: header.major.get(), minor: header.minor.get() });
    }
    let columns = header.columns.get() as usize;
    if columns > MAX_COLUMNS {
        return Err(HptError::damaged(format!("it claims {columns} columns")));
    }
    let (directory, _) = <[DirectoryEntry]>::ref_from_prefix_with_elems(rest, columns)
        .map_err(|_| truncated((HEADER_BYTES + columns * ENTRY_BYTES) as u64))?;
    let mut hash = Xxh3::new();
    hash.update(&image[..CHECKED_HEADER_BYTES]);
    hash.update(&rest[..columns * ENTRY_BYTES]);
    if hash.digest() != header.checksum.get() || header.byte_order.get() != BYTE_ORDER {
        return Err(HptError::damaged("its header does not match the header's checksum"));
    }
    let expected_bytes = header.file_bytes.get();
    if actual_bytes < expected_bytes {
        return Err(truncated(expected_bytes));
    }
    if actual_bytes > expected_bytes {
        return Err(HptError::damaged(format!(
            "it has {actual_bytes} bytes instead of {expected_bytes}"
        )));
    }
    Ok((header, directory))
}

fn check_entry(
    image: &[u8],
    kind: ColumnType,
    entry: &DirectoryEntry,
    columns: &Columns,
) -> Result<Range<usize>, HptError> {
    let wrong = |what: &str| HptError::damaged(format!("the column of {} {what}", kind.name()));
    if entry.width.get() != kind.width() {
        return Err(wrong("has entries of a wrong width"));
    }
    if !entry.offset.get().is_multiple_of(ALIGNMENT as u64) {
        return Err(wrong("is not aligned"));
    }
    let range = usize::try_from(entry.offset.get())
        .ok()
        .zip(usize::try_from(entry.bytes.get()).ok())
        .and_then(|(start, bytes)| Some(start..start.checked_add(bytes)?))
        .ok_or_else(|| wrong("reaches beyond the file"))?;
    let bytes = image.get(range.clone()).ok_or_else(|| wrong("reaches beyond the file"))?;
    let entries = match kind {
        ColumnType::KeyText => bytes.len(),
        ColumnType::Sample => bytes.len() / usize::from(kind.width()),
        ColumnType::KeyWords | ColumnType::KeyKinds => columns.keys as usize,
        _ => columns.requests,
    };
    if entries.checked_mul(usize::from(kind.width())) != Some(bytes.len()) {
        return Err(wrong("has a wrong number of entries"));
    }
    if xxh3_64(bytes) != entry.checksum.get() {
        return Err(wrong("does not match its checksum"));
    }
    Ok(range)
}

fn check_requests(image: &[u8], columns: &Columns) -> Result<(), HptError> {
    let u32s = |kind| columns.get(kind).map(|range| u32s(&image[range]));
    let ids = u32s(ColumnType::Ids).ok_or_else(|| HptError::damaged("it has no column of ids"))?;
    check_ids(ids, columns.keys)?;
    if let Some(range) = columns.get(ColumnType::Ops)
        && let Some(position) = image[range].iter().position(|&op| op > 2)
    {
        return Err(HptError::damaged(format!("request {position} has an unknown operation")));
    }
    check_next_use(u32s(ColumnType::NextUse).unwrap_or_default())
}

/// Checks that a key's first request has the lowest number that no request before it has, so that every id is below the number of
/// keys, and that there are as many numbers as keys.
fn check_ids(ids: &[U32], keys: u32) -> Result<(), HptError> {
    // Without a branch, which a processor could not predict where new keys come.
    let (mut seen, mut is_sound) = (0_u32, true);
    for id in ids {
        seen += u32::from(id.get() == seen);
        is_sound &= id.get() < seen;
    }
    if is_sound && seen == keys {
        return Ok(());
    }
    let mut seen = 0;
    let wrong = ids.iter().enumerate().find(|(_, id)| {
        seen += u32::from(id.get() == seen && seen < keys);
        id.get() >= seen
    });
    Err(HptError::damaged(match wrong {
        Some((position, id)) => format!("request {position} has the id {}", id.get()),
        None => format!("only {seen} of {keys} keys occur"),
    }))
}

/// Checks that the next use of each request is a later one, or none.
fn check_next_use(next_use: &[U32]) -> Result<(), HptError> {
    // There are fewer requests than `u32::MAX`, which means none.
    let requests = u32::try_from(next_use.len()).expect("as many as requests");
    let is_wrong = |(position, next): (u32, &U32)| {
        let next = next.get();
        (next <= position || next >= requests) && next != u32::MAX
    };
    let numbered = || (0..).zip(next_use);
    if !numbered().fold(false, |wrong, next| wrong | is_wrong(next)) {
        return Ok(());
    }
    let (position, next) = numbered().find(|next| is_wrong(*next)).expect("one is wrong");
    Err(HptError::damaged(format!("request {position} has the next use {next}")))
}

fn check_keys(image: &[u8], columns: &Columns) -> Result<(), HptError> {
    let words = columns
        .get(ColumnType::KeyWords)
        .ok_or_else(|| HptError::damaged("it has no column of keys"))?;
    let (kinds, text) = match (columns.get(ColumnType::KeyKinds), columns.get(ColumnType::KeyText))
    {
        (None, None) => return Ok(()),
        (Some(kinds), Some(text)) => (&image[kinds], &image[text]),
        _ => return Err(HptError::damaged("it has only one of the two columns of text keys")),
    };
    let words = <[U64]>::ref_from_bytes(&image[words]).expect("check_entry tested its length");
    let mut end = 0_usize;
    for (id, (word, &kind)) in words.iter().zip(kinds).enumerate() {
        if kind == 0 {
            continue;
        }
        let next = (kind == 1 && word.get() == end as u64).then(|| text_end(text, end)).flatten();
        end = next.ok_or_else(|| HptError::damaged(format!("key {id} has no text")))?;
    }
    if end != text.len() {
        return Err(HptError::damaged("it has texts of keys that no key uses"));
    }
    Ok(())
}

fn check_sample(image: &[u8], columns: &Columns) -> Result<(), HptError> {
    let Some(range) = columns.get(ColumnType::Sample) else { return Ok(()) };
    let words = <[U64]>::ref_from_bytes(&image[range]).expect("check_entry tested its length");
    if sample::check(words, columns.requests) {
        Ok(())
    } else {
        Err(HptError::damaged("it contradicts itself about the trace that it is a sample of"))
    }
}

/// Where the text that starts at `start` ends, if it does.
fn text_end(text: &[u8], start: usize) -> Option<usize> {
    let (length, rest) = U16::ref_from_prefix(text.get(start..)?).ok()?;
    let length = usize::from(length.get());
    (length <= rest.len()).then_some(start + size_of::<U16>() + length)
}

fn u32s(bytes: &[u8]) -> &[U32] {
    <[U32]>::ref_from_bytes(bytes).expect("check_entry tested its length")
}
