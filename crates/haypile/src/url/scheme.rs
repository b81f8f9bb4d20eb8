//! Schemes and their options, declared in tables that checking, messages and help texts read.

use std::time::Duration;

use crate::compress::CompressedStore;
use crate::record::RecordOptions;
use crate::store::DEFAULT_COMPUTE_WAIT;

/// A URL scheme: a kind of cache, with its options.
#[derive(Debug)]
pub struct Scheme {
    /// The name of the URL scheme, which comes before the colon, such as `memory`.
    pub name: &'static str,
    /// The kind of place that a URL of this scheme names (a server, a path, or none).
    pub place: Place,
    /// The options of URLs with this scheme, in the order in which the canonical form prints them.
    pub options: &'static [OptionSpec],
    /// The options of URLs with this scheme that have no effect if another option has a certain
    /// value: (option, other, value of other). A URL with both is refused.
    pub idle: &'static [(&'static str, &'static str, &'static str)],
    /// The help text of the URL scheme, one line.
    pub help: &'static str,
}

/// The kind of place that a URL names: a server, a path, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cache is in the process, with neither a server nor a path.
    Nowhere,
    /// The cache is at a path.
    Path,
    /// The cache is at a server, with or without a path.
    Server,
    /// The cache is at a server or, on the same machine, at the path of a Unix socket.
    ServerOrPath,
}

/// An option of a URL scheme: its name, its type and its help text.
#[derive(Debug)]
pub struct OptionSpec {
    /// The name of the URL option, which comes before the `=`.
    pub name: &'static str,
    /// The type of the URL option's value.
    pub kind: ValueKind,
    /// The purpose and the default of the URL option, for people.
    pub help: &'static str,
}

/// The type of a URL option's value, such as a size, a duration, a path, or one of several words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// A size: a number of bytes within a range.
    Size {
        /// The smallest allowed size, in bytes.
        min_bytes: u64,
        /// The largest allowed size, in bytes.
        max_bytes: u64,
    },
    /// A count: a whole number within a range.
    Count {
        /// The smallest allowed value.
        min: u64,
        /// The largest allowed value.
        max: u64,
    },
    /// A duration above zero: `500ms`, `30s`, `10m`.
    Duration,
    /// An eviction policy and its parameters.
    Policy,
    /// A method of compression: `lz4`, `zstd`, `zstd:7`.
    Compression,
    /// One of a list of words.
    Choice(&'static [&'static str]),
    /// The path of a file, absolute or relative to the current directory.
    Path,
    /// Any text except the empty one.
    Text,
}

impl OptionSpec {
    /// The options that the URL of an upper level of a cache has in addition to those of its
    /// scheme.
    pub const UPPER_LEVEL: &[Self] = crate::tier::LEVEL_OPTIONS;

    /// The default of the URL option `compute_wait=`, the time that a caller waits for another that
    /// computes the same value.
    pub const DEFAULT_COMPUTE_WAIT: Duration = DEFAULT_COMPUTE_WAIT;

    /// The URL option `ttl=`, the default time to live of entries, which every scheme has whose
    /// caches store entries.
    pub const TTL: Self = Self {
        name: "ttl",
        kind: ValueKind::Duration,
        help: "life of entries that are written without a TTL of their own; they never expire \
               by default",
    };

    /// The option `namespace=` of URLs, which each scheme has whose caches store entries.
    pub const NAMESPACE: Self = Self {
        name: "namespace",
        kind: ValueKind::Text,
        help: "clear, len and iteration see only the entries of this name",
    };

    /// The URL option `compute_wait=`, the time that a caller waits for another that computes the
    /// same value.
    pub const COMPUTE_WAIT: Self = Self {
        name: "compute_wait",
        kind: ValueKind::Duration,
        help: "time that a caller waits for another that computes the same value, before it \
               computes itself; 30s by default",
    };

    /// The URL option `allow_shared=`, which accepts files that other users can write. Every scheme
    /// has it that keeps entries in a file: at the path of the level, or at that of `persist=`.
    pub const ALLOW_SHARED: Self = Self {
        name: "allow_shared",
        kind: ValueKind::Choice(&["no", "yes"]),
        help: "whether to use a file that belongs to another user, or that other users can write; \
               no by default",
    };

    /// The URL option `record=`, which records a store's operations to a file. Schemes whose stores
    /// can be recorded have it together with [`RECORD_MAX`](Self::RECORD_MAX) and
    /// [`RECORD_KEYS`](Self::RECORD_KEYS). The [`Registry`](crate::Registry) does the
    /// [recording](crate::record), not the opener.
    pub const RECORD: Self = Self {
        name: "record",
        kind: ValueKind::Path,
        help: "file to which operations are recorded, one for each process: PATH.PID",
    };

    /// The URL option `record_max=`, the bound on a file of recorded operations.
    pub const RECORD_MAX: Self = Self {
        name: "record_max",
        kind: ValueKind::Size {
            min_bytes: RecordOptions::MIN_MAX_BYTES,
            max_bytes: RecordOptions::MAX_MAX_BYTES,
        },
        help: "the bound on the recording of a process; 1GiB by default",
    };

    /// The URL option `record_keys=`, which decides whether a recording of operations contains keys
    /// or their hashes.
    pub const RECORD_KEYS: Self = Self {
        name: "record_keys",
        kind: ValueKind::Choice(&["plain", "hash"]),
        help: "form in which keys are recorded: as they are, or their unkeyed hash; plain by \
               default",
    };

    /// The URL option `compress=`, the method of compressing values, which every scheme has whose
    /// caches store entries.
    pub const COMPRESS: Self = Self {
        name: "compress",
        kind: ValueKind::Compression,
        help: "compression of values that it makes shorter: lz4, zstd or zstd:LEVEL; none by \
               default",
    };

    /// The URL option `compress_min=`, the length from which values are compressed; it comes with
    /// [`COMPRESS`](Self::COMPRESS).
    pub const COMPRESS_MIN: Self = Self {
        name: "compress_min",
        kind: ValueKind::Size { min_bytes: CompressedStore::MIN_MIN_BYTES, max_bytes: 1 << 30 },
        help: "smallest length of values that are compressed; 256 by default",
    };
}

impl Scheme {
    /// Returns the option of this URL scheme with this name; `None` if the scheme does not have it.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Whether an option of this URL scheme has no effect if another option has this value.
    pub fn is_idle(&self, option: &str, other: &str, value: &str) -> bool {
        self.idle.contains(&(option, other, value))
    }

    /// Returns the names of this URL scheme's options as a list, for messages.
    pub(super) fn allowed(&self) -> String {
        let names: Vec<&str> = self.options.iter().map(|option| option.name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}
