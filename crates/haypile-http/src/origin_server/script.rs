//! The replies to all paths.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;

use super::reply::Reply;

/// The replies of an origin server: for each path a list, in the order of the requests for it. The
/// last one repeats.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) paths: HashMap<String, Arc<[Reply]>>,
    pub(super) others: Arc<[Reply]>,
    pub(super) kept: Kept,
}

/// The part of the requests that a server keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Only their numbers: its memory does not grow with the requests, but for a counter per path.
    #[default]
    Counts,
    /// Their heads.
    Heads,
    /// Their heads and bodies.
    Bodies,
}

impl Script {
    /// Returns a script with these replies to requests for any path, which share one list. Without
    /// a reply it is 404.
    pub fn new<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        Self { paths: HashMap::new(), others: list(replies), kept: Kept::default() }
    }

    /// Adds replies for one path with its query, compared byte by byte. Requests for it no longer
    /// take any from the list of the others.
    #[must_use]
    pub fn on<R: Into<Reply>>(
        mut self,
        path: impl Into<String>,
        replies: impl IntoIterator<Item = R>,
    ) -> Self {
        self.paths.insert(path.into(), list(replies));
        self
    }

    /// Returns the reply to a request for a path before which this many took from the same list.
    pub(super) fn reply(&self, path: &str, before: u64) -> &Reply {
        let replies = self.paths.get(path).unwrap_or(&self.others);
        let last = replies.len() - 1;
        &replies[usize::try_from(before).unwrap_or(last).min(last)]
    }

    /// Sets which part of the requests the server keeps.
    #[must_use]
    pub fn keep(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }
}

fn list<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Arc<[Reply]> {
    let replies: Arc<[Reply]> = replies.into_iter().map(|reply| reply.into().prepared()).collect();
    if replies.is_empty() {
        [Reply::empty(StatusCode::NOT_FOUND).prepared()].into()
    } else {
        replies
    }
}
