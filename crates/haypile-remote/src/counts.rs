//! Counters of a remote store.

use std::sync::atomic::{AtomicU64, Ordering};

use haypile::{Stats, WriteMode, Written};

/// Counts of this process. The server's own counts would cover all its clients since it started.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    sets: AtomicU64,
    unmet: AtomicU64,
    deletes: AtomicU64,
    delete_misses: AtomicU64,
    touches: AtomicU64,
    touch_misses: AtomicU64,
    counted: AtomicU64,
    count_misses: AtomicU64,
    unreachable: AtomicU64,
}

fn one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    pub(crate) fn read(&self, has_hit: bool) {
        one(if has_hit { &self.hits } else { &self.misses });
    }

    pub(crate) fn written(&self, written: Written) {
        one(if written.is_stored() { &self.sets } else { &self.unmet });
    }

    pub(crate) fn deleted(&self, was_there: bool) {
        one(if was_there { &self.deletes } else { &self.delete_misses });
    }

    pub(crate) fn touched(&self, was_there: bool) {
        one(if was_there { &self.touches } else { &self.touch_misses });
    }

    pub(crate) fn counted(&self, was_there: bool) {
        if was_there {
            one(&self.counted);
            one(&self.sets);
        } else {
            one(&self.count_misses);
        }
    }

    /// Counts an operation on an entry that was answered without the server.
    pub(crate) fn unreachable(&self) {
        one(&self.unreachable);
    }

    pub(crate) fn stats(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut stats = Stats::default();
        stats.hits = get(&self.hits);
        stats.misses = get(&self.misses);
        stats.sets = get(&self.sets);
        stats.unmet = get(&self.unmet);
        stats.deletes = get(&self.deletes);
        stats.delete_misses = get(&self.delete_misses);
        stats.touches = get(&self.touches);
        stats.touch_misses = get(&self.touch_misses);
        stats.counts = get(&self.counted);
        stats.count_misses = get(&self.count_misses);
        stats.unreachable = get(&self.unreachable);
        stats
    }
}

/// Returns the outcome of a write to an empty cache.
pub(crate) fn written_nowhere(mode: WriteMode) -> Written {
    match mode {
        WriteMode::Set | WriteMode::Add => Written::Stored,
        _ => Written::Absent,
    }
}
