//! Counters of a remote store.

use haypile::{Event, EventCounters, Stats, WriteMode, Written};

/// Counts of this process's operations on a remote store (memcached or Redis). The server's own counts would cover all
/// its clients since it started.
#[derive(Debug, Default)]
pub(crate) struct ServerCounts(EventCounters);

impl ServerCounts {
    pub(crate) fn read(&self, has_hit: bool) {
        self.0.add(if has_hit { Event::Hit } else { Event::Miss });
    }

    pub(crate) fn written(&self, written: Written) {
        self.0.add(if written.is_stored() { Event::Set } else { Event::Unmet });
    }

    pub(crate) fn deleted(&self, was_there: bool) {
        self.0.add(if was_there { Event::Delete } else { Event::DeleteMiss });
    }

    pub(crate) fn touched(&self, was_there: bool) {
        self.0.add(if was_there { Event::Touch } else { Event::TouchMiss });
    }

    pub(crate) fn counted(&self, was_there: bool) {
        if was_there {
            self.0.add(Event::Count);
            self.0.add(Event::Set);
        } else {
            self.0.add(Event::CountMiss);
        }
    }

    /// Counts an operation that was answered as by an empty cache, because the server did not answer.
    pub(crate) fn unreachable(&self) {
        self.0.add(Event::Unreachable);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.0.stats()
    }
}

/// Returns the outcome of a write to a server that does not answer, as an empty cache that retains nothing would have
/// it.
pub(crate) fn written_nowhere(mode: WriteMode) -> Written {
    match mode {
        WriteMode::Set | WriteMode::Add => Written::Stored,
        WriteMode::Leased(_) => Written::Revoked,
        _ => Written::Absent,
    }
}
