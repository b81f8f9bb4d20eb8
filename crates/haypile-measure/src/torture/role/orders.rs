//! The orders of a process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::subject::{Found, Room, SubjectSpec};
use crate::torture::value::Lengths;

/// The role of a process in the torture of a cache (a test that kills processes): writer, reader, computer or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A process that writes its own keys.
    Writer,
    /// A process that reads all keys.
    Reader,
    /// A process that computes a value, or waits for the process that does.
    Computer,
    /// A process that performs one order after the other.
    Client,
}

impl Role {
    const ALL: [Self; 4] = [Self::Writer, Self::Reader, Self::Computer, Self::Client];

    /// Returns the name of the process's role in command-line arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Reader => "reader",
            Self::Computer => "computer",
            Self::Client => "client",
        }
    }
}

/// The command-line arguments of a process in the torture of a cache: its role, the cache, and numbers by name.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The role of the process in the torture, such as a writer.
    pub role: Role,
    /// The directory that contains the tortured cache, which all processes of the torture use.
    pub path: PathBuf,
    /// The seed of the process's random operations on the cache.
    pub seed: u64,
    /// The cache that is tested, which this process of the test (such as a writer) uses: its name and options.
    pub subject: SubjectSpec,
    numbers: BTreeMap<String, u64>,
}

/// The error of wrong command-line arguments of a torture process.
#[derive(Debug, thiserror::Error)]
#[error(
    "wrong arguments of a process of the torture: {0}; docs/torture.md describes them (ROLE PATH \
     SEED SUBJECT NAME=NUMBER...)"
)]
pub struct OrdersError(String);

impl Orders {
    /// Parses the command-line arguments of a torture process. Unknown names are kept; missing
    /// numbers are 0.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn parse(arguments: &[String]) -> Result<Self, OrdersError> {
        let [role, path, seed, subject, numbers @ ..] = arguments else {
            return Err(OrdersError(format!("{} arguments are too few", arguments.len())));
        };
        let known = Role::ALL.into_iter().find(|known| known.name() == role);
        let role = known.ok_or_else(|| OrdersError(format!("unknown role '{role}'")))?;
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| OrdersError(format!("'{text}' is not a number")))
        };
        let pair = |text: &String| {
            let pair = text.split_once('=');
            let (name, value) =
                pair.ok_or_else(|| OrdersError(format!("'{text}' is not NAME=NUMBER")))?;
            Ok((name.to_owned(), number(value)?))
        };
        Ok(Self {
            role,
            path: path.into(),
            seed: number(seed)?,
            subject: subject.parse().map_err(OrdersError)?,
            numbers: numbers.iter().map(pair).collect::<Result<_, OrdersError>>()?,
        })
    }

    /// Returns the capacity, in bytes and in entries, of the cache to open or create.
    pub fn room(&self) -> Room {
        let capacity_bytes = self.number("capacity");
        let capacity_entries = capacity_bytes / self.lengths().mean_bytes();
        Room { found: Found::Cache, ..Room::new(capacity_bytes, capacity_entries) }
    }

    /// Whether the process opens the cache read-only, if the cache can be opened so.
    pub fn is_read_only(&self) -> bool {
        self.number("readonly") == 1
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    pub(super) fn lengths(&self) -> Lengths {
        // Whoever asks for more than memory has is told so by the value, not by its allocation.
        let bytes = |name| self.number(name).min(1 << 30);
        Lengths { common_bytes: bytes("common"), longest_bytes: bytes("longest") }
    }
}
