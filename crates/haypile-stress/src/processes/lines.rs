//! The lines that processes write for the driver, in JSON.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::tally::Tally;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// Counts since the process began; each line replaces the one before.
    Tally(Tally),
    /// Something wrong, in words.
    Finding(String),
}

impl Line {
    /// Writes the line with one system call, so that a kill leaves it whole or out.
    pub(super) fn write(&self) -> io::Result<()> {
        let mut text = serde_json::to_vec(self).map_err(io::Error::other)?;
        text.push(b'\n');
        let mut output = io::stdout().lock();
        output.write_all(&text)?;
        output.flush()
    }

    /// Reads a line; `None` for one that a kill has cut.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
