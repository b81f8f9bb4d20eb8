//! Options and outcomes of writes.

use crate::error::Result;
use crate::lease::Lease;
use crate::ttl::Ttl;

/// A version of an entry: each write changes it, even one of the same bytes; only the store that
/// returned it understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(u64);

impl Version {
    /// Returns the version of an entry with this number, which comes from a store or from
    /// [`raw`](Self::raw).
    pub fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Returns the version of an entry as a number, for a binding to keep.
    pub fn raw(self) -> u64 {
        self.0
    }
}

/// The condition under which a write of an entry takes effect, such as that the key has no entry,
/// or that its entry is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteMode {
    /// Writes unconditionally.
    #[default]
    Set,
    /// Writes only if there is no entry.
    Add,
    /// Writes only if there is an entry.
    Replace,
    /// Writes only if the entry is unchanged since this version was read.
    Cas(Version),
    /// Writes only if the key has not changed since this lease was granted, whether it has an entry or not.
    Leased(Lease),
}

/// The options of a write: its condition, and the TTL of the entry.
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
    /// The condition under which the write takes effect, such as the absence of an entry.
    pub mode: WriteMode,
    /// The time to live (TTL) of the entry that is written.
    pub ttl: Ttl,
}

impl SetOptions {
    /// Returns the options of a write without a condition.
    pub fn set() -> Self {
        Self::default()
    }

    /// Returns the options of a write that takes effect only if the key has no entry.
    pub fn add() -> Self {
        Self { mode: WriteMode::Add, ..Self::default() }
    }

    /// Returns the options of a write that takes effect only if the key already has an entry.
    pub fn replace() -> Self {
        Self { mode: WriteMode::Replace, ..Self::default() }
    }

    /// Returns the options of a write that takes effect only if the key's entry still has this
    /// version.
    pub fn cas(version: Version) -> Self {
        Self { mode: WriteMode::Cas(version), ..Self::default() }
    }

    /// Returns the options of a write that takes effect only if the key has not changed since this
    /// lease on it was granted.
    pub fn leased(lease: Lease) -> Self {
        Self { mode: WriteMode::Leased(lease), ..Self::default() }
    }

    /// Sets the time to live (TTL) of the entry to be written.
    #[must_use]
    pub fn with_ttl(self, ttl: impl Into<Ttl>) -> Self {
        Self { ttl: ttl.into(), ..self }
    }
}

/// The outcome of a write: that the value was accepted, or in which way the write's condition did
/// not hold. All outcomes but `Stored` mean that nothing has changed.
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
    /// The key has changed since the lease of `Leased` was granted, or may have.
    Revoked,
}

impl Written {
    /// Whether this outcome of a write means that the value was accepted.
    pub fn is_stored(self) -> bool {
        self == Self::Stored
    }
}

/// A prepared write of an entry, with a buffer for the entry's value; it takes effect when it is
/// committed.
pub trait Reservation: Send {
    /// Returns the bytes of the reserved value. They are unspecified at first: the caller must
    /// write all of them.
    fn buffer(&mut self) -> &mut [u8];

    /// Commits the write: makes the entry visible, if the condition of the write holds now.
    fn commit(self: Box<Self>) -> Result<Written>;
}
