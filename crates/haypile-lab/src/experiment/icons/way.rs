//! The ways of getting icons.

use serde::{Deserialize, Serialize};

/// A way.
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
}

impl Way {
    pub(super) const ALL: [Self; 8] = [
        Self::Probe,
        Self::Scan,
        Self::Gtk,
        Self::Index,
        Self::Pixmaps,
        Self::Png,
        Self::Copied,
        Self::Both,
    ];

    /// Its name as a subject of results.
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
        }
    }

    /// Whether it uses a cache of ours, which has to be filled first.
    pub(super) fn has_cache(self) -> bool {
        !matches!(self, Self::Probe | Self::Scan | Self::Gtk)
    }
}
