//! Records of the requests that have come, and of the bytes that went out.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;

use super::counts::{OriginCounts, PathCounts};
use super::request::host_of;
use super::script::{HostLists, Kept, ListId, Scheme, Script};

/// A request as the origin server received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The bytes of the request's head, including the empty line at its end; of HTTP/2, as they
    /// would be in HTTP/1.1.
    pub head: Bytes,
    /// The content of the request's body that was received so far, without the framing of chunks.
    pub body: Vec<u8>,
    /// Whether the request's body was received completely.
    pub is_whole: bool,
}

/// The counters and recorded requests of an origin server.
#[derive(Debug, Default)]
pub(super) struct Records {
    kept: Kept,
    requests: AtomicU64,
    tls_requests: AtomicU64,
    http2_requests: AtomicU64,
    failed_handshakes: AtomicU64,
    paths: HashMap<String, ListId>,
    hosts: HostLists,
    /// The counts of the script's lists, which need no lock; the first list is for requests that
    /// have no list of their own.
    lists: Vec<ListCounts>,
    /// The number of requests for each path that is not in the script.
    others: Mutex<HashMap<String, u64>>,
    received: Mutex<Vec<ReceivedRequest>>,
    unreadable: AtomicU64,
    body_bytes_sent: AtomicU64,
    replies_200: AtomicU64,
    replies_206: AtomicU64,
    replies_304: AtomicU64,
    replies_other: AtomicU64,
    connections: AtomicU64,
    ended_connections: AtomicU64,
}

#[derive(Debug, Default)]
struct ListCounts {
    requests: AtomicU64,
    body_bytes: AtomicU64,
}

/// The protocols by which a request came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier {
    pub(super) scheme: Scheme,
    pub(super) is_http2: bool,
}

/// A request that the server has recorded, with the list of scripted replies for it, and its
/// position among the requests that use that list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    /// The number of earlier requests that used the same list of replies as this request.
    pub(super) before: u64,
    /// The list of scripted replies for the request; `None` for the common list, of requests to
    /// paths without their own list.
    pub(super) list: Option<ListId>,
    /// The index of the request among those that are kept.
    place: Option<usize>,
}

impl Records {
    pub(super) fn new(script: &Script) -> Self {
        let lists = (0..script.lists()).map(|_| ListCounts::default()).collect();
        Self {
            kept: script.kept,
            paths: script.paths.clone(),
            hosts: script.hosts.clone(),
            lists,
            ..Self::default()
        }
    }

    /// Records a request whose head was received; `list` is the list of scripted replies from which
    /// its reply is taken.
    pub(super) fn note(
        &self,
        carrier: Carrier,
        list: Option<ListId>,
        path: &str,
        head: &Bytes,
    ) -> Noted {
        if list.is_none() {
            let mut others = self.others.lock();
            if let Some(count) = others.get_mut(path) {
                *count += 1;
            } else {
                others.insert(path.to_owned(), 1);
            }
        }
        let before = self.list(list).requests.fetch_add(1, Ordering::SeqCst);
        let place = (self.kept >= Kept::Heads).then(|| {
            // A copy: the head lies in a buffer that may be much longer.
            let head = Bytes::copy_from_slice(head);
            let mut received = self.received.lock();
            received.push(ReceivedRequest { head, body: Vec::new(), is_whole: false });
            received.len() - 1
        });
        if carrier.scheme == Scheme::Https {
            self.tls_requests.fetch_add(1, Ordering::SeqCst);
        }
        if carrier.is_http2 {
            self.http2_requests.fetch_add(1, Ordering::SeqCst);
        }
        // Last: a test that sees the request counted finds it kept.
        self.requests.fetch_add(1, Ordering::SeqCst);
        Noted { before, list, place }
    }

    /// Adds a received part to the body of a recorded request.
    pub(super) fn note_body(&self, request: Noted, part: &[u8]) {
        if let Some(place) = request.place
            && self.kept == Kept::Bodies
        {
            self.received.lock()[place].body.extend_from_slice(part);
        }
    }

    pub(super) fn note_whole(&self, request: Noted) {
        if let Some(place) = request.place {
            self.received.lock()[place].is_whole = true;
        }
    }

