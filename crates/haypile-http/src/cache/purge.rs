//! Forgetting responses on request.

use bytes::Bytes;

use super::HttpCache;
use crate::semantics::Target;
use crate::storage::LONGEST_PREFIX;

/// The reason why nothing was purged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// The text is not a URL of http or https.
    #[error("{0} is not the URL of a target: {1}; for example http://example.org/a")]
    Target(String, String),
    /// The begin of the targets has no path.
    #[error("the prefix {0} ends within the host; a whole host is http://example.org/")]
    WithinHost(String),
    /// The begin of the targets is too long.
    #[error("a prefix of {0} bytes is longer than {LONGEST_PREFIX}")]
    TooLong(usize),
    /// The store does not take note. What should be purged may still be served.
    #[error("the store does not take note; nothing is purged for certain")]
    Store,
}

impl HttpCache {
    /// Forgets the responses to a target, given by its absolute URL, in all variants. Responses that
    /// are on their way are not stored. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// If the text is not a URL, or the store fails.
    pub async fn purge(&self, url: &str) -> Result<bool, PurgeError> {
        let name = self.name(&target(url)?);
        let storage = &self.inner.storage;
        let was_there = storage.invalidate(&name).await.ok_or(PurgeError::Store)?;
        storage.has_taken_note().await.then_some(was_there).ok_or(PurgeError::Store)
    }

    /// Forgets the responses to all targets that begin with a URL, such as `http://example.org/img/`.
    /// `http://example.org/a` is also the begin of `http://example.org/ab`. Only whole hosts can be
    /// purged: a prefix has a `/` behind its host.
    ///
    /// It costs one write, whatever was stored. The store remembers the last 48 prefixes: more make
    /// one of the two that have most in common, which purges more than was asked for. A store that
    /// evicts the memory of what was purged has forgotten all responses with it.
    ///
    /// # Errors
    ///
    /// If the text is not the begin of a URL, or the store fails.
    pub async fn purge_prefix(&self, prefix: &str) -> Result<(), PurgeError> {
        let name: Bytes = self.name(&target(prefix)?);
        // As a target, it would have a path and be the begin of nothing else.
        if !has_path(prefix) {
            return Err(PurgeError::WithinHost(prefix.to_owned()));
        }
        if name.len() > LONGEST_PREFIX {
            return Err(PurgeError::TooLong(name.len()));
        }
        let is_purged = self.inner.storage.purge(name).await;
        is_purged.then_some(()).ok_or(PurgeError::Store)
    }
}

/// Whether a `/` ends the host of a URL.
fn has_path(url: &str) -> bool {
    let behind_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    behind_scheme.find(['/', '?', '#']).is_some_and(|end| behind_scheme[end..].starts_with('/'))
}

fn target(url: &str) -> Result<Target, PurgeError> {
    let refused = |error: String| PurgeError::Target(url.to_owned(), error);
    let uri = url.parse().map_err(|error: http::uri::InvalidUri| refused(error.to_string()))?;
    Target::of(&uri).map_err(|error| refused(error.to_string()))
}
