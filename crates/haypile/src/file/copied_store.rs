//! `mode=copy`: the entries of a file that is read and neither mapped nor trusted.

use std::path::{Path, PathBuf};

use crate::compress::Compression;
use crate::error::{Error, Result};
use crate::file::area::Area;
use crate::file::format::header::Header;
use crate::file::process::copied::Copied;
use crate::file::reader::Reader;
use crate::file::store::longest_value;
use crate::stats::Stats;
use crate::store::{Cursor, Durability, Hit, Limits, Page, Store};
use crate::ttl::Ttl;
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Written};

/// A cache file that belongs to somebody else, or lies on a disk that may fail: every value is
/// verified by its checksum, and pages are read once and kept for a while, so that changes may be
/// seen late.
#[derive(Debug)]
pub(in crate::file) struct CopiedStore {
    path: PathBuf,
    area: Area<Copied>,
    header: Header,
    reader: Reader,
}

impl CopiedStore {
    pub(in crate::file) fn new(
        path: &Path,
        area: Area<Copied>,
        header: Header,
        reader: Reader,
    ) -> Self {
        Self { path: path.to_owned(), area, header, reader }
    }

    fn unsupported<R>(&self, operation: &'static str) -> Result<R> {
        Err(Error::Unsupported { operation, store: self.describe() })
    }
}

impl Store for CopiedStore {
    fn url(&self) -> CacheUrl {
        self.reader.url_at(self.area.geometry.file_bytes)
    }

    fn warnings(&self) -> Vec<String> {
        let warning = self.reader.size_warning(&self.path, self.area.geometry.file_bytes);
        warning.into_iter().collect()
    }

    fn limits(&self) -> Limits {
        let capacity_bytes = self.area.geometry.capacity_bytes();
        let longest_bytes = longest_value(&self.area, 0);
        Limits::new(self.reader.max_key_bytes(), longest_bytes, Some(capacity_bytes))
    }

    fn compression(&self) -> Option<Compression> {
        self.header.compression.map(Compression::from)
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        let key = self.reader.key(key)?;
        let key = key.hashed(&self.area);
        let entry = self.reader.find(&self.area, &key, Some(buffer))?;
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
        let key = self.reader.key(key)?;
        let found = self.reader.find(&self.area, &key.hashed(&self.area), None)?;
        Ok(found.is_some())
    }

    fn clear(&self) -> Result<()> {
        self.unsupported("clear")
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.reader.page(&self.area, from, limit)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.reader.count(&self.area)?.0)
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.reader.count(&self.area)?.1)
    }

    fn stats(&self) -> Result<Stats> {
        let capacity_bytes = Some(self.area.geometry.capacity_bytes());
        Ok(Stats { capacity_bytes, ..Stats::default() })
    }

    fn flush(&self, _: Durability) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