    pub(super) fn note_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a reply, right before its head is sent.
    pub(super) fn note_reply(&self, status: Option<StatusCode>) {
        let count = match status {
            Some(StatusCode::OK) => &self.replies_200,
            Some(StatusCode::PARTIAL_CONTENT) => &self.replies_206,
            Some(StatusCode::NOT_MODIFIED) => &self.replies_304,
            _ => &self.replies_other,
        };
        count.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a part of a reply's body, right before it is sent, so that a client that has received
    /// the part sees it counted.
    pub(super) fn sending(&self, list: Option<ListId>, body_bytes: usize) -> Sending<'_> {
        let of_list = &self.list(list).body_bytes;
        for count in [&self.body_bytes_sent, of_list] {
            count.fetch_add(body_bytes as u64, Ordering::SeqCst);
        }
        Sending { counts: [&self.body_bytes_sent, of_list], left: body_bytes }
    }

    fn list(&self, list: Option<ListId>) -> &ListCounts {
        &self.lists[list.map_or(0, |list| list.0)]
    }

    pub(super) fn note_connection(&self) {
        self.connections.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn note_failed_handshake(&self) {
        self.failed_handshakes.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn note_end_of_connection(&self) {
        self.ended_connections.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub(super) fn requests_for(&self, path: &str) -> u64 {
        let scripted = self.scripted().filter(|(scripted, _)| *scripted == path);
        let scripted: u64 = scripted.map(|(_, list)| self.path_counts(list).requests).sum();
        scripted + self.others.lock().get(path).copied().unwrap_or(0)
    }

    pub(super) fn requests_by_path(&self) -> BTreeMap<String, u64> {
        let mut all: BTreeMap<_, _> =
            self.others.lock().iter().map(|(path, count)| (path.clone(), *count)).collect();
        for (path, list) in self.scripted() {
            let count = self.path_counts(list).requests;
            if count > 0 {
                *all.entry(path.to_owned()).or_default() += count;
            }
        }
        all
    }

    pub(super) fn counts_for_host(&self, scheme: Scheme, host: &str, path: &str) -> PathCounts {
        let list = self.hosts.get(scheme, &host_of(host), path);
        list.map_or_else(PathCounts::default, |list| self.path_counts(list))
    }

    pub(super) fn counts_by_host(&self) -> BTreeMap<(String, String), PathCounts> {
        let place = |host: &str, path: &str| (host.to_owned(), path.to_owned());
        let of_hosts = self.hosts.all(Scheme::Http);
        of_hosts.map(|(host, path, list)| (place(host, path), self.path_counts(list))).collect()
    }

    /// Returns the paths that have lists of their own, once for each list.
    fn scripted(&self) -> impl Iterator<Item = (&str, ListId)> {
        let of_paths = self.paths.iter().map(|(path, list)| (&**path, *list));
        let of_hosts = [Scheme::Http, Scheme::Https].into_iter();
        let of_hosts = of_hosts.flat_map(|scheme| self.hosts.all(scheme));
        of_paths.chain(of_hosts.map(|(_, path, list)| (path, list)))
    }

    fn path_counts(&self, list: ListId) -> PathCounts {
        let counts = self.list(Some(list));
        PathCounts {
            requests: counts.requests.load(Ordering::SeqCst),
            body_bytes: counts.body_bytes.load(Ordering::SeqCst),
        }
    }

    pub(super) fn counts(&self) -> OriginCounts {
        OriginCounts {
            connections: self.connections(),
            requests: self.requests(),
            tls_requests: self.tls_requests.load(Ordering::SeqCst),
            http2_requests: self.http2_requests.load(Ordering::SeqCst),
            failed_handshakes: self.failed_handshakes.load(Ordering::SeqCst),
            unreadable: self.unreadable(),
            body_bytes: self.body_bytes_sent(),
            replies_200: self.replies_200.load(Ordering::SeqCst),
            replies_206: self.replies_206.load(Ordering::SeqCst),
            replies_304: self.replies_304.load(Ordering::SeqCst),
            replies_other: self.replies_other.load(Ordering::SeqCst),
        }
    }

    pub(super) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().clone()
    }

    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::SeqCst)
    }

    pub(super) fn body_bytes_sent(&self) -> u64 {
        self.body_bytes_sent.load(Ordering::SeqCst)
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    pub(super) fn open_connections(&self) -> u64 {
        let ended = self.ended_connections.load(Ordering::SeqCst);
        self.connections().saturating_sub(ended)
    }
}

/// A guard for counting a part of a reply's body that is being sent. On drop, the bytes that were
/// not sent are subtracted from the counts.
#[derive(Debug)]
pub(super) struct Sending<'a> {
    counts: [&'a AtomicU64; 2],
    left: usize,
}

impl Sending<'_> {
    /// Records that the operating system has accepted these bytes of the body for the client.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.left -= bytes;
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        for count in self.counts {
            count.fetch_sub(self.left as u64, Ordering::SeqCst);
        }
    }
}
