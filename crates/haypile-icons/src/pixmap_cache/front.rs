//! Pixmaps that this process has found, in its own memory.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::pixmap::Pixmap;
use crate::stamp::Stamp;

/// The most bytes of pixmaps: what Qt's cache keeps by itself.
const MAX_BYTES: usize = 10 << 20;
/// The time within which changes by other processes are seen.
const EPOCH: Duration = Duration::from_millis(900);

/// Copies of recently found pictures in this process's memory (at most 10 MiB, for a second), which are read before the
/// shared cache.
#[derive(Debug, Default)]
pub(super) struct Front {
    pixmaps: HashMap<String, (Pixmap, Option<Stamp>)>,
    bytes: usize,
    since: Option<Instant>,
}

impl Front {
    pub(super) fn get(&mut self, key: &str, source: Option<Stamp>) -> Option<Pixmap> {
        if self.since.is_some_and(|since| since.elapsed() >= EPOCH) {
            self.clear();
        }
        let (pixmap, own) = self.pixmaps.get(key)?;
        (source.is_none() || *own == source).then(|| pixmap.clone())
    }

    pub(super) fn put(&mut self, key: &str, pixmap: &Pixmap, source: Option<Stamp>) {
        let bytes = pixmap.pixels().len();
        if self.bytes + bytes > MAX_BYTES {
            self.clear();
        }
        self.since.get_or_insert_with(Instant::now);
        let before = self.pixmaps.insert(key.to_owned(), (pixmap.clone(), source));
        self.bytes += bytes;
        self.bytes -= before.map_or(0, |(pixmap, _)| pixmap.pixels().len());
    }

    pub(super) fn remove(&mut self, key: &str) {
        if let Some((pixmap, _)) = self.pixmaps.remove(key) {
            self.bytes -= pixmap.pixels().len();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
