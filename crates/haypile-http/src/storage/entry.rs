//! The value that a store has under the key of a target.

use bytes::Bytes;

use super::purges::Stamp;
use crate::semantics::Stored;

/// The most responses to one target that are kept, for requests that differ in the fields that
/// `Vary` names. The one that came first goes first.
pub(crate) const MAX_VARIANTS: usize = 16;

/// The responses that are stored for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Whose responses of which target these are. The key of the store may be a hash of it.
    pub(crate) name: Bytes,
    /// Changes when the responses are invalidated: one whose request was sent under another
    /// generation is not stored.
    pub(crate) generation: u64,
    /// Its place among the purges of the store.
    pub(crate) stamp: Stamp,
    /// The latest first.
    pub(crate) responses: Vec<StoredResponse>,
}

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredResponse {
    /// The head.
    pub(crate) head: Stored,
    /// Where the body is.
    pub(crate) body: StoredBody,
}

/// The body of a stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredBody {
    /// In the entry.
    Inline(Bytes),
    /// In chunks under keys of their own.
    Chunks(Chunks),
}

/// A body in chunks of [`CHUNK_BYTES`](super::CHUNK_BYTES), but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Random, so that no chunk of another body is mistaken for one of this.
    pub(crate) id: u128,
    /// The length of the body.
    pub(crate) bytes: u64,
}

impl Entry {
    /// Returns an entry without responses, of a generation that none had before.
    pub(crate) fn empty(name: Bytes, stamp: Stamp) -> Self {
        Self { name, generation: rand::random(), stamp, responses: Vec::new() }
    }

    /// Puts a response in the place of the one to the same requests.
    pub(crate) fn insert(&mut self, response: StoredResponse) {
        self.responses.retain(|other| other.head.variant != response.head.variant);
        self.responses.insert(0, response);
        self.responses.truncate(MAX_VARIANTS);
    }
}

impl StoredBody {
    /// Returns its length.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Inline(body) => body.len() as u64,
            Self::Chunks(chunks) => chunks.bytes,
        }
    }
}
