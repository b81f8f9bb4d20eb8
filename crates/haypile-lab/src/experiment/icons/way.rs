//! The ways of loading icons.

use serde::{Deserialize, Serialize};

/// A way in which a program gets its icons: by probing folders, by scanning them, or from a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    Probe,
    Scan,
    Gtk,
    Index,
    Pixmaps,
    Png,
    Copied,
    Both,
    Shared,
}

impl Way {
    pub(super) const ALL: [Self; 9] = [
        Self::Probe,
        Self::Scan,
        Self::Gtk,
        Self::Index,
        Self::Pixmaps,
        Self::Png,
        Self::Copied,
        Self::Both,
        Self::Shared,
    ];

    /// Returns the name of the way as a subject of results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Scan => "scan",
            Self::Gtk => "gtk",
            Self::Index => "index",
            Self::Pixmaps => "pixmaps",
            Self::Png => "png",
            Self::Copied => "copied",
            Self::Both => "both",
            Self::Shared => "shared",
        }
    }

    /// Whether the way uses a cache of ours, which has to be filled first.
    pub(super) fn has_cache(self) -> bool {
        !matches!(self, Self::Probe | Self::Scan | Self::Gtk)
    }

    /// Whether the way takes over the check of a process that has just made one.
    pub(super) fn shares_checks(self) -> bool {
        self == Self::Shared
    }
}
