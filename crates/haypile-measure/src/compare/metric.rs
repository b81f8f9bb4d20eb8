//! The metrics that can be compared.

use std::fmt;
use std::str::FromStr;

use crate::figure::{self, Figure};

/// A cost that comparisons of samples use, such as processor time. Less is better.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Metric {
    /// Processor time of the subject's own processes per operation, in nanoseconds.
    Cpu,
    /// Wall time per operation, in nanoseconds.
    Wall,
    /// Processor time of the subject's server per operation, in nanoseconds.
    Server,
    /// Resident memory that the subject takes, in bytes.
    Memory,
}

/// The error of an unknown name of a metric that is to be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("unknown metric '{name}' (known: cpu, wall, server, memory)")]
pub struct UnknownMetric {
    /// The unknown name that the user wrote.
    pub name: String,
}

impl Metric {
    /// All metrics that can be compared.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Wall, Self::Server, Self::Memory];

    /// Returns the name of the metric: `cpu`, `wall`, `server` or `memory`.
    pub fn name(self) -> &'static str {
        self.figure().name
    }

    /// Returns the unit of the metric, in words: bytes, or nanoseconds per operation.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Memory => "bytes",
            Self::Cpu | Self::Wall | Self::Server => "nanoseconds per operation",
        }
    }

    /// Whether the compared metric is a time, in contrast to memory.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Cpu | Self::Wall | Self::Server)
    }

    /// Returns the figure (a function of samples) that computes the metric.
    pub fn figure(self) -> &'static Figure {
        match self {
            Self::Cpu => &figure::CPU,
            Self::Wall => &figure::WALL,
            Self::Server => &figure::SERVER,
            Self::Memory => &figure::MEMORY,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        let mut all = Self::ALL.into_iter();
        all.find(|metric| metric.name() == name)
            .ok_or_else(|| UnknownMetric { name: name.to_owned() })
    }
}
