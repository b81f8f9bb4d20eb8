//! The statistics that a handle has to report, which follow from what its operations returned.

use haypile::{Event, Stats};

use super::mismatch::{Checked, wrong};

/// Events that operations decide; the others are the store's own.
const DECIDED: [Event; 10] = [
    Event::Hit,
    Event::Miss,
    Event::Set,
    Event::Unmet,
    Event::Delete,
    Event::DeleteMiss,
    Event::Touch,
    Event::TouchMiss,
    Event::Count,
    Event::CountMiss,
];

/// Bounds on the statistics (hits, misses and so on) that one handle of the cache under test has to
/// report.
#[derive(Debug, Default)]
pub(super) struct Counts {
    least: [u64; Event::ALL.len()],
    /// Counts that the handle may report beyond the least.
    more: [u64; Event::ALL.len()],
}

impl Counts {
    pub(super) fn add(&mut self, event: Event) {
        self.least[event as usize] += 1;
    }

    /// Records that a call on the cache may have counted an event, such as a hit, up to this number
    /// of times.
    pub(super) fn may_add(&mut self, event: Event, times: u64) {
        self.more[event as usize] += times;
    }

    pub(super) fn add_read(&mut self, is_hit: bool) {
        self.add(if is_hit { Event::Hit } else { Event::Miss });
    }

    pub(super) fn add_deletion(&mut self, is_deleted: bool) {
        self.add(if is_deleted { Event::Delete } else { Event::DeleteMiss });
    }

    /// Checks that the statistics that a cache's store reports are within these bounds.
    pub(super) fn judge(&self, stats: &Stats) -> Checked {
        for event in DECIDED {
            let least = self.least[event as usize];
            let most = least + self.more[event as usize];
            let count = stats[event];
            if count < least || count > most {
                let name = event.name();
                return wrong!(-, "stats has {name} = {count}, and it is {least} to {most}");
            }
        }
        if stats.corrupt > 0 || stats.unreachable > 0 {
            let Stats { corrupt, unreachable, .. } = stats;
            return wrong!(-, "stats has corrupt = {corrupt}, unreachable = {unreachable}");
        }
        Ok(())
    }
}
