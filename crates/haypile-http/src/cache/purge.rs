//! Purges: forgetting responses on request, or making them stale.

use bytes::Bytes;
use http::uri::InvalidUri;

use super::HttpCache;
use crate::semantics::{Target, encoded};
use crate::storage::{Group, LONGEST_PREFIX};

/// The choice of responses that an operator wants to purge. They are forgotten, or made stale by
/// [`soft`](Self::soft); responses in transit that were asked for before the purge are not served
/// later either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Purge<'a> {
    what: What<'a>,
    is_soft: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What<'a> {
    Url(&'a str),
    Prefix(&'a str),
    Group(&'a str),
    All,
}

impl<'a> Purge<'a> {
    /// Creates a purge of the stored responses to one absolute URL, in all variants.
    pub fn url(url: &'a str) -> Self {
        Self::of(What::Url(url))
    }

    /// Creates a purge of the stored responses to all URLs that begin with a prefix, such as `http://example.org/img/`.
    /// `http://example.org/a` is also the begin of `http://example.org/ab`. Only whole hosts can be purged: a prefix
    /// has a `/` behind its host, and at most 1,024 bytes.
    ///
    /// It costs one write, whatever was stored. The store remembers the last 48 prefixes: more make
    /// one of the two that have most in common, which purges more than was asked for. A store that
    /// evicts the memory of what was purged has forgotten all responses with it.
    pub fn prefix(prefix: &'a str) -> Self {
        Self::of(What::Prefix(prefix))
    }

    /// Creates a purge of the stored responses, of all origins, that name a group in `Cache-Groups` (RFC 9875), or in
    /// `Surrogate-Key` if the cache is shared.
    ///
    /// It costs two writes, whatever was stored.
    pub fn group(name: &'a str) -> Self {
        Self::of(What::Group(name))
    }

    /// Creates a purge of all stored responses of the cache; of a private cache, those of its user.
    pub fn all() -> Self {
        Self::of(What::All)
    }

    /// Makes the purge soft: it makes the responses stale instead of forgetting them. They are served while they are
    /// revalidated in the background, as long as they would be fresh otherwise; those that must not be served stale
    /// (`must-revalidate`, `proxy-revalidate`, `s-maxage`) are revalidated first. They may be served if the origin
    /// fails.
    pub fn soft(self) -> Self {
        Self { is_soft: true, ..self }
    }

    fn of(what: What<'a>) -> Self {
        Self { what, is_soft: false }
    }
}

/// The error of a purge of stored responses that is invalid, or that the store did not record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// The text is not a URL of http or https.
    #[error("{0} is not a URL of responses to purge: {1}; write one such as http://example.org/a")]
    Target(String, String),
    /// The begin of the targets has no path.
    #[error(
        "the prefix {0} ends within the host name; write a whole host, such as http://example.org/"
    )]
    WithinHost(String),
    /// The begin of the targets is too long, with the user's name where the cache is one user's.
    #[error("a prefix of {0} bytes is too long to purge; the limit is {LONGEST_PREFIX}")]
    TooLong(usize),
    /// The group has no name.
    #[error("the name of the group to purge is empty; write one, for example user:7")]
    NoGroup,
    /// The store does not take note. What should be purged may still be served.
    #[error(
        "the store did not record the purge, so that responses may still be served; purge again"
    )]
    Store,
}

impl HttpCache {
    /// Purges stored responses, and returns whether there were any, as far as the cache knows: only the purge of a URL
    /// can know that there were none.
    ///
    /// # Errors
    ///
    /// If what is to be purged is not a URL, the begin of one, or the name of a group; or if the store
    /// fails.
    pub async fn purge(&self, purge: Purge<'_>) -> Result<bool, PurgeError> {
        let Purge { what, is_soft } = purge;
        let storage = &self.inner.storage;
        let is_purged = match what {
            What::Url(url) => return self.purge_url(url, is_soft).await,
            What::Prefix(prefix) => {
                let mut is_purged = true;
                for begin in self.prefixes(prefix)? {
                    is_purged &= storage.purge(begin, is_soft).await;
                }
                is_purged
            }
            What::Group("") => return Err(PurgeError::NoGroup),
            What::Group(name) => {
                let group = Group::of(&self.partitioned(""), name);
                storage.purge_groups(vec![group], is_soft).await
            }
            What::All => storage.purge(short(self.partitioned(""))?, is_soft).await,
        };
        is_purged.then_some(true).ok_or(PurgeError::Store)
    }

    async fn purge_url(&self, url: &str, is_soft: bool) -> Result<bool, PurgeError> {
        let storage = &self.inner.storage;
        let mut was_there = false;
        for name in self.names(&target(url)?).await {
            let purged =
                if is_soft { storage.expire(&name).await } else { storage.invalidate(&name).await };
            was_there |= purged.ok_or(PurgeError::Store)?;
        }
        storage.has_taken_note().await.then_some(was_there).ok_or(PurgeError::Store)
    }

    /// Returns the begins of the names that a prefix of URLs is about: as it is written, and percent-encoded if that is
    /// another.
    fn prefixes(&self, prefix: &str) -> Result<Vec<Bytes>, PurgeError> {
        let target = target(prefix)?;
        // As a target, it would have a path and be the begin of nothing else.
        if !has_path(prefix) {
            return Err(PurgeError::WithinHost(prefix.to_owned()));
        }
        let both = [target.encoded(), Some(target)];
        both.into_iter().flatten().map(|target| short(self.name(&target))).collect()
    }
}

/// Returns the begin of names, if it is one that the store has room for.
fn short(begin: Bytes) -> Result<Bytes, PurgeError> {
    if begin.len() > LONGEST_PREFIX { Err(PurgeError::TooLong(begin.len())) } else { Ok(begin) }
}

/// Whether a `/` ends the host of a URL.
fn has_path(url: &str) -> bool {
    let behind_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    behind_scheme.find(['/', '?', '#']).is_some_and(|end| behind_scheme[end..].starts_with('/'))
}

fn target(url: &str) -> Result<Target, PurgeError> {
    let refused = |error: String| PurgeError::Target(url.to_owned(), error);
    // A proxy passes on what is not a URI, percent-encoded.
    let uri = url.parse().or_else(|error| encoded(url).parse().map_err(|_: InvalidUri| error));
    let uri = uri.map_err(|error: InvalidUri| refused(error.to_string()))?;
    Target::of(&uri).map_err(|error| refused(error.to_string()))
}
