//! Statistics.

use crate::cache::Cache;
use crate::call::{Status, call};
use crate::pointer::{Growing, OutStruct, object};

/// Statistics of a cache: counts since it was opened, and the size of its current contents. A failed operation is
/// counted nowhere. Later versions append fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Stats {
    /// Number of reads that found a value.
    pub hits: u64,
    /// Number of reads that found no value, or an expired one.
    pub misses: u64,
    /// Number of accepted writes, including those by haypile_incr() and haypile_decr().
    pub sets: u64,
    /// Number of writes whose condition did not hold.
    pub unmet: u64,
    /// Number of deletions that removed an entry. haypile_clear() is not counted.
    pub deletes: u64,
    /// Number of deletions that found no entry.
    pub delete_misses: u64,
    /// Number of calls of haypile_touch() that found an entry.
    pub touches: u64,
    /// Number of calls of haypile_touch() that found no entry.
    pub touch_misses: u64,
    /// Number of calls of haypile_incr() and haypile_decr() that found a counter.
    pub counts: u64,
    /// Number of calls of haypile_incr() and haypile_decr() that found no entry.
    pub count_misses: u64,
    /// Number of entries that were evicted to make room.
    pub evictions: u64,
    /// Number of entries that were removed because their TTL had passed.
    pub expired: u64,
    /// Number of new entries that were accepted but not stored.
    pub declined: u64,
    /// Number of values that were found but damaged. The caller saw a miss.
    pub corrupt: u64,
    /// Number of entries now. Some of them may have expired.
    pub entries: u64,
    /// Number of bytes of all entries now: keys, values and metadata.
    pub bytes: u64,
    /// The bound on `bytes`; zero if there is none or it is not known.
    pub capacity_bytes: u64,
    /// Number of operations that were answered as by an empty cache, because the server could not be reached.
    pub unreachable: u64,
    /// Number of reads before computations that failed, and counted as misses; zero for a single level, as are
    /// the next two.
    pub failed_reads: u64,
    /// Number of computed values that the cache refused to store. The callers got them.
    pub refused_values: u64,
    /// Number of refreshes that failed while there was a value to serve.
    pub failed_refreshes: u64,
    /// Number of entries that were loaded from a saved cache (`persist=`); zero until the loading has ended, as
    /// are the next three.
    pub loaded_entries: u64,
    /// Time of reading the saved cache, in nanoseconds.
    pub load_read_ns: u64,
    /// Time of verifying the saved cache, in nanoseconds.
    pub load_check_ns: u64,
    /// Time of inserting the entries of the saved cache, in nanoseconds.
    pub load_insert_ns: u64,
    /// Number of connections to a server that were lost while entries were to change, and of which the server
    /// did not confirm that it had read them to their end. An older value can come back.
    pub unfenced: u64,
    /// Number of writes under a lease that were refused, because the key had changed since or may have; those of
    /// haypile_get_or_compute() among them.
    pub revoked: u64,
}

impl Growing for Stats {
    const FIRST_BYTES: usize = std::mem::offset_of!(Stats, unreachable);
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
        // SAFETY: what the header says of pointers.
        let (out, cache) = unsafe {
            (OutStruct::new("out_stats", out_stats, stats_bytes)?, object("cache", cache)?)
        };
        out.set(&stats_of(&cache.enter()?.stats()?));
        Ok(Status::HaypileOk)
    })
}

/// Returns the statistics of one level of a cache, the fastest of which is zero. HAYPILE_END if there
/// are not that many levels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_level_stats(
    cache: *const Cache,
    level: usize,
    out_stats: *mut Stats,
    stats_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, cache) = unsafe {
            (OutStruct::new("out_stats", out_stats, stats_bytes)?, object("cache", cache)?)
        };
        let levels = cache.enter()?.store().stats_by_level()?;
        let Some(level) = levels.get(level) else { return Ok(Status::HaypileEnd) };
        out.set(&stats_of(&level.stats));
        Ok(Status::HaypileOk)
    })
}

fn stats_of(stats: &engine::Stats) -> Stats {
    let loading = stats.loading.unwrap_or_default();
    Stats {
        hits: stats.hits,
        misses: stats.misses,
        sets: stats.sets,
        unmet: stats.unmet,
        deletes: stats.deletes,
        delete_misses: stats.delete_misses,
        touches: stats.touches,
        touch_misses: stats.touch_misses,
        counts: stats.counts,
        count_misses: stats.count_misses,
        evictions: stats.evictions,
        expired: stats.expired,
        declined: stats.declined,
        corrupt: stats.corrupt,
        entries: stats.entries,
        bytes: stats.bytes,
        capacity_bytes: stats.capacity_bytes.unwrap_or(0),
        unreachable: stats.unreachable,
        failed_reads: stats.failed_reads,
        refused_values: stats.refused_values,
        failed_refreshes: stats.failed_refreshes,
        revoked: stats.revoked,
        loaded_entries: loading.entries,
        load_read_ns: loading.read_ns,
        load_check_ns: loading.check_ns,
        load_insert_ns: loading.insert_ns,
        unfenced: stats.unfenced,
    }
}

#[cfg(test)]
mod tests {
    use engine::Event;

    use super::*;

    #[test]
    fn each_event_of_the_engine_has_a_field_of_its_name() {
        let header = include_str!("../include/haypile.h");
        for event in Event::ALL {
            let mut stats = engine::Stats::default();
            stats[event] = 1;
            let stats = format!("{:?}", stats_of(&stats));
            assert!(stats.contains(&format!(" {}: 1", event.name())), "{stats}");
            assert!(header.contains(&format!("    uint64_t {};", event.name())));
        }
    }
}
