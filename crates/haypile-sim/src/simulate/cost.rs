//! The cost of a miss, by which hits are weighed.

use std::fmt;
use std::str::FromStr;

use super::{Counts, SimulateError};
use crate::Trace;

/// Units of time, in nanoseconds.
const UNITS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9)];

/// The name of the costs that the trace states.
const OF_TRACE: &str = "trace";

/// The time that a miss of the cache costs, such as for computing the value again.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum MissCost {
    /// A fixed part, and a part for each byte of the value.
    Formula {
        /// The time that every miss costs, whatever the size of the value, in nanoseconds; 0 or more.
        fixed_ns: f64,
        /// The time that a miss costs for each byte of the missing value, in nanoseconds; 0 or more.
        ns_per_byte: f64,
    },
    /// The time that the trace states for each read ([`Trace::costs_ns`]).
    OfTrace,
}

/// The error for a text that does not state the cost of a miss.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cost of a miss '{text}' {problem}; write a fixed time, one for each byte, or both, as in fixed=20ms,per-byte=0.5ns (units: ns, us, \
     ms, s, min), or trace for the costs that the trace states"
)]
pub struct BadMissCost {
    text: String,
    problem: String,
}

impl MissCost {
    /// Returns the total cost of the counted misses, in nanoseconds.
    pub fn lost_ns(&self, counts: &Counts) -> f64 {
        self.of(counts.misses, counts.miss_bytes, counts.miss_cost_ns)
    }

    /// Returns the total cost that the counted hits avoided, in nanoseconds: they would have been misses without a
    /// cache.
    pub fn saved_ns(&self, counts: &Counts) -> f64 {
        self.of(counts.hits, counts.hit_bytes, counts.hit_cost_ns)
    }

    /// Returns the share that hits saved of the cost that all reads would have without a cache, from 0 to 1; 0 if that
    /// cost is 0.
    pub fn saved_ratio(&self, counts: &Counts) -> f64 {
        let (saved, lost) = (self.saved_ns(counts), self.lost_ns(counts));
        if saved + lost > 0.0 { saved / (saved + lost) } else { 0.0 }
    }

    /// Checks that a trace has sizes of values, if the cost of a miss depends on them, and costs, if it is these.
    ///
    /// # Errors
    /// [`SimulateError::NoSizesForCost`] and [`SimulateError::NoCosts`].
    pub fn check(&self, trace: &Trace) -> Result<(), SimulateError> {
        match *self {
            Self::Formula { ns_per_byte, .. } if ns_per_byte > 0.0 && trace.sizes().is_none() => {
                Err(SimulateError::NoSizesForCost)
            }
            Self::OfTrace if trace.costs_ns().is_none() => Err(SimulateError::NoCosts),
            _ => Ok(()),
        }
    }

    /// Returns the cost of some reads, of the sum of their bytes, and of the costs that the trace states for them.
    fn of(&self, reads: u64, bytes: u64, stated_ns: u64) -> f64 {
        match *self {
            Self::Formula { fixed_ns, ns_per_byte } => {
                fixed_ns * reads as f64 + ns_per_byte * bytes as f64
            }
            Self::OfTrace => stated_ns as f64,
        }
    }
}

impl fmt::Display for MissCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Formula { fixed_ns, ns_per_byte } => {
                write!(f, "fixed={fixed_ns}ns,per-byte={ns_per_byte}ns")
            }
            Self::OfTrace => f.write_str(OF_TRACE),
        }
    }
}

impl FromStr for MissCost {
    type Err = BadMissCost;

