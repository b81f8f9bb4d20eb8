//! The operations of a run.

use std::fmt;
use std::time::Duration;

use haypile::{Durability, Ttl};

use super::key::Key;
use super::value::Value;

/// A step of a random run: an operation on one namespace of the cache through one of its handles.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Number of the step in the run, from 0. The run's seed and this number determine the
    /// operation.
    pub(super) number: u64,
    pub(super) tenant: usize,
    pub(super) handle: usize,
    pub(super) operation: Operation,
}

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Read {
        key: Key,
        form: ReadForm,
    },
    ReadMany {
        keys: Vec<Key>,
    },
    Contains {
        key: Key,
    },
    Write {
        write: Write,
        form: WriteForm,
    },
    WriteMany {
        writes: Vec<Write>,
    },
    /// Commits a reservation that an earlier step has made, or drops it.
    Commit {
        is_dropped: bool,
    },
    Delete {
        key: Key,
    },
    DeleteVersion {
        key: Key,
        version: KnownVersion,
    },
    DeleteMany {
        keys: Vec<Key>,
    },
    Touch {
        key: Key,
        ttl: Ttl,
    },
    Count {
        key: Key,
        delta: u64,
        is_up: bool,
    },
    Compute {
        key: Key,
        value: Value,
        freshness: ComputedLife,
        incident: Incident,
    },
    /// Reads a value in place and keeps it for later steps.
    Pin {
        key: Key,
        form: PinForm,
    },
    Unpin,
    Advance {
        by: Duration,
    },
    /// Lists, counts and sums up all entries, and compares the statistics.
    Census {
        page: usize,
    },
    Flush {
        durability: Durability,
    },
    /// Reads through a handle that opens the last level alone.
    ReadBelow {
        key: Key,
    },
    Clear,
    /// Resizes the cache to this part, in percent, of the size that it was opened with.
    Resize {
        percent: u64,
    },
    /// Writes some values, and at once closes all handles and opens the cache again.
    Reopen {
        writes: Vec<Write>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadForm {
    Get,
    GetInto,
    GetVersioned,
    GetPinned,
    GetInPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinForm {
    Pinned,
    InPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteForm {
    Set,
    /// Reserves an entry, fills it and commits.
    Reserve,
    /// Reserves an entry and drops the reservation.
    Abandon,
    /// Reserves an entry; a later step commits or drops the reservation.
    Keep,
}

/// The arguments of a random write to the cache under test: key, value, condition and TTL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) value: Value,
    pub(super) condition: Condition,
    pub(super) ttl: Ttl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    None,
    Add,
    Replace,
    Cas(KnownVersion),
}

/// A choice of a key's version for a compare-and-swap: the latest one read, an earlier one, or an
/// invented one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownVersion {
    /// The version that was read last.
    Latest,
    /// A version that was read earlier.
    Earlier,
    /// A version that never existed.
    Invented,
}

/// The lifetime of a value that the cache computes: a TTL, or the times for which it is fresh and
/// stale.
#[derive(Clone, Copy, Debug)]
pub(super) enum ComputedLife {
    /// The life of a value of `get_or_compute`.
    Ttl(Ttl),
    /// The freshness of a value of `get_or_refresh`.
    Fresh { fresh: Duration, stale: Duration, early: Duration },
}

/// An event that a run causes while a value is computed, such as a write of the same key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Incident {
    None,
    /// Another value is written under the same key.
    Write(Value),
    /// Another value is written under the same key by `set_many`.
    WriteMany(Value),
    Delete,
    DeleteMany,
    Clear,
    /// The computation asks for its own key.
    Recurse,
    Fail,
    Panic,
}

