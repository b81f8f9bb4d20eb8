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

    /// Returns the name of this way of loading icons in results.
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

    /// Whether this way of loading icons uses a Haypile cache, which has to be filled first.
    pub(super) fn has_cache(self) -> bool {
        !matches!(self, Self::Probe | Self::Scan | Self::Gtk)
    }

    /// Whether this way of loading icons reuses the check of the theme that another process has
    /// just made.
    pub(super) fn shares_checks(self) -> bool {
        self == Self::Shared
    }
}
