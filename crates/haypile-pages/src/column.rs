//! The caches of a matrix.

use std::fmt;

use haypile::ByteSize;

use super::orders::NoVarySearch;

/// The storage levels of an HTTP cache: none, memory, disk or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnKind {
    /// Nothing is stored.
    None,
    /// Memory alone.
    Memory,
    /// A file alone.
    Disk,
    /// Memory in front of a file, which has all that memory has.
    Both,
}

/// A configuration of haypile's HTTP cache, which is one column of the table of results. The
/// table's sizes are those of the disk cache; the memory cache always has the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The storage levels of the HTTP cache: none, memory, disk or both.
    pub kind: ColumnKind,
    /// The size of the HTTP cache's memory level in bytes; unused without such a level.
    pub memory_bytes: u64,
    /// The size of the HTTP cache's file in bytes, if there is one.
    pub disk_bytes: u64,
    /// The name of the storage medium (disk) that holds the HTTP cache's file, if there is one.
    pub medium: Option<String>,
    /// Whether the HTTP cache knows `No-Vary-Search`.
    pub no_vary_search: NoVarySearch,
}

impl Column {
    /// The size of a cache level divided by the size of the largest body that it stores: eight, as
    /// in browsers. Chromium stores nothing above an eighth of its disk cache (`max_size / 8` in
    /// `net/disk_cache`), Firefox nothing above an eighth, or 50 MB. Haypile's own HTTP cache has
    /// another default, a sixteenth.
    pub const LARGEST_BODIES: u64 = 8;

    /// The end of the name of an HTTP cache that does not know `No-Vary-Search`.
    pub const WITHOUT_NO_VARY_SEARCH: &str = " without No-Vary-Search";

    /// Returns the name of the HTTP cache in results, such as `http:memory:size=32MiB`.
    pub fn subject(&self) -> String {
        let without = match self.no_vary_search {
            NoVarySearch::Heeded => "",
            NoVarySearch::Ignored => Self::WITHOUT_NO_VARY_SEARCH,
        };
        format!("http:{}{without}", self.cache())
    }

    /// Returns the name of the store in which the HTTP cache keeps responses, such as
    /// `memory:size=32MiB`.
    pub fn cache(&self) -> String {
        let memory = format!("memory:size={}", ByteSize(self.memory_bytes));
        let disk = format!("file:size={}", ByteSize(self.disk_bytes));
        match self.kind {
            ColumnKind::None => "none".to_owned(),
            ColumnKind::Memory => memory,
            ColumnKind::Disk => disk,
            ColumnKind::Both => format!("{memory}+{disk}"),
        }
    }

    /// Returns the length of the longest body that the HTTP cache stores, in bytes: an eighth of
    /// the larger level, so that a small disk cache below a larger memory does not limit both.
    pub fn largest_body_bytes(&self) -> u64 {
        let memory_bytes = if self.kind == ColumnKind::Disk { 0 } else { self.memory_bytes };
        memory_bytes.max(self.disk_bytes) / Self::LARGEST_BODIES
    }

    /// Whether the HTTP cache outlives its process, because it has a file.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.kind, ColumnKind::Disk | ColumnKind::Both)
    }

    /// Returns the largest number of bytes that the HTTP cache can hold.
    pub fn capacity_bytes(&self) -> u64 {
        match self.kind {
            ColumnKind::None => 0,
            ColumnKind::Memory => self.memory_bytes,
            // All that is in memory is in the file too, unless the file has evicted it since.
            ColumnKind::Disk => self.disk_bytes,
            ColumnKind::Both => self.memory_bytes + self.disk_bytes,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ColumnKind::None => f.write_str("none")?,
            ColumnKind::Memory => write!(f, "memory {}", ByteSize(self.memory_bytes))?,
            ColumnKind::Disk => write!(f, "disk {}", ByteSize(self.disk_bytes))?,
            ColumnKind::Both => write!(f, "both {}", ByteSize(self.disk_bytes))?,
        }
        if let Some(medium) = &self.medium {
            write!(f, " at {medium}")?;
        }
        match self.no_vary_search {
            NoVarySearch::Heeded => Ok(()),
            NoVarySearch::Ignored => f.write_str(Self::WITHOUT_NO_VARY_SEARCH),
        }
    }
}
