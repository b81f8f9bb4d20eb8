//! The ground of a file that is read and not mapped: nothing that its owner does to it can end this
//! process, and nothing that is in it is trusted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::file::area::Area;
use crate::file::format::header::Header;
use crate::file::platform::ground::{Checked, Ground};
use crate::file::platform::halted::ProcessId;
use crate::file::platform::kernel::{self, Kernel};
use crate::file::process::create;
use crate::file::process::error::FileError;
use crate::mutant;

const PAGE_BYTES: usize = 4096;
/// Pages that are kept; when there are more, all are read again.
const MOST_PAGES: usize = 4096;
/// The age from which a copied page of the cache file is read again from the file.
pub(in crate::file) const MAX_AGE: Duration = Duration::from_secs(1);

/// A copy of a page, and when it was made.
#[derive(Debug)]
struct PageCopy {
    bytes: Box<[u8; PAGE_BYTES]>,
    read_ns: u64,
    round: u64,
}

/// A cache file that is not mapped: pages are copied from it as they are needed.
#[derive(Debug)]
pub(in crate::file) struct Copied {
    pub(in crate::file) kernel: Kernel,
    clock: Arc<dyn Clock>,
    pages: Mutex<HashMap<u64, PageCopy>>,
    /// The number of the current round; copies of earlier rounds are read again.
    round: AtomicU64,
}

/// Opens a cache file without mapping it, to read copies of its pages, whoever owns it.
pub(in crate::file) fn open(
    path: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(Area<Copied>, Header), FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    create::check_name(path)?;
    let file = kernel::open(path, false).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => FileError::Missing(path.to_owned()),
        _ => io_error(source),
    })?;
    let metadata = create::check_kind(path, &file)?;
    let header = create::read_header(path, &file, &metadata)?;
    let kernel = Kernel::new(file, path, false).map_err(io_error)?;
    let ground = Copied { kernel, clock, pages: Mutex::default(), round: AtomicU64::new(0) };
    let mut area = Area::new(ground, header.geometry, header.hash_seed, 0);
    area.verifies_all = true;
    Ok((area, header))
}

impl Copied {
    /// Invalidates all copied pages of the cache file, so that each page is read again before its
    /// next use.
    pub(in crate::file) fn refresh(&self) {
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// Copies bytes; what the file does not have is zero.
    fn read(&self, at: u64, into: &mut [u8]) {
        let read = self.kernel.with_file(|file| Ok(read_at(file, at, into)));
        let read = read.unwrap_or(0);
        into[read..].fill(0);
    }
}

fn read_at(file: &File, at: u64, into: &mut [u8]) -> usize {
    let mut read = 0;
    while read < into.len() {
        match file.read_at(&mut into[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    read
}

impl Ground for Copied {
    type Pin<'a> = ();
    type Line<'a> = Checked<'a, Self>;

    fn line(&self, at: u64) -> Checked<'_, Self> {
        Checked { ground: self, at }
    }

    fn load(&self, at: u64, _: Ordering) -> u64 {
        let (now_ns, round) = (self.clock.now_ns(), self.round.load(Ordering::Relaxed));
        let is_usable = |page: &PageCopy| {
            let age = Duration::from_nanos(now_ns.saturating_sub(page.read_ns));
            (age < MAX_AGE && page.round == round) || mutant::is_on("copies-stay")
        };
        let mut pages = self.pages.lock();
        if pages.len() >= MOST_PAGES {
            pages.clear();
        }
        let start = at - at % PAGE_BYTES as u64;
        let page = match pages.entry(start) {
            Entry::Occupied(entry) if is_usable(entry.get()) => entry.into_mut(),
            entry => {
                let mut bytes = Box::new([0; PAGE_BYTES]);
                self.read(start, &mut bytes[..]);
                entry.insert_entry(PageCopy { bytes, read_ns: now_ns, round }).into_mut()
            }
        };
        let at = usize::try_from(at - start).expect("within a page");
        u64::from_le_bytes(page.bytes[at..at + 8].try_into().expect("8 bytes"))
    }

    /// Nothing is stored: the file is only read.
    fn store(&self, _: u64, _: u64, _: Ordering) {}

    fn exchange(&self, at: u64, _: u64, _: u64) -> Result<(), u64> {
        Err(self.load(at, Ordering::Relaxed))
    }

    fn fence(&self, _: Ordering) {}

    fn add(&self, at: u64, _: u64) -> u64 {
        self.load(at, Ordering::Relaxed)
    }

    fn raise(&self, _: u64, _: u64) {}

    fn copy_out_to(&self, at: u64, bytes: usize, into: &mut Vec<u8>) {
        let before = into.len();
        into.resize(before + bytes, 0);
        self.read(at, &mut into[before..]);
    }

    fn copy_in(&self, _: u64, _: &[u8]) {}

    fn prefetch(&self, _: u64) {}

    fn prefetch_bytes(&self, _: u64, _: u64) {}

    fn prefetch_to_write(&self, _: u64, _: u64) {}

    fn is_taken(&self, slot: u32) -> bool {
        self.kernel.is_slot_taken(slot).unwrap_or(true)
    }

    fn is_halted(&self, _: ProcessId) -> bool {
        false
    }

    fn is_pinned(&self, _: u32) -> bool {
        false
    }

    fn pin(&self, _: u32, _: u32) -> Option<()> {
        None
    }

    fn now(&self) -> Duration {
        self.kernel.elapsed()
    }

    fn sleep_on(&self, _: u64, _: u64, at_most: Duration) {
        std::thread::sleep(at_most);
    }

    fn wake(&self, _: u64) {}

    fn pause(&self, _: u32) {}
}
