//! The requests that have come, and what went out.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::script::{Kept, Script};

/// A request as it came over its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedRequest {
    /// The head, with the empty line at its end.
    pub head: Bytes,
    /// The content of the body as far as it has come, without the marks of chunks.
    pub body: Vec<u8>,
    /// Whether the end of the body has come.
    pub is_whole: bool,
}

/// The counters of a server.
#[derive(Debug, Default)]
pub(super) struct Records {
    kept: Kept,
    requests: AtomicU64,
    /// For the paths of the script, which need no lock.
    scripted: HashMap<String, AtomicU64>,
    /// For requests that take from the list of the others.
    unscripted: AtomicU64,
    others: Mutex<HashMap<String, u64>>,
    received: Mutex<Vec<ReceivedRequest>>,
    unreadable: AtomicU64,
    body_bytes_sent: AtomicU64,
    connections: AtomicU64,
    ended_connections: AtomicU64,
}

/// A request that is noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    /// The number of requests before it that took from the same list.
    pub(super) before: u64,
    /// Its place among those that are kept.
    place: Option<usize>,
}

impl Records {
    pub(super) fn new(script: &Script) -> Self {
        let scripted = script.paths.keys().map(|path| (path.clone(), AtomicU64::new(0)));
        Self { kept: script.kept, scripted: scripted.collect(), ..Self::default() }
    }

    /// Notes a request whose head has come.
    pub(super) fn note(&self, path: &str, head: &Bytes) -> Noted {
        let before = if let Some(count) = self.scripted.get(path) {
            count.fetch_add(1, Ordering::SeqCst)
        } else {
            let mut others = self.others.lock();
            if let Some(count) = others.get_mut(path) {
                *count += 1;
            } else {
                others.insert(path.to_owned(), 1);
            }
            self.unscripted.fetch_add(1, Ordering::SeqCst)
        };
        let place = (self.kept >= Kept::Heads).then(|| {
            // A copy: the head lies in a buffer that may be much longer.
            let head = Bytes::copy_from_slice(head);
            let mut received = self.received.lock();
            received.push(ReceivedRequest { head, body: Vec::new(), is_whole: false });
            received.len() - 1
        });
        // Last: a test that sees the request counted finds it kept.
        self.requests.fetch_add(1, Ordering::SeqCst);
        Noted { before, place }
    }

    /// Adds to the body of a request.
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

    pub(super) fn note_sent(&self, body_bytes: usize) {
        self.body_bytes_sent.fetch_add(body_bytes as u64, Ordering::SeqCst);
    }

    pub(super) fn note_connection(&self) {
        self.connections.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn note_end_of_connection(&self) {
        self.ended_connections.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub(super) fn requests_for(&self, path: &str) -> u64 {
        match self.scripted.get(path) {
            Some(count) => count.load(Ordering::SeqCst),
            None => self.others.lock().get(path).copied().unwrap_or(0),
        }
    }

    pub(super) fn requests_by_path(&self) -> BTreeMap<String, u64> {
        let scripted = self.scripted.iter();
        let scripted = scripted.map(|(path, count)| (path.clone(), count.load(Ordering::SeqCst)));
        let mut all: BTreeMap<_, _> = scripted.filter(|(_, count)| *count > 0).collect();
        all.extend(self.others.lock().iter().map(|(path, count)| (path.clone(), *count)));
        all
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
