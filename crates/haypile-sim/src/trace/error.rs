//! What can be wrong with a trace.

use std::io;
use std::path::PathBuf;

use super::hpt::HptError;

/// A trace that cannot be read, written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A temporary file, which holds what does not fit into memory, failed.
    #[error(
        "{}: cannot keep a trace in a temporary file: {source}; name a directory with more room in \
         the environment variable TMPDIR",
        dir.display()
    )]
    Temporary {
        /// The directory of temporary files.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no usable `.hpt` file.
    #[error("{}: {source}", path.display())]
    Hpt {
        /// The file, or the name its bytes were given.
        path: PathBuf,
        /// What is wrong with it.
        source: HptError,
    },
    /// A share of writes that is none.
    #[error("the share of writes is {share}; it has to be a number from 0 to 1")]
    Share {
        /// What was asked for.
        share: f64,
    },
    /// A request goes beyond what a trace can hold.
    #[error("request {request}: {limit}")]
    Limit {
        /// The number of the request, counted from 0.
        request: u64,
        /// The limit.
        limit: Limit,
    },
}

impl TraceError {
    /// A failure of a temporary file.
    pub(crate) fn temporary(source: io::Error) -> Self {
        Self::Temporary { dir: std::env::temp_dir(), source }
    }
}

/// What a trace can hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// 2^32 - 2 requests.
    #[error("a trace holds at most 4,294,967,294 requests; split it")]
    Requests,
    /// 2^32 - 2 keys.
    #[error("a trace holds at most 4,294,967,294 distinct keys; split it")]
    Keys,
    /// 2^32 - 1 bytes of one value.
    #[error("its size of {bytes} bytes is above the limit of 4,294,967,295 bytes")]
    Size {
        /// The size that was asked for.
        bytes: u64,
    },
    /// 65,535 bytes of one key.
    #[error("its key of {bytes} bytes is above the limit of 65,535 bytes")]
    Key {
        /// The length of the key.
        bytes: usize,
    },
}
