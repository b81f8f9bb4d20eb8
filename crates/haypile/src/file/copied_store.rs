//! The mode `mode=copy`: the entries of a file that is read and neither mapped nor trusted.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

use crate::clock::Clock;
use crate::compress::Compression;
use crate::error::{Error, Result};
use crate::file::area::Area;
use crate::file::format::header::Header;
use crate::file::operations::read::Seen;
use crate::file::platform::kernel::FileId;
use crate::file::process::copied::{self, Copied, MAX_AGE};
use crate::file::process::error::FileError;
use crate::file::reader::Reader;
use crate::file::store::longest_value;
use crate::mutant;
use crate::stats::Stats;
use crate::store::{Cursor, Durability, Hit, Limits, Page, Store};
use crate::ttl::Ttl;
use crate::url::{CacheUrl, ResolvedLevel};
use crate::write::{Reservation, SetOptions, Written};

/// The store of a cache file that belongs to another user, or lies on a disk that may fail: every
/// value is verified by its checksum, and nothing is mapped.
///
/// Pages of the index are read once and kept for a second. So an entry that is found was in the file
/// at most one second ago, and may have been changed or deleted since. A miss is not old: the index is
/// read again before it is reported. Where another file takes the path, that one is read after at
/// most a second.
#[derive(Debug)]
pub(in crate::file) struct CopiedStore {
    path: PathBuf,
    /// The identity of the directory `/`: after a chroot the path means another file.
    root: Option<FileId>,
    file: RwLock<Arc<CopiedFile>>,
    /// The time of the last look at the path.
    looked_ns: AtomicU64,
    reader: Reader,
}

#[derive(Debug)]
struct CopiedFile {
    area: Area<Copied>,
    header: Header,
}

impl CopiedStore {
    pub(in crate::file) fn open(
        path: PathBuf,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, FileError> {
        let (area, header) = copied::open(&path, Arc::clone(&clock))?;
        Ok(Self {
            path,
            root: FileId::of_root(),
            looked_ns: AtomicU64::new(clock.now_ns()),
            reader: Reader::new(level, clock, area.geometry.file_bytes),
            file: RwLock::new(Arc::new(CopiedFile { area, header })),
        })
    }

    fn file_bytes(&self) -> u64 {
        self.file.read().area.geometry.file_bytes
    }

    /// Returns the file that has the path, as it was at most a second ago.
    fn file(&self, operation: &'static str) -> Result<Arc<CopiedFile>> {
        let (now_ns, looked_ns) =
            (self.reader.clock.now_ns(), self.looked_ns.load(Ordering::Relaxed));
        if Duration::from_nanos(now_ns.saturating_sub(looked_ns)) >= MAX_AGE {
            self.follow_path().map_err(|error| Error::Backend {
                operation,
                store: self.describe(),
                source: Box::new(error),
            })?;
            self.looked_ns.store(now_ns, Ordering::Relaxed);
        }
        Ok(Arc::clone(&self.file.read()))
    }

    /// Opens the file that has the path now, if that is another one.
    fn follow_path(&self) -> Result<(), FileError> {
        let file = Arc::clone(&self.file.read());
        let kernel = &file.area.ground.kernel;
        let is_replaced = FileId::at(&self.path).is_ok_and(|id| id != kernel.id);
        if !is_replaced || FileId::of_root() != self.root || mutant::is_on("copies-stay") {
            // A file that was removed is still read. One that can be read no more is not empty.
            let readable = kernel.with_file(|_| Ok(()));
            return readable.map_err(|source| FileError::Io { path: self.path.clone(), source });
        }
        let (area, header) = copied::open(&self.path, Arc::clone(&self.reader.clock))?;
        // Values of another compression would not be understood above.
        let (made, wanted) = (header.compression, file.header.compression);
        if made != wanted {
            return Err(FileError::Compression { path: self.path.clone(), made, wanted });
        }
        *self.file.write() = Arc::new(CopiedFile { area, header });
        Ok(())
    }

    /// Finds an entry. Copies of different ages can hide one that is there: it is missing only where
    /// new ones say so as well.
    fn find(
        &self,
        file: &CopiedFile,
        key: &[u8],
        mut value: Option<&mut Vec<u8>>,
    ) -> Result<Option<(Seen, Hit)>> {
        let key = self.reader.key(key)?;
        let key = key.hashed(&file.area);
        let found = self.reader.find(&file.area, &key, value.as_deref_mut())?;
        if found.is_some() {
            return Ok(found);
        }
        file.area.ground.refresh();
        if let Some(value) = &mut value {
            value.clear();
        }
        self.reader.find(&file.area, &key, value)
    }

    fn count(&self, operation: &'static str) -> Result<(u64, u64)> {
        self.reader.count(&self.file(operation)?.area)
    }

    fn unsupported<R>(&self, operation: &'static str) -> Result<R> {
        Err(Error::Unsupported { operation, store: self.describe() })
    }
}

impl Store for CopiedStore {
    fn url(&self) -> CacheUrl {
        self.reader.url_at(self.file_bytes())
    }

    fn warnings(&self) -> Vec<String> {
        self.reader.size_warning(&self.path, self.file_bytes()).into_iter().collect()
    }

    fn limits(&self) -> Limits {
        let area = &self.file.read().area;
        let capacity_bytes = area.geometry.capacity_bytes();
        let longest_bytes = longest_value(area, 0);
        Limits::new(self.reader.max_key_bytes(), longest_bytes, Some(capacity_bytes))
    }

    fn compression(&self) -> Option<Compression> {
        self.file.read().header.compression.map(Compression::from)
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        let entry = self.find(&*self.file("get")?, key, Some(buffer))?;
        if entry.is_none() {
            buffer.clear();
        }
        Ok(entry.map(|(_, hit)| hit))
    }

    fn set(&self, _: &[u8], _: &[u8], _: &SetOptions) -> Result<Written> {
        self.unsupported("set")
    }

    fn reserve(&self, _: &[u8], _: usize, _: &SetOptions) -> Result<Box<dyn Reservation + '_>> {
        self.unsupported("reserve")
    }

    fn delete(&self, _: &[u8]) -> Result<bool> {
        self.unsupported("delete")
    }

    fn touch(&self, _: &[u8], _: Ttl) -> Result<bool> {
        self.unsupported("touch")
    }

    fn incr(&self, _: &[u8], _: u64) -> Result<Option<u64>> {
        self.unsupported("incr")
    }

    fn decr(&self, _: &[u8], _: u64) -> Result<Option<u64>> {
        self.unsupported("decr")
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.find(&*self.file("contains")?, key, None)?.is_some())
    }

    fn clear(&self) -> Result<()> {
        self.unsupported("clear")
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.reader.page(&self.file("keys")?.area, from, limit)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.count("len")?.0)
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.count("bytes")?.1)
    }

    fn stats(&self) -> Result<Stats> {
        let capacity_bytes = Some(self.file.read().area.geometry.capacity_bytes());
        Ok(Stats { capacity_bytes, ..Stats::default() })
    }

    fn flush(&self, _: Durability) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
