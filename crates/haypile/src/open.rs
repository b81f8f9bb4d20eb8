//! The contract between the registry and the stores that it opens.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::Clock;
use crate::store::Store;
use crate::url::{ResolvedLevel, Scheme, UrlError};

/// An opener: it opens the caches of one URL scheme.
///
/// An opener does not compress: the [`Registry`](crate::Registry) puts a
/// [`CompressedStore`](crate::compress::CompressedStore) in front of the store that it opens if the
/// scheme has the option `compress=` and the URL uses it, or if the store's values [are
/// compressed](Store::compression).
pub trait Opener: fmt::Debug + Send + Sync {
    /// Returns the scheme with its options.
    fn scheme(&self) -> &'static Scheme;

    /// Opens a level that was [resolved](crate::url::Level::resolve) against [`scheme`](Self::scheme), with the clock
    /// of the registry.
    ///
    /// # Errors
    ///
    /// Those of the scheme.
    fn open(
        &self,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError>;
}

/// The reason why a cache could not be opened, such as an error in its URL, an impossible size, or
/// a file or server that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is wrong.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The scheme needs another platform.
    #[error(
        "'{scheme}' needs Linux on x86-64 or aarch64 (available on this platform: {available})"
    )]
    NotHere {
        /// The name of the scheme.
        scheme: &'static str,
        /// The names of the registered schemes.
        available: String,
    },
    /// The scheme is known, but this program has not registered it.
    #[error(
        "this program cannot open '{scheme}' URLs, because it has not registered the crate that \
         opens them (available: {available}); register that crate"
    )]
    NotRegistered {
        /// The name of the scheme.
        scheme: &'static str,
        /// The names of the registered schemes.
        available: String,
    },
    /// The policy exceeds the bound for a moment, so that only the simulator runs it.
    #[error(
        "the policy '{policy}' lets a cache exceed its size for a moment, and a store never \
         does; remove the parameter that allows it, or only simulate the policy"
    )]
    ExceedsBound {
        /// The policy and its parameters.
        policy: String,
    },
    /// The policy is the file store's, and the store is of another kind.
    #[error(
        "the policy '{policy}' is the file store's own, and a 'memory' store does not have it; \
         choose another policy, or only simulate this one"
    )]
    FileStoreOnly {
        /// The policy and its parameters.
        policy: String,
    },
    /// The default TTL is zero.
    #[error(
        "the cache's TTL is zero, which is refused because caches disagree on its meaning; give \
         none for entries that never expire"
    )]
    ZeroTtl,
    /// The store cannot have this number of shards.
    #[error(
        "a store of this size cannot have {shards} shards; their number has to be a power of two \
         up to {most}"
    )]
    BadShards {
        /// The requested number of shards.
        shards: usize,
        /// The largest number at this size.
        most: usize,
    },
    /// The namespace is longer than the store accepts.
    #[error("a namespace of {bytes} bytes is too long: a file's namespace has at most 255")]
    LongNamespace {
        /// The length of the namespace's name, in bytes.
        bytes: usize,
    },
    /// The store cannot have the requested size.
    #[error("a cache cannot have {size_bytes} bytes; its size is from {min_bytes} to {max_bytes}")]
    SizeOutOfRange {
        /// The requested size, in bytes.
        size_bytes: u64,
        /// The smallest allowed size, in bytes.
        min_bytes: u64,
        /// The largest allowed size, in bytes.
        max_bytes: u64,
    },
    /// The file of a recording could not be created.
    #[error(
        "cannot record to {}: {source}; 'record' names a file in a directory that exists \
         and can be written to",
        path.display()
    )]
    Recording {
        /// The given path, to which the process id is appended.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server or the file cannot be used.
    #[error("{url} cannot be opened: {source}")]
    Backend {
        /// The canonical URL.
        url: String,
        /// The error of the server, the file or the client library, with advice.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl OpenError {
    /// Returns whether the error says that a file's contents are not a cache that this program can
    /// use: truncated, damaged, of an older format or another byte order, or something else
    /// altogether. `recreate=yes` replaces such a file. Returns `false` for the file of a newer
    /// program, which still uses it.
    pub fn is_unusable_file(&self) -> bool {
        #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
        if let Self::Backend { source, .. } = self {
            return crate::file::is_unusable(source.as_ref());
        }
        false
    }
}
