//! The value that a store has under the key of a target.

use std::ops::Range;

use bytes::Bytes;

use super::groups::{Group, MOST_STORED_GROUPS};
use super::outcome::Outcome;
use super::parts::{InChunk, Part, Parts};
use super::purges::Stamp;
use super::variants::Variants;
use crate::semantics::part::strong_tag;
use crate::semantics::{KnownTerms, Stored};

/// The largest number of responses in the entry of one URL in memory; a stored entry has one.
pub(crate) const MOST_RESPONSES: usize = 16;

/// The stored responses for one URL, or for one variant of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The URL of the entry, with the user if the cache is private; the store's key is a hash of this name.
    pub(crate) name: Bytes,
    /// A number that changes when the responses of the entry are invalidated. A response whose request was sent under
    /// another generation is not stored.
    pub(crate) generation: u64,
    /// The state of the store's record of purges when the entry was created: later purges in the record apply to the
    /// entry.
    pub(crate) stamp: Stamp,
    /// The outcome of the last request for the URL if no other request can use its response: it failed, or was for one
    /// client alone.
    pub(crate) outcome: Option<Outcome>,
    /// The list of the URL's variants (responses that depend on request fields), which are stored in separate entries.
    pub(crate) variants: Variants,
    /// The stored responses of the entry, the latest first.
    pub(crate) responses: Vec<StoredResponse>,
}

/// A stored response: its head, its body (or the id of the body's chunks), and its groups, by which it can be purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredResponse {
    /// The status code and header fields of the response, with its times and variant.
    pub(crate) head: Stored,
    /// The body of the response: in the entry, or in chunks under other keys.
    pub(crate) body: StoredBody,
    /// The number of the last purge of the store before the response was requested.
    pub(crate) number: u64,
    /// The groups that the response belongs to, as hashes, by which it can be purged.
    pub(crate) groups: Vec<Group>,
    /// Whether a soft purge has made the response stale, however fresh it claims to be.
    pub(crate) has_expired: bool,
    /// The parsed directives, lifetime and age of the response, if the entry was kept after it was read.
    pub(crate) terms: KnownTerms,
}

/// The body of a stored response: in its entry, in chunks, or in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredBody {
    /// The body, in the entry.
    Inline(Bytes),
    /// The chunks of the body, under keys of their own.
    Chunks(Chunks),
    /// Some parts of the body, each in chunks.
    Parts(Parts),
}

/// A response body that is stored in chunks of [`CHUNK_BYTES`](super::CHUNK_BYTES) each; the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// A random number that identifies the chunks of this response body.
    pub(crate) id: u128,
    /// The length of the response body in bytes.
    pub(crate) bytes: u64,
}

impl Entry {
    /// Creates an entry without responses for a URL, with a new generation number.
    pub(crate) fn empty(name: Bytes, stamp: Stamp) -> Self {
        let (outcome, variants) = (None, Variants::default());
        Self { name, generation: rand::random(), stamp, outcome, variants, responses: Vec::new() }
    }

    /// Whether the entry has neither responses nor variants.
    pub(crate) fn is_empty(&self) -> bool {
        self.responses.is_empty() && self.variants.is_empty()
    }

    /// Returns the entry if it has this name (URL); otherwise `None`, because entries whose names have the same hash
    /// replace each other.
    pub(super) fn of(mut self, name: &Bytes) -> Option<Self> {
        if self.is_empty() {
            self.name = name.clone();
        }
        (self.name == *name).then_some(self)
    }

    /// Inserts a response into the entry of its URL, replacing the response to requests of the same variant.
    pub(crate) fn insert(&mut self, response: StoredResponse) {
        self.responses.retain(|other| other.head.variant != response.head.variant);
        self.responses.insert(0, response);
        self.outcome = None;
        self.responses.truncate(MOST_RESPONSES);
    }

    /// Adds a received part of a response to the stored parts of the same response. Parts of another response are
    /// removed.
    pub(crate) fn insert_part(&mut self, mut response: StoredResponse, whole: u64, part: Part) {
        let head = &response.head;
        let same = self.responses.iter().find(|other| other.head.variant == head.variant);
        let mut groups = response.groups.clone();
        let same = same.filter(|other| {
            let tag = strong_tag(&other.head.headers);
            let is_same =
                tag.is_some() && tag == strong_tag(&head.headers) && other.body.bytes() == whole;
            // A later part may come without the fields that the first one had: RFC 9110, section 15.3.7.
            groups.extend(other.groups.iter().filter(|group| !response.groups.contains(group)));
            is_same && groups.len() <= MOST_STORED_GROUPS
        });
        if let Some(same) = same {
            response.groups = groups;
            // All of it is as old as its oldest part.
            response.number = response.number.min(same.number);
            response.has_expired |= same.has_expired;
        }
        let body = match same.map(|same| &same.body) {
            Some(StoredBody::Parts(parts)) => {
                let mut parts = parts.clone();
                parts.add(part);
                Some(StoredBody::Parts(parts))
            }
            // All of it is there.
            Some(body) => Some(body.clone()),
            None => Parts::new(whole, part).map(StoredBody::Parts),
        };
        if let Some(body) = body {
            self.insert(StoredResponse { body, ..response });
        }
    }
}

impl StoredBody {
    /// Returns the length of the response body in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Inline(body) => body.len() as u64,
            Self::Chunks(chunks) => chunks.bytes,
            Self::Parts(parts) => parts.bytes,
        }
    }

    /// Returns the number of bytes of the response body that are stored in chunks, outside of the entry.
    pub(super) fn stored_bytes(&self) -> u64 {
        match self {
            Self::Inline(_) => 0,
            Self::Chunks(chunks) => chunks.bytes,
            Self::Parts(parts) => parts.iter().map(|part| part.chunks.bytes).sum(),
        }
    }

    /// Whether a range of the response body's bytes is stored, according to the entry.
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        let Self::Parts(parts) = self else { return range.end <= self.bytes() };
        let mut at = range.start;
        while at < range.end {
            let Some(part) = parts.at(at) else { return false };
            at = part.begin + part.chunks.bytes;
        }
        true
    }

    /// Returns the chunk that has a byte of the response body, with the position in it; `None` if the byte is in the
    /// entry, or not stored.
    pub(super) fn chunk_of(&self, at: u64) -> Option<InChunk> {
        match self {
            Self::Inline(_) => None,
            Self::Chunks(chunks) => (at < chunks.bytes).then(|| InChunk::of(*chunks, at)),
            Self::Parts(parts) => {
                parts.at(at).map(|part| InChunk::of(part.chunks, at - part.begin))
            }
        }
    }
}
