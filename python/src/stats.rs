//! Statistics.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Statistics as they are pickled.
type Pickled = (Vec<u64>, Option<u64>, Option<f64>);

/// Defines the class of one list of counts, which have the engine's names.
macro_rules! stats {
    ($($(#[doc = $doc:literal])+ $count:ident,)+) => {
        /// Counts since this process opened the cache, and the cache's current contents.
        ///
        /// Operations that failed are counted nowhere.
        #[pyclass(frozen, get_all, eq, module = "haypile")]
        #[derive(PartialEq)]
        pub struct Stats {
            $($(#[doc = $doc])+ $count: u64,)+
            /// Entries held now. Some of them may have expired.
            entries: u64,
            /// Bytes held now: keys, values and metadata.
            bytes: u64,
            /// The bound on bytes; None where there is none or it is not known.
            capacity_bytes: Option<u64>,
            /// Hits per read; None before the first read.
            hit_ratio: Option<f64>,
        }

        impl From<engine::Stats> for Stats {
            fn from(stats: engine::Stats) -> Self {
                Self {
                    $($count: stats.$count,)+
                    entries: stats.entries,
                    bytes: stats.bytes,
                    capacity_bytes: stats.capacity_bytes,
                    hit_ratio: stats.hit_ratio(),
                }
            }
        }

        #[pymethods]
        impl Stats {
            /// Returns the statistics that were pickled.
            #[staticmethod]
            fn _restored(
                counts: Vec<u64>,
                capacity_bytes: Option<u64>,
                hit_ratio: Option<f64>,
            ) -> PyResult<Self> {
                let mut counts = counts.into_iter();
                let mut next = || {
                    counts.next().ok_or_else(|| PyValueError::new_err("counts are missing"))
                };
                Ok(Self {
                    $($count: next()?,)+
                    entries: next()?,
                    bytes: next()?,
                    capacity_bytes,
                    hit_ratio,
                })
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled)> {
                let counts = vec![$(self.$count,)+ self.entries, self.bytes];
                let restored = py.get_type::<Self>().getattr("_restored")?;
                Ok((restored, (counts, self.capacity_bytes, self.hit_ratio)))
            }

            fn __repr__(&self) -> String {
                let Self { hits, misses, sets, evictions, entries, bytes, .. } = self;
                format!(
                    "<haypile.Stats hits={hits} misses={misses} sets={sets} evictions={evictions} \
                     entries={entries} bytes={bytes}>"
                )
            }
        }
    };
}

stats! {
    /// Reads that found a value.
    hits,
    /// Reads that found none, or an expired one.
    misses,
    /// Accepted writes, including those by incr and decr.
    sets,
    /// Writes by add and replace whose condition did not hold.
    unmet,
    /// Deletions of an entry that was there; clear counts none.
    deletes,
    /// Deletions that found no entry.
    delete_misses,
    /// New TTLs for an entry that was there.
    touches,
    /// Calls of touch that found no entry.
    touch_misses,
    /// Calls of incr and decr that found a counter.
    counts,
    /// Calls of incr and decr that found no entry.
    count_misses,
    /// Entries that were evicted to make room.
    evictions,
    /// Entries that were removed because their TTL had passed.
    expired,
    /// New entries that were accepted and not retained.
    declined,
    /// Values that were found and could not be read back; each was a miss.
    corrupt,
}
