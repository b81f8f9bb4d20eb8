//! Scripts: lists of replies to requests for each path.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;

use super::reply::Reply;
use super::request::host_of;

/// The replies of an origin server: for each path, or host and path, a list, in the order of the
/// requests for it. The last one repeats.
#[derive(Clone, Debug)]
pub struct Script {
    /// The lists of replies; the first one is for requests that have no list of their own.
    lists: Vec<Arc<[Reply]>>,
    /// The list for each path.
    pub(super) paths: HashMap<String, ListId>,
    pub(super) hosts: HashMap<String, HashMap<String, ListId>>,
    pub(super) kept: Kept,
    pub(super) is_http2: bool,
}

/// The index of a list of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListId(pub(super) usize);

/// The part of the requests that a server keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Only the numbers of requests: the server's memory does not grow with the requests, but for a
    /// counter per path.
    #[default]
    Counts,
    /// The heads of requests.
    Heads,
    /// The heads and bodies of requests.
    Bodies,
}

impl Script {
    /// Returns a script with these replies to requests for any path, which share one list. Without
    /// a reply it is 404.
    pub fn new<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        Self {
            lists: vec![list(replies)],
            paths: HashMap::new(),
            hosts: HashMap::new(),
            kept: Kept::default(),
            is_http2: false,
        }
    }

    /// Adds replies for one path with its query, compared byte by byte. Requests for it no longer
    /// take any from the list of the others.
    #[must_use]
    pub fn on<R: Into<Reply>>(
        mut self,
        path: impl Into<String>,
        replies: impl IntoIterator<Item = R>,
    ) -> Self {
        self.lists.push(list(replies));
        self.paths.insert(path.into(), ListId(self.lists.len() - 1));
        self
    }

    /// Adds replies for one path with its query, compared byte by byte, where a request is for this
    /// host: its `Host` field, or the target if that is a whole URL, in any case and with or without
    /// a port. They come before those of [`on`](Self::on), which are for all other hosts.
    #[must_use]
    pub fn on_host<R: Into<Reply>>(
        mut self,
        host: &str,
        path: impl Into<String>,
        replies: impl IntoIterator<Item = R>,
    ) -> Self {
        self.lists.push(list(replies));
        let paths = self.hosts.entry(host_of(host)).or_default();
        paths.insert(path.into(), ListId(self.lists.len() - 1));
        self
    }

    /// Sets which part of the requests the server keeps.
    #[must_use]
    pub fn keep(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }

    /// Makes the server speak HTTP/2 over every connection, with prior knowledge, and at most
    /// [`MAX_STREAMS`](super::MAX_STREAMS) requests of a connection at a time.
    ///
    /// A reply keeps its status, fields, body and delay. One whose bytes are not a response, or that
    /// breaks off, resets its stream and leaves the connection open; framings have no meaning.
    /// Requests are kept in the form that they have in HTTP/1.1.
    #[must_use]
    pub fn over_http2(self) -> Self {
        Self { is_http2: true, ..self }
    }

    /// Returns the list for a request; `None` if the request has no list of its own.
    pub(super) fn find(&self, host: Option<&str>, path: &str) -> Option<ListId> {
        let paths = host.and_then(|host| self.hosts.get(host));
        let found = paths.and_then(|paths| paths.get(path));
        found.or_else(|| self.paths.get(path)).copied()
    }

    /// Returns the number of lists.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Returns the reply to a request that comes after this number of requests for the same list.
    pub(super) fn reply(&self, list: Option<ListId>, before: u64) -> &Reply {
        let replies = &self.lists[list.map_or(0, |list| list.0)];
        let place = usize::try_from(before).unwrap_or(usize::MAX);
        &replies[place.min(replies.len() - 1)]
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
