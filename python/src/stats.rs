//! Statistics.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Statistics as they are pickled.
type Pickled = (Vec<u64>, Option<u64>, Option<f64>);

/// Defines the class of the engine's list of events.
macro_rules! stats {
    ($($(#[doc = $doc:literal])+ $event:ident $count:ident $metric:expr;)+) => {
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
                    entries: next()?,
                    bytes: next()?,
                    $($count: next()?,)+
                    capacity_bytes,
                    hit_ratio,
                })
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled)> {
                let counts = vec![self.entries, self.bytes, $(self.$count,)+];
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

engine::for_each_event!(stats);
