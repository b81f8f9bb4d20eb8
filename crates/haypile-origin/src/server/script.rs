//! Scripts: lists of replies to requests for each path.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;

use super::reply::Reply;
use super::request::host_of;
use super::tls::{Alpn, TlsAuthority, TlsSettings};

/// The scripted replies of an origin server: a list for each path, or host and path, used in the
/// order of the requests. The last reply repeats.
#[derive(Clone, Debug)]
pub struct Script {
    /// The lists of replies; the first one is for requests that have no list of their own.
    lists: Vec<Arc<[Reply]>>,
    /// The list of replies for each path, as an index of `lists`.
    pub(super) paths: HashMap<String, ListId>,
    pub(super) hosts: HostLists,
    pub(super) kept: Kept,
    pub(super) is_http2: bool,
    pub(super) tls: Option<TlsSettings>,
}

/// The list of replies for each scheme, host and path.
#[derive(Clone, Debug, Default)]
pub(super) struct HostLists {
    http: HashMap<String, HashMap<String, ListId>>,
    https: HashMap<String, HashMap<String, ListId>>,
}

/// The scheme of the URLs of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// The index of a list of scripted replies among all lists of an origin server's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListId(pub(super) usize);

/// The choice of what an origin server records of requests: their number, heads or bodies.
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
    /// Returns a server's script with these replies to requests for any path, which share one list. Without a reply the
    /// server answers 404.
    pub fn new<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        Self {
            lists: vec![list(replies)],
            paths: HashMap::new(),
            hosts: HostLists::default(),
            kept: Kept::default(),
            is_http2: false,
            tls: None,
        }
    }

    /// Adds replies to requests for one path with its query, compared byte by byte. Requests for it no longer use the
    /// common list.
    #[must_use]
    pub fn on<R: Into<Reply>>(
        mut self,
        path: impl Into<String>,
        replies: impl IntoIterator<Item = R>,
    ) -> Self {
        let list = self.add(replies);
        self.paths.insert(path.into(), list);
        self
    }

    /// Adds replies for one path with its query, compared byte by byte, on one host: that of the
    /// `Host` field, or of the target if it is a whole URL, in any case and with or without a port.
    /// They have precedence over those of [`on`](Self::on), which are for all other hosts. Requests over
    /// [TLS](Self::with_tls) do not use them.
    #[must_use]
    pub fn on_host<R: Into<Reply>>(
        mut self,
        host: &str,
        path: impl Into<String>,
        replies: impl IntoIterator<Item = R>,
    ) -> Self {
        let list = self.add(replies);
        self.hosts.insert(Scheme::Http, host, path.into(), list);
        self
    }

    /// Adds the same for requests over [TLS](Self::with_tls): a host can answer `http` and `https` differently. Only
    /// hosts with such replies have a certificate; the handshake with any other is refused.
    #[must_use]
    pub fn on_https_host<R: Into<Reply>>(
        mut self,
        host: &str,
        path: impl Into<String>,
        replies: impl IntoIterator<Item = R>,
    ) -> Self {
        let list = self.add(replies);
        self.hosts.insert(Scheme::Https, host, path.into(), list);
        self
    }

    /// Makes the server also speak TLS 1.3, on a [port of its own](super::ScriptedOrigin::tls_address), with
    /// certificates of this authority. It offers clients these versions of HTTP.
    #[must_use]
    pub fn with_tls(self, authority: Arc<TlsAuthority>, alpn: Alpn) -> Self {
        Self { tls: Some(TlsSettings { authority, alpn }), ..self }
    }

    /// Sets what the server records of requests: their number, heads or bodies.
    #[must_use]
    pub fn keep(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }

    /// Makes the server speak HTTP/2 on every connection without TLS, with prior knowledge, and at most
    /// [`MAX_STREAMS`](super::MAX_STREAMS) concurrent requests per connection.
    ///
    /// A reply keeps its status, fields, body and delay. One whose bytes are not a response, or that
    /// breaks off, resets its stream and leaves the connection open; framings have no meaning.
    /// Requests are kept in the form that they have in HTTP/1.1.
    #[must_use]
    pub fn over_http2(self) -> Self {
        Self { is_http2: true, ..self }
    }

    /// Returns the list of scripted replies for a request with this host and path; `None` for the common list.
    pub(super) fn find(&self, scheme: Scheme, host: Option<&str>, path: &str) -> Option<ListId> {
        let found = host.and_then(|host| self.hosts.get(scheme, host, path));
        found.or_else(|| self.paths.get(path).copied())
    }

    fn add<R: Into<Reply>>(&mut self, replies: impl IntoIterator<Item = R>) -> ListId {
        self.lists.push(list(replies));
        ListId(self.lists.len() - 1)
    }

    /// Returns the number of lists of replies in the script.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Returns the scripted reply to a request, given the number of earlier requests that used the same list of
    /// replies.
    pub(super) fn reply(&self, list: Option<ListId>, before: u64) -> &Reply {
        let replies = &self.lists[list.map_or(0, |list| list.0)];
        let place = usize::try_from(before).unwrap_or(usize::MAX);
        &replies[place.min(replies.len() - 1)]
    }
}

impl HostLists {
    fn insert(&mut self, scheme: Scheme, host: &str, path: String, list: ListId) {
        let hosts = match scheme {
            Scheme::Http => &mut self.http,
            Scheme::Https => &mut self.https,
        };
        hosts.entry(host_of(host)).or_default().insert(path, list);
    }

    fn of(&self, scheme: Scheme) -> &HashMap<String, HashMap<String, ListId>> {
        match scheme {
            Scheme::Http => &self.http,
            Scheme::Https => &self.https,
        }
    }

    /// Returns the list of replies for a scheme, a host as [`host_of`] returns it, and a path.
    pub(super) fn get(&self, scheme: Scheme, host: &str, path: &str) -> Option<ListId> {
        self.of(scheme).get(host)?.get(path).copied()
    }

    /// Returns the hosts that have lists of replies under a scheme.
    pub(super) fn hosts(&self, scheme: Scheme) -> impl Iterator<Item = &str> {
        self.of(scheme).keys().map(String::as_str)
    }

    /// Returns an iterator over all lists of replies for a scheme, each with its host and path.
    pub(super) fn all(&self, scheme: Scheme) -> impl Iterator<Item = (&str, &str, ListId)> {
        self.of(scheme).iter().flat_map(|(host, paths)| {
            paths.iter().map(move |(path, list)| (&**host, &**path, *list))
        })
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
