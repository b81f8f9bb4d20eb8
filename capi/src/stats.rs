//! Statistics.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;

use engine::Event;

use crate::cache::Cache;
use crate::call::{Status, call};
use crate::pointer::{is_null, object};

/// Counts since the cache was opened, and its current contents. A failed operation is counted
/// nowhere. Later versions append fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Stats {
    /// Reads that found a value.
    pub hits: u64,
    /// Reads that found none, or an expired one.
    pub misses: u64,
    /// Accepted writes, including those by haypile_incr() and haypile_decr().
    pub sets: u64,
    /// Writes whose condition did not hold.
    pub unmet: u64,
    /// Deletions of an entry that was there. haypile_clear() counts none.
    pub deletes: u64,
    /// Deletions that found no entry.
    pub delete_misses: u64,
    /// New TTLs for an entry that was there.
    pub touches: u64,
    /// Calls of haypile_touch() that found no entry.
    pub touch_misses: u64,
    /// Calls of haypile_incr() and haypile_decr() that found a counter.
    pub counts: u64,
    /// Calls of haypile_incr() and haypile_decr() that found no entry.
    pub count_misses: u64,
    /// Entries that were evicted to make room.
    pub evictions: u64,
    /// Entries that were removed because their TTL had passed.
    pub expired: u64,
    /// New entries that were accepted and not retained.
    pub declined: u64,
    /// Values that were found and could not be read back. The caller saw a miss.
    pub corrupt: u64,
    /// Entries held now. Some of them may have expired.
    pub entries: u64,
    /// Bytes held now: keys, values and metadata.
    pub bytes: u64,
    /// The bound on `bytes`; zero where there is none or it is not known.
    pub capacity_bytes: u64,
}

/// Returns the statistics of a cache. `stats_bytes` is sizeof(haypile_stats), so that a program
/// that was compiled with an older header gets the fields that it knows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_stats(
    cache: *const Cache,
    out_stats: *mut Stats,
    stats_bytes: usize,
) -> Status {
    call(|| {
        if out_stats.is_null() {
            return Err(is_null("out_stats"));
        }
        let to: *mut c_void = out_stats.cast();
        // SAFETY: not null, and valid for as many bytes as the header says.
        unsafe { to.write_bytes(0, stats_bytes) };
        // SAFETY: what the header says of pointers.
        let cache = unsafe { object("cache", cache) }?;
        let numbers = numbers(&cache.0.stats()?);
        let known_bytes = stats_bytes.min(size_of::<Stats>());
        // SAFETY: both have that many bytes.
        unsafe { ptr::copy_nonoverlapping((&raw const numbers).cast(), to, known_bytes) };
        Ok(Status::HaypileOk)
    })
}

/// The numbers of a [`Stats`] in its order.
type Numbers = [u64; size_of::<Stats>() / size_of::<u64>()];

/// Number of fields that count events: the first ones of the engine's list.
const EVENTS: usize = offset_of!(Stats, entries) / size_of::<u64>();

fn numbers(stats: &engine::Stats) -> Numbers {
    let mut numbers = Numbers::default();
    let (events, held) = numbers.split_at_mut(EVENTS);
    for (number, event) in events.iter_mut().zip(Event::ALL) {
        *number = stats[event];
    }
    held.copy_from_slice(&[stats.entries, stats.bytes, stats.capacity_bytes.unwrap_or(0)]);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_each_number_under_its_name() {
        let mut stats = engine::Stats::default();
        for (count, event) in (1..).zip(Event::ALL) {
            stats[event] = count;
        }
        (stats.entries, stats.bytes, stats.capacity_bytes) = (101, 102, Some(103));
        let header = include_str!("../include/haypile.h");
        let (_, fields) = header.split_once("typedef struct haypile_stats {").unwrap();
        let (fields, _) = fields.split_once('}').unwrap();
        let fields = fields.lines().filter_map(|line| line.trim().strip_prefix("uint64_t "));
        let fields: Vec<&str> = fields.map(|field| field.trim_end_matches(';')).collect();
        let of = |field: &&str| match *field {
            "entries" => 101,
            "bytes" => 102,
            "capacity_bytes" => 103,
            name => stats[Event::ALL.into_iter().find(|event| event.name() == name).unwrap()],
        };
        assert_eq!(numbers(&stats).to_vec(), fields.iter().map(of).collect::<Vec<u64>>());
    }
}
