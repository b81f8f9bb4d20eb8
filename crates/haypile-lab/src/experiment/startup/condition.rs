//! The conditions under which commands are started.

use std::fmt;

/// A condition under which a command is started: with its full or empty cache, without the cache,
/// or as one of two commands.
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

    /// Returns the name that results have for this condition of starts: `with` (with the full
    /// cache), `off` (without the cache), `A` and so on.
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

    /// Returns the condition that the control (the same starts measured once more) repeats: the
    /// full cache, or the first command; another condition is returned unchanged.
    pub(super) fn repeated(self) -> Self {
        match self {
            Self::Again => Self::With,
            Self::FirstAgain => Self::First,
            other => other,
        }
    }

    /// Returns the condition's name (such as `with` or `off`) for the user's commands before and
    /// after a start, to which the control looks like the condition that it repeats.
    pub(super) fn in_hooks(self) -> &'static str {
        self.repeated().name()
    }

    /// Whether programs that are started under this condition find their cache full, and use it.
    pub(super) fn is_primed(self) -> bool {
        matches!(self, Self::With | Self::Again)
    }

    /// Whether starts of all other conditions are compared with those of this one: the full cache,
    /// or the first of two commands.
    pub(super) fn is_reference(self) -> bool {
        matches!(self, Self::With | Self::First)
    }

    /// Whether this condition is the control: the full cache or the first command once more, to
    /// show how much equal starts differ.
    pub(super) fn is_control(self) -> bool {
        matches!(self, Self::Again | Self::FirstAgain)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
