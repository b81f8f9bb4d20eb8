//! The conditions under which commands are started.

use std::fmt;

/// A condition of a start: of one command and its cache, or of two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    /// The command with its cache, which is full.
    With,
    /// The control: `With` once more. The difference between both is noise.
    Again,
    /// The command with its cache, which is empty.
    Fill,
    /// The command without its cache.
    Off,
    /// The first of two commands.
    First,
    /// The control: `First` once more.
    FirstAgain,
    /// The second of two commands.
    Second,
}

impl Condition {
    pub(super) const ALL: [Self; 7] = [
        Self::With,
        Self::Again,
        Self::Fill,
        Self::Off,
        Self::First,
        Self::FirstAgain,
        Self::Second,
    ];

    /// The conditions that lack the cache, the one that is compared first: without it, or with an empty one.
    pub(super) const LACKING: [Self; 2] = [Self::Off, Self::Fill];

    /// Returns its name as a subject of results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::With => "with",
            Self::Again => "with again",
            Self::Fill => "fill",
            Self::Off => "off",
            Self::First => "A",
            Self::FirstAgain => "A again",
            Self::Second => "B",
        }
    }

    /// Returns the condition that the control repeats; each other condition is its own.
    pub(super) fn repeated(self) -> Self {
        match self {
            Self::Again => Self::With,
            Self::FirstAgain => Self::First,
            other => other,
        }
    }

    /// Returns the name of the condition for the commands around a start: they treat the control as the condition that
    /// it repeats.
    pub(super) fn in_hooks(self) -> &'static str {
        self.repeated().name()
    }

    /// Whether the cache is to be full, and used.
    pub(super) fn is_primed(self) -> bool {
        matches!(self, Self::With | Self::Again)
    }

    /// Whether the others are compared with this condition.
    pub(super) fn is_reference(self) -> bool {
        matches!(self, Self::With | Self::First)
    }

    /// Whether the condition is the reference once more.
    pub(super) fn is_control(self) -> bool {
        matches!(self, Self::Again | Self::FirstAgain)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
