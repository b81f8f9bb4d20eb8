//! The metrics that can be compared.

use std::fmt;
use std::str::FromStr;

use haypile_number::bytes;

use crate::result::Sample;

/// A cost of a sample. Less is better.
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

/// A metric that does not exist.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("unknown metric '{name}' (known: cpu, wall, server, memory)")]
pub struct UnknownMetric {
    /// The name given.
    pub name: String,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Wall, Self::Server, Self::Memory];

    /// Its name: `cpu`, `wall`, `server` or `memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Wall => "wall",
            Self::Server => "server",
            Self::Memory => "memory",
        }
    }

    /// Its unit, in words.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Memory => "bytes",
            Self::Cpu | Self::Wall | Self::Server => "nanoseconds per operation",
        }
    }

    /// Whether it is a time.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Cpu | Self::Wall | Self::Server)
    }

    /// A value with about three digits for people, memory with its unit and times without.
    pub fn figure(self, value: f64) -> String {
        match value {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "bytes that were counted by a u64"
            )]
            _ if self == Self::Memory => bytes(value as u64),
            ..9.995 => format!("{value:.2}"),
            9.995..999.95 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        }
    }

    /// This cost of a sample. `None` if it is an error, or if this was not measured: a subject
    /// without a server, memory that did not grow, a time below the clock's resolution.
    pub fn of(self, sample: &Sample) -> Option<f64> {
        if sample.error.is_some() {
            return None;
        }
        let total = match self {
            Self::Cpu => Some(sample.cpu_ns),
            Self::Wall => Some(sample.wall_ns),
            Self::Server => sample.server_cpu_ns,
            Self::Memory => sample.memory_bytes,
        };
        let total = as_float(total.filter(|&total| total > 0)?);
        Some(if self == Self::Memory { total } else { total / as_float(sample.operations.max(1)) })
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

fn as_float(number: u64) -> f64 {
    number as f64
}
