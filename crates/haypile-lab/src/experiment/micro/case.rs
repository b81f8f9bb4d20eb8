//! The cases of `micro` and their names.

use std::fmt;
use std::str::FromStr;

use super::MicroError;

/// The kind of operation that a case of the experiment `micro` measures, such as reads that hit;
/// the [module](super) describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaseKind {
    /// Reads that hit.
    GetHit,
    /// Reads that miss.
    GetMiss,
    /// Writes of keys that follow the distribution.
    Set,
    /// Writes of keys that are resident, with room for them.
    Overwrite,
    /// Reads that hit, while the last process writes.
    GetBeside,
    /// Writes of new keys into a full cache.
    SetEvict,
    /// Sets and reads in turns.
    Mix {
        /// Number of sets of one turn.
        sets: u32,
        /// Number of reads of one turn.
        gets: u32,
    },
    /// Reads, with a set after each miss.
    Aside,
}

/// The largest part of a mixture.
const MAX_TURN: u32 = 1_000_000;

impl CaseKind {
    /// The names of the cases that the experiment `micro` allows, for error messages.
    pub const ALLOWED: &'static str = "get-hit, get-miss, get-beside, set, overwrite, set-evict, aside, \
         mix:SETS:GETS as in mix:1:10";

    /// Whether cases of this kind (such as reads that hit) give the cache enough capacity for all
    /// keys that are set before the timed operations.
    pub(super) fn holds_all(self) -> bool {
        matches!(self, Self::GetHit | Self::GetMiss | Self::Overwrite | Self::GetBeside)
    }

    /// Whether cases of this kind use keys that are not in the cache: for reads that miss, or for
    /// writes of new keys into a full cache.
    pub(super) fn needs_others(self) -> bool {
        matches!(self, Self::GetMiss | Self::SetEvict)
    }
}

impl FromStr for CaseKind {
    type Err = MicroError;

    fn from_str(text: &str) -> Result<Self, MicroError> {
        let unknown =
            || MicroError::Unknown { what: "case", text: text.to_owned(), allowed: Self::ALLOWED };
        Ok(match text {
            "get-hit" => Self::GetHit,
            "get-miss" => Self::GetMiss,
            "get-beside" => Self::GetBeside,
            "set" => Self::Set,
            "overwrite" => Self::Overwrite,
            "set-evict" => Self::SetEvict,
            "aside" => Self::Aside,
            _ => {
                let parts = text.strip_prefix("mix:").and_then(|parts| parts.split_once(':'));
                let (sets, gets) = parts.ok_or_else(unknown)?;
                let turn = |text: &str| {
                    let turn = text.parse().ok().filter(|turn| (1..=MAX_TURN).contains(turn));
                    turn.ok_or_else(unknown)
                };
                Self::Mix { sets: turn(sets)?, gets: turn(gets)? }
            }
        })
    }
}

impl fmt::Display for CaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GetHit => f.write_str("get-hit"),
            Self::GetMiss => f.write_str("get-miss"),
            Self::GetBeside => f.write_str("get-beside"),
            Self::Set => f.write_str("set"),
            Self::Overwrite => f.write_str("overwrite"),
            Self::SetEvict => f.write_str("set-evict"),
            Self::Mix { sets, gets } => write!(f, "mix:{sets}:{gets}"),
            Self::Aside => f.write_str("aside"),
        }
    }
}
