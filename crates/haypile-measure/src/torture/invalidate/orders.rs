//! Orders to clients, and the fates of clients within them.

use std::fmt;
use std::time::Duration;

use super::super::draw::Draw;
use super::super::role::{ALL_KEYS, GROUPS};

/// A kind of removal from the cache: of a key, of a group of keys or of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Key(u64),
    Group(u64),
    All,
}

/// An order to a client process, such as to read or to remove a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Reads a key.
    Get(u64),
    /// Reads a key, or computes its value, for all clients that wait for it.
    Compute(u64),
    /// Reads a key, or else reads the database and writes that value.
    Fill(u64),
    /// Removes one entry or several, after the database has changed.
    Remove(Removal),
}

impl Order {
    pub(super) fn draw(draw: &mut Draw, keys: u64) -> Self {
        let key = draw.below(keys);
        match draw.below(100) {
            0..30 => Self::Get(key),
            30..52 => Self::Compute(key),
            52..74 => Self::Fill(key),
            74..88 => Self::Remove(Removal::Key(key)),
            88..94 => Self::Remove(Removal::Group(key % GROUPS)),
            94..97 => Self::Remove(Removal::Group(ALL_KEYS)),
            _ => Self::Remove(Removal::All),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(key) => write!(f, "get {key}"),
            Self::Compute(key) => write!(f, "compute {key}"),
            Self::Fill(key) => write!(f, "fill {key}"),
            Self::Remove(Removal::Key(key)) => write!(f, "delete {key}"),
            Self::Remove(Removal::Group(group)) => write!(f, "invalidate {group}"),
            Self::Remove(Removal::All) => f.write_str("clear"),
        }
    }
}

/// The fate of a client process while it performs an order: it lives, is stopped or is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Live,
    /// The client is stopped for this long.
    Stopped(Duration),
    /// The client is killed this long after the order.
    Killed(Duration),
    /// The client is killed while it computes, or this long after the order where it does not.
    KilledComputing(Duration),
    /// The client is killed this long after it has got the value that it computes from, or after the order where it
    /// does not compute.
    KilledStoring(Duration),
}

impl Fate {
    pub(super) fn draw_death(draw: &mut Draw, longest_ns: u64) -> Self {
        let after = Duration::from_nanos(draw.below(longest_ns));
        match draw.below(3) {
            0 => Self::Killed(after),
            1 => Self::KilledComputing(after),
            _ => Self::KilledStoring(after),
        }
    }
}
