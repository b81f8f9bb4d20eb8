//! The weight of entries.

use std::fmt;
use std::str::FromStr;

use super::SimulateError;
use crate::Trace;

/// The size in bytes from which RelStorage never stores a value (its option `cache-local-object-max`).
pub const RELSTORAGE_VALUE_LIMIT_BYTES: u64 = 16_384;

/// The rule by which an entry counts against the size of a cache: as one object, by the bytes of its value, or by what
/// a certain cache charges for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Accounting {
    /// Every entry weighs 1.
    Objects,
    /// An entry weighs the bytes of its value.
    Bytes,
    /// An entry weighs the bytes of its key, as text, and of its value; values of
    /// [`RELSTORAGE_VALUE_LIMIT_BYTES`] and above are never stored.
    Relstorage,
    /// The cache is Haypile's `memory` store: an entry weighs what the store charges for it, and keys are
    /// spread over the store's shards.
    Engine,
}

impl Accounting {
    /// All rules by which entries count against the size of a cache.
    pub const ALL: [Self; 4] = [Self::Objects, Self::Bytes, Self::Relstorage, Self::Engine];

    /// Returns the name of the accounting rule, as written on the command line: `objects`, `bytes`, `relstorage` or
    /// `engine`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Bytes => "bytes",
            Self::Relstorage => "relstorage",
            Self::Engine => "engine",
        }
    }

    /// Returns the weight of a cache entry (in bytes, or 1) with the key `id` and a value of `size_bytes`; `None` if a
    /// value this large is never stored. It is never 0, so that no cache holds infinitely many entries.
    #[inline]
    pub(crate) fn weight(self, trace: &Trace, id: u32, size_bytes: u64) -> Option<u64> {
        match self {
            Self::Objects => Some(1),
            Self::Bytes => Some(size_bytes.max(1)),
            Self::Relstorage if size_bytes >= RELSTORAGE_VALUE_LIMIT_BYTES => None,
            Self::Relstorage => Some((u64::from(trace.key_bytes(id)) + size_bytes).max(1)),
            Self::Engine => Some(haypile_policy::rules::memory::charge(
                u64::from(trace.key_bytes(id)),
                size_bytes,
            )),
        }
    }
}

/// Returns the cache size that holds every key of a trace with its last value, deleted keys included. Without sizes,
/// and if objects are counted, it is the number of keys. For a sample, it is an estimate for the whole trace.
pub fn footprint(trace: &Trace, accounting: Accounting) -> u64 {
    let Some(sizes) = trace.sizes().filter(|_| accounting != Accounting::Objects) else {
        return trace.whole_keys();
    };
    let mut last = vec![0_u32; trace.keys() as usize];
    for (id, size) in trace.ids().iter().zip(sizes) {
        if size.get() > 0 {
            last[id.get() as usize] = size.get();
        }
    }
    let weights = (0..trace.keys()).zip(last);
    let weight = |(id, size)| accounting.weight(trace, id, u64::from(size));
    trace.scaled_up(weights.filter_map(weight).sum())
}

impl fmt::Display for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Accounting {
    type Err = SimulateError;

    fn from_str(text: &str) -> Result<Self, SimulateError> {
        Self::ALL
            .into_iter()
            .find(|accounting| accounting.name() == text)
            .ok_or_else(|| SimulateError::UnknownAccounting { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{BuildOptions, Key, Op, Request, Sink, TraceBuilder};

    #[test]
    fn nothing_weighs_nothing() {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        let key = Key::Text(b"");
        builder
            .push(Request {
                key,
                size_bytes: Some(0),
                op: Op::Read,
                time_us: None,
                ttl_us: None,
                cost_ns: None,
            })
            .unwrap();
        let trace = builder.finish().unwrap();
        for accounting in Accounting::ALL {
            let weight = accounting.weight(&trace, 0, 0);
            assert!(weight.is_some_and(|weight| weight > 0), "{accounting}: {weight:?}");
        }
    }
}
