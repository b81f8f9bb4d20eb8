//! The conditions under which commands are started.

use std::fmt;

/// A condition under which a command is started: with its cache, without it, or as one of two
/// commands.
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

    /// The conditions of starts that do not find a full cache, the preferred one first: without the
    /// cache, or with an empty one.
    pub(super) const LACKING: [Self; 2] = [Self::Off, Self::Fill];

    /// Returns the name of the condition of starts (with the cache, without it, and so on) in
    /// results.
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

    /// Returns the condition of starts that the control repeats; any other condition is returned
    /// unchanged.
    pub(super) fn repeated(self) -> Self {
        match self {
            Self::Again => Self::With,
            Self::FirstAgain => Self::First,
            other => other,
        }
    }

    /// Returns the condition's name for the user's commands before and after a start; they see the
    /// control as the condition that it repeats.
    pub(super) fn in_hooks(self) -> &'static str {
        self.repeated().name()
    }

    /// Whether programs that are started under this condition find their cache full, and use it.
    pub(super) fn is_primed(self) -> bool {
        matches!(self, Self::With | Self::Again)
    }

    /// Whether this condition of starts is the reference, with which all others are compared.
    pub(super) fn is_reference(self) -> bool {
        matches!(self, Self::With | Self::First)
    }

    /// Whether this condition of starts is the control, which repeats the reference.
    pub(super) fn is_control(self) -> bool {
        matches!(self, Self::Again | Self::FirstAgain)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