impl Operation {
    /// Returns the keys that the operation reads or writes.
    pub(super) fn keys(&self) -> Vec<Key> {
        match self {
            Self::Read { key, .. }
            | Self::Contains { key }
            | Self::Delete { key }
            | Self::DeleteVersion { key, .. }
            | Self::Touch { key, .. }
            | Self::Count { key, .. }
            | Self::Compute { key, .. }
            | Self::Pin { key, .. }
            | Self::ReadBelow { key } => vec![*key],
            Self::Write { write, .. } => vec![write.key],
            Self::ReadMany { keys } | Self::DeleteMany { keys } => keys.clone(),
            Self::WriteMany { writes } | Self::Reopen { writes } => {
                writes.iter().map(|write| write.key).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether the operation affects every key, such as clearing.
    pub(super) fn is_about_all(&self) -> bool {
        matches!(
            self,
            Self::Clear
                | Self::Reopen { .. }
                | Self::Resize { .. }
                | Self::Commit { .. }
                | Self::Advance { .. }
                | Self::Census { .. }
                | Self::Unpin
        )
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.number)?;
        if self.tenant > 0 || self.handle > 0 {
            write!(f, " (tenant {}, handle {})", self.tenant, self.handle)?;
        }
        write!(f, ": {}", self.operation)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { key, form } => write!(f, "{} {key}", form.name()),
            Self::ReadMany { keys } => write!(f, "get_many {}", List(keys)),
            Self::Contains { key } => write!(f, "contains {key}"),
            Self::Write { write, form } => write!(f, "{} {write}", form.name()),
            Self::WriteMany { writes } => write!(f, "set_many {}", List(writes)),
            Self::Commit { is_dropped: false } => f.write_str("commit a kept reservation"),
            Self::Commit { is_dropped: true } => f.write_str("drop a kept reservation"),
            Self::Delete { key } => write!(f, "delete {key}"),
            Self::DeleteVersion { key, version } => {
                write!(f, "delete_version {key}, {}", version.name())
            }
            Self::DeleteMany { keys } => write!(f, "delete_many {}", List(keys)),
            Self::Touch { key, ttl } => write!(f, "touch {key}, {}", Life(*ttl)),
            Self::Count { key, delta, is_up } => {
                write!(f, "{} {key} by {delta}", if *is_up { "incr" } else { "decr" })
            }
            Self::Compute { key, value, freshness, incident } => {
                match freshness {
                    ComputedLife::Ttl(ttl) => {
                        write!(f, "get_or_compute {key} = {value}, {}", Life(*ttl))?;
                    }
                    ComputedLife::Fresh { fresh, stale, early } => write!(
                        f,
                        "get_or_refresh {key} = {value}, fresh {fresh:?}, stale {stale:?}, \
                         early {early:?}"
                    )?,
                }
                match incident {
                    Incident::None => Ok(()),
                    incident => write!(f, ", and the computation does: {incident}"),
                }
            }
            Self::Pin { key, form: PinForm::Pinned } => write!(f, "keep get_pinned {key}"),
            Self::Pin { key, form: PinForm::InPlace } => write!(f, "keep get_in_place {key}"),
            Self::Unpin => f.write_str("release a kept value"),
            Self::Advance { by } => write!(f, "{by:?} pass"),
            Self::Census { page } => write!(f, "census by pages of {page}"),
            Self::Flush { durability } => write!(f, "flush to {durability:?}"),
            Self::ReadBelow { key } => write!(f, "get {key} from the last level"),
            Self::Clear => f.write_str("clear"),
            Self::Resize { percent } => write!(f, "resize to {percent} %"),
            Self::Reopen { writes } if writes.is_empty() => f.write_str("close and open again"),
            Self::Reopen { writes } => write!(f, "set {}, close and open again", List(writes)),
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)?;
        match self.condition {
            Condition::None => {}
            Condition::Add => f.write_str(", add")?,
            Condition::Replace => f.write_str(", replace")?,
            Condition::Cas(version) => write!(f, ", cas with {}", version.name())?,
        }
        match self.ttl {
            Ttl::Default => Ok(()),
            ttl => write!(f, ", {}", Life(ttl)),
        }
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nothing"),
            Self::Write(value) => write!(f, "set the key to {value}"),
            Self::WriteMany(value) => write!(f, "set_many the key to {value}"),
            Self::Delete => f.write_str("delete the key"),
            Self::DeleteMany => f.write_str("delete_many the key"),
            Self::Clear => f.write_str("clear"),
            Self::Recurse => f.write_str("compute the same key"),
            Self::Fail => f.write_str("fail"),
            Self::Panic => f.write_str("panic"),
        }
    }
}

/// The life of an entry, for messages.
struct Life(Ttl);

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ttl::Default => f.write_str("ttl of the cache"),
            Ttl::Never => f.write_str("no ttl"),
            Ttl::After(ttl) => write!(f, "ttl {ttl:?}"),
        }
    }
}

/// A list of items, for messages.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, item) in self.0.iter().enumerate() {
            write!(f, "{}[{item}]", if position > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl ReadForm {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::GetInto => "get_into",
            Self::GetVersioned => "get_versioned",
            Self::GetPinned => "get_pinned",
            Self::GetInPlace => "get_in_place",
        }
    }
}

impl WriteForm {
    fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Reserve => "reserve and commit",
            Self::Abandon => "reserve and drop",
            Self::Keep => "reserve and keep",
        }
    }
}

impl KnownVersion {
    fn name(self) -> &'static str {
        match self {
            Self::Latest => "the version read last",
            Self::Earlier => "an earlier version",
            Self::Invented => "a version that never existed",
        }
    }
}