    fn from_str(text: &str) -> Result<Self, BadMissCost> {
        let bad = |problem: String| BadMissCost { text: text.to_owned(), problem };
        if text == OF_TRACE {
            return Ok(Self::OfTrace);
        }
        let (mut fixed, mut per_byte) = (None, None);
        for part in text.split(',') {
            let (name, time) =
                part.split_once('=').ok_or_else(|| bad(format!("has '{part}' without a '='")))?;
            let place = match name {
                "fixed" => &mut fixed,
                "per-byte" => &mut per_byte,
                _ => return Err(bad(format!("has the unknown part '{name}'"))),
            };
            let ns = nanoseconds(time)
                .ok_or_else(|| bad(format!("has '{time}', which is not a time with its unit")))?;
            if place.replace(ns).is_some() {
                return Err(bad(format!("has '{name}' twice")));
            }
        }
        let (fixed_ns, ns_per_byte) = (fixed.unwrap_or_default(), per_byte.unwrap_or_default());
        if fixed_ns + ns_per_byte > 0.0 {
            Ok(Self::Formula { fixed_ns, ns_per_byte })
        } else {
            Err(bad("is zero".to_owned()))
        }
    }
}

/// Returns the nanoseconds of a time such as 20ms or 0.5ns, up to a thousand years.
fn nanoseconds(text: &str) -> Option<f64> {
    const MOST_NS: f64 = 1000.0 * 366.0 * 86_400.0 * 1e9;
    let (number, unit_ns) =
        UNITS.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let ns = number.parse::<f64>().ok().filter(|_| is_number)? * unit_ns;
    (ns <= MOST_NS).then_some(ns)
}

/// The quantity by which caches are compared: reads that hit, their bytes, or the cost of misses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Goal {
    /// Reads that hit.
    #[default]
    Reads,
    /// Bytes of the reads that hit.
    Bytes,
    /// Cost of the misses that hits avoid.
    Cost(MissCost),
}

impl Goal {
    /// Returns the name of the goal on the command line: reads, bytes or cost.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Bytes => "bytes",
            Self::Cost(_) => "cost",
        }
    }

    /// Returns the weight of a read of a value of this length in bytes, for which the trace states this cost in nanoseconds: what
    /// its hit saves, in the unit of the goal.
    pub fn weight(&self, size_bytes: u64, stated_ns: u64) -> f64 {
        match self {
            Self::Reads => 1.0,
            Self::Bytes => size_bytes as f64,
            Self::Cost(cost) => cost.of(1, size_bytes, stated_ns),
        }
    }

    /// Returns the amount that the counted hits saved, in the unit of the goal: reads, bytes or nanoseconds.
    pub fn saved(&self, counts: &Counts) -> f64 {
        match self {
            Self::Reads => counts.hits as f64,
            Self::Bytes => counts.hit_bytes as f64,
            Self::Cost(cost) => cost.saved_ns(counts),
        }
    }

    /// Returns the amount that the counted misses lost, in the unit of the goal: reads, bytes or nanoseconds.
    pub fn lost(&self, counts: &Counts) -> f64 {
        match self {
            Self::Reads => counts.misses as f64,
            Self::Bytes => counts.miss_bytes as f64,
            Self::Cost(cost) => cost.lost_ns(counts),
        }
    }

    /// Returns the share that hits saved of the reads, of their bytes or of their cost (by the goal), from 0 to 1; 0
    /// without reads.
    pub fn saved_ratio(&self, counts: &Counts) -> f64 {
        match self {
            Self::Reads => counts.hit_ratio(),
            Self::Bytes => counts.byte_hit_ratio(),
            Self::Cost(cost) => cost.saved_ratio(counts),
        }
    }

    /// Checks that the trace has sizes of values or costs, if the goal needs them.
    ///
    /// # Errors
    /// [`SimulateError::NoSizesForGoal`], and as [`MissCost::check`].
    pub fn check(&self, trace: &Trace) -> Result<(), SimulateError> {
        match self {
            Self::Bytes if trace.sizes().is_none() => Err(SimulateError::NoSizesForGoal),
            Self::Cost(cost) => cost.check(trace),
            Self::Reads | Self::Bytes => Ok(()),
        }
    }
}

impl serde::Serialize for Goal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
