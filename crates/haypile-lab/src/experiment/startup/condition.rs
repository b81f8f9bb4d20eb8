//! The conditions under which a command is started.

use std::fmt;

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    /// With the cache, primed.
    With,
    /// The same once more: the difference between both is noise.
    Again,
    /// With the cache, empty.
    Fill,
    /// Without the cache.
    Off,
}

impl Condition {
    pub(super) const ALL: [Self; 4] = [Self::With, Self::Again, Self::Fill, Self::Off];

    /// Its name as a subject of results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::With => "with",
            Self::Again => "with again",
            Self::Fill => "fill",
            Self::Off => "off",
        }
    }

    /// Whether the cache is to be full, and used.
    pub(super) fn is_primed(self) -> bool {
        matches!(self, Self::With | Self::Again)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
