//! The outline of a snapshot: its header, footer and table, read and checked.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::SnapshotError;
use super::error::Damage;
use super::format::{
    BLOCK_INFO_BYTES, BlockInfo, END_MAGIC, FOOTER_BYTES, Footer, HEADER_BYTES, MAGIC, MAJOR,
    MAX_STORE_BYTES, OLDEST_MAJOR, SnapshotHeader, max_blocks,
};

/// The parts of a snapshot other than its blocks of entries: header, table of blocks and footer.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) created_ns: u64,
    pub(super) store: String,
    /// The blocks of the snapshot, each with its offset in the file.
    pub(super) blocks: Vec<(u64, BlockInfo)>,
}

/// The reason why there is no outline.
enum Refusal {
    Io(io::Error),
    NotASnapshot,
    UnknownVersion(u16, u16),
    Damaged(Damage),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        // The file has been truncated since its length was read.
        if error.kind() == ErrorKind::UnexpectedEof {
            return Self::Damaged(Damage::End);
        }
        Self::Io(error)
    }
}

impl Outline {
    /// Reads and checks a snapshot's header, table of blocks and footer. The blocks are then known
    /// to lie one after the other.
    pub(super) fn read(
        source: &mut (impl Read + Seek),
        path: &Path,
    ) -> Result<Self, SnapshotError> {
        read(source).map_err(|refusal| {
            let path = path.to_owned();
            match refusal {
                Refusal::Io(source) => SnapshotError::Io { action: "read", path, source },
                Refusal::NotASnapshot => SnapshotError::NotASnapshot { path },
                Refusal::UnknownVersion(major, minor) => {
                    SnapshotError::UnknownVersion { path, major, minor }
                }
                Refusal::Damaged(what) => SnapshotError::Damaged { path, what },
            }
        })
    }
}

fn read(source: &mut (impl Read + Seek)) -> Result<Outline, Refusal> {
    let file_bytes = source.seek(SeekFrom::End(0))?;
    source.rewind()?;
    let mut start = Vec::new();
    source.take(HEADER_BYTES).read_to_end(&mut start)?;
    if !start.starts_with(&MAGIC) {
        return Err(Refusal::NotASnapshot);
    }
    let header =
        SnapshotHeader::read_from_bytes(&start).map_err(|_| Refusal::Damaged(Damage::End))?;
    if !(OLDEST_MAJOR..=MAJOR).contains(&header.major.get()) {
        return Err(Refusal::UnknownVersion(header.major.get(), header.minor.get()));
    }
    let store = read_store(source, &header)?;
    let blocks_offset = HEADER_BYTES + store.len() as u64;

    let Some(footer_offset) = file_bytes.checked_sub(FOOTER_BYTES) else {
        return Err(Refusal::Damaged(Damage::End));
    };
    let mut footer = Footer::new_zeroed();
    source.seek(SeekFrom::Start(footer_offset))?;
    source.read_exact(footer.as_mut_bytes())?;
    if footer.magic != END_MAGIC {
        return Err(Refusal::Damaged(Damage::End));
    }
    let table_bytes = footer_offset.checked_sub(footer.table_offset.get());
    let blocks_bytes = footer.table_offset.get().checked_sub(blocks_offset);
    let (Some(table_bytes), Some(blocks_bytes)) = (table_bytes, blocks_bytes) else {
        return Err(Refusal::Damaged(Damage::Footer));
    };
    let blocks = footer.blocks.get();
    let is_sound = footer.is_sound()
        && blocks <= max_blocks(blocks_bytes)
        && blocks.checked_mul(BLOCK_INFO_BYTES) == Some(table_bytes);
    if !is_sound {
        return Err(Refusal::Damaged(Damage::Footer));
    }
    let table = read_table(source, &footer)?;
    let blocks = place(&table, blocks_offset, &footer).ok_or(Refusal::Damaged(Damage::Table))?;
    Ok(Outline { created_ns: header.created_ns.get(), store, blocks })
}

fn read_store(source: &mut impl Read, header: &SnapshotHeader) -> Result<String, Refusal> {
    let damaged = || Refusal::Damaged(Damage::Header);
    let bytes = usize::try_from(header.store_bytes.get()).unwrap_or(usize::MAX);
    if bytes > MAX_STORE_BYTES {
        return Err(damaged());
    }
    let mut store = vec![0; bytes];
    source.read_exact(&mut store)?;
    if !header.is_sound(&store) {
        return Err(damaged());
    }
    String::from_utf8(store).map_err(|_| damaged())
}

/// Reads the table, whose length was checked: at most 64 bytes for each MiB of the file.
fn read_table(source: &mut (impl Read + Seek), footer: &Footer) -> Result<Vec<BlockInfo>, Refusal> {
    let damaged = || Refusal::Damaged(Damage::Table);
    let blocks = usize::try_from(footer.blocks.get()).map_err(|_| damaged())?;
    let mut table = vec![BlockInfo::new_zeroed(); blocks];
    source.seek(SeekFrom::Start(footer.table_offset.get()))?;
    source.read_exact(table.as_mut_bytes())?;
    if xxh3_64(table.as_bytes()) != footer.table_checksum.get() {
        return Err(damaged());
    }
    Ok(table)
}

/// Returns the blocks with their offsets, if they are possible and fill the file up to the table.
fn place(table: &[BlockInfo], offset: u64, footer: &Footer) -> Option<Vec<(u64, BlockInfo)>> {
    let mut offset = offset;
    let mut blocks = Vec::with_capacity(table.len());
    let (mut entries, mut payload_bytes) = (0, 0);
    for info in table {
        blocks.push((offset, *info));
        // The counts cannot overflow before the offset does.
        entries += info.entries();
        offset = offset.checked_add(info.bytes())?;
        payload_bytes += info.payload_bytes();
        if !info.is_possible() {
            return None;
        }
    }
    let fills = offset == footer.table_offset.get()
        && entries == footer.entries.get()
        && payload_bytes == footer.payload_bytes.get();
    fills.then_some(blocks)
}
