//! The time from the first to the last operation on a cache, over all processes that use it.
//!
//! The KDE icon cache's own measure of a start: until the last icon was found or inserted. Operations
//! read no clock for it; the cache's counters are polled instead.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use haypile::file;

/// Between two looks at the counters. A look that takes longer than a quarter of it makes it longer.
const INTERVAL: Duration = Duration::from_millis(1);

/// The operation counters of a cache file, which are polled to find the first and the last operation during a start.
#[derive(Debug)]
pub(super) struct Span {
    path: PathBuf,
    /// Operations before the start.
    before: u64,
    seen: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    next: Instant,
}

impl Span {
    /// Begins to poll the operation counters of a cache file, from their present values; those of a missing file are
    /// zero.
    pub(super) fn begin(path: PathBuf) -> Self {
        let before = operations(&path).unwrap_or(0);
        Self { path, before, seen: before, first: None, last: None, next: Instant::now() }
    }

    /// Returns the time at which the operation counters of the cache file are polled next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Reads the operation counters of the cache file, if the polling interval is over.
    pub(super) fn look(&mut self) {
        let begin = Instant::now();
        if begin < self.next {
            return;
        }
        if let Some(now) = operations(&self.path)
            && now > self.seen
        {
            self.seen = now;
            self.first.get_or_insert(begin);
            self.last = Some(begin);
        }
        self.next = begin + INTERVAL.max(4 * begin.elapsed());
    }

    /// Returns the nanoseconds from the first to the last operation on the cache file, to about a millisecond, and the
    /// number of operations; `None` without any. It polls once more for the last ones.
    pub(super) fn found(&mut self) -> Option<(u64, u64)> {
        self.next = Instant::now();
        self.look();
        let span = self.last?.duration_since(self.first?);
        Some((u64::try_from(span.as_nanos()).unwrap_or(u64::MAX), self.seen - self.before))
    }
}

fn operations(path: &std::path::Path) -> Option<u64> {
    let stats = file::FileStat::of(path).ok()?.stats;
    Some(stats.hits + stats.misses + stats.sets + stats.deletes)
}

#[cfg(test)]
mod tests {
    use haypile::Cache;

    use super::*;

    #[test]
    fn operations_of_another_user_of_the_file_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache");
        let mut span = Span::begin(path.clone());
        span.look();
        assert_eq!(span.found(), None);
        let cache = Cache::open(&format!("file://{}?size=4MiB", path.display())).unwrap();
        for number in 0..3_u64 {
            cache.set(b"key", number.to_le_bytes()).unwrap();
            while Instant::now() < span.next() {
                std::hint::spin_loop();
            }
            span.look();
        }
        let (span_ns, operations) = span.found().unwrap();
        assert_eq!(operations, 3);
        assert!(span_ns >= 2_000_000, "{span_ns}");
    }
}
