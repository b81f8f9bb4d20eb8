//! How a value is written, and what comes of it.

use crate::error::Result;
use crate::ttl::Ttl;

/// Stands for one state of one entry: each write gives it another, also one of the same bytes.
/// Only the store that it comes from can make sense of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(u64);

impl Version {
    /// The version that a store, or a binding that kept [`raw`](Self::raw), knows as this number.
    pub fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The number, to be kept and given back.
    pub fn raw(self) -> u64 {
        self.0
    }
}

/// The condition of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteMode {
    /// Always.
    #[default]
    Set,
    /// Only where there is no entry.
    Add,
    /// Only where there is an entry.
    Replace,
    /// Only where the entry is as it was when this version was read.
    Cas(Version),
}

/// How a value is written.
///
/// ```
/// use std::time::Duration;
/// use haypile::SetOptions;
///
/// let add_for_a_minute = SetOptions::add().with_ttl(Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetOptions {
    /// The condition.
    pub mode: WriteMode,
    /// How long the entry lives.
    pub ttl: Ttl,
}

impl SetOptions {
    /// Writes whatever is there.
    pub fn set() -> Self {
        Self::default()
    }

    /// Writes where there is no entry.
    pub fn add() -> Self {
        Self { mode: WriteMode::Add, ..Self::default() }
    }

    /// Writes where there is an entry.
    pub fn replace() -> Self {
        Self { mode: WriteMode::Replace, ..Self::default() }
    }

    /// Writes where the entry still has this version.
    pub fn cas(version: Version) -> Self {
        Self { mode: WriteMode::Cas(version), ..Self::default() }
    }

    /// The same with this TTL.
    #[must_use]
    pub fn with_ttl(self, ttl: impl Into<Ttl>) -> Self {
        Self { ttl: ttl.into(), ..self }
    }
}

/// What came of a write. All but `Stored` mean that its condition did not hold and that nothing
/// has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a write with a condition may not have happened"]
#[non_exhaustive]
pub enum Written {
    /// The value was accepted.
    Stored,
    /// `Add` found an entry.
    Exists,
    /// `Replace` or `Cas` found none.
    Absent,
    /// `Cas` found another version.
    Changed,
}

impl Written {
    /// Whether the value was accepted.
    pub fn is_stored(self) -> bool {
        self == Self::Stored
    }
}

/// A write that has its place and waits for its bytes.
pub trait Reservation: Send {
    /// The bytes of the value to be, as many as were reserved. What they are at first is
    /// unspecified: all of them are to be written.
    fn buffer(&mut self) -> &mut [u8];

    /// Makes the entry visible, if the condition of the write holds now.
    fn commit(self: Box<Self>) -> Result<Written>;
}
