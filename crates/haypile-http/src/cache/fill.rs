//! A response body on its way from the origin: into the store, and to everybody who asked for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::ahead::Ahead;
use super::body::{Body, BodyError};
use crate::storage::{CHUNK_BYTES, Chunks, Storage, StoredBody, chunk_of};

/// The number of bytes of a body that memory keeps after all readers have read them, for readers that come later. Of a
/// body of at most this length, no reader misses anything.
pub(super) const KEPT_BYTES: u64 = 256 << 10;
/// Bytes that every fill may be ahead of all its readers. They find in memory what comes: a store
/// evicts first the pieces that it got last.
const MOST_AHEAD_BYTES: u64 = 1 << 20;
/// Bytes that are kept for those who are behind the first of the readers. Further back, they find it in the store.
const MOST_BEHIND_BYTES: u64 = 1 << 20;
/// The time, in all, for which a fill waits for readers: the origin for the first of them, who then finds in the
/// store what is not kept any more; of a body that turned out not to be stored, the first of them for the others,
/// who then ask for it once more.
const PATIENCE: Duration = Duration::from_secs(5);

/// A response body in transit from the origin, with the part that has arrived so far.
#[derive(Debug)]
pub(crate) struct Fill {
    storage: Storage,
    ahead: Arc<Ahead>,
    id: u128,
    state: Mutex<FillState>,
    changed: Notify,
}

#[derive(Debug)]
struct FillState {
    /// The last pieces of the body, in order.
    kept: VecDeque<Bytes>,
    /// The positions in the body at which the kept pieces begin and end.
    begin: u64,
    end: u64,
    /// The length of the part of the body that readers find in chunks.
    stored: u64,
    /// Whether the pieces that come are also stored.
    is_stored: bool,
    /// The positions of the readers in the body; `None` for readers that have left.
    readers: Vec<Option<u64>>,
    /// The patience with slow readers that is left.
    patience: Duration,
    /// The bytes that this fill may keep beyond the part that every fill may.
    taken: u64,
    outcome: Option<Result<(), BodyError>>,
}

/// A reader of a response body in transit, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Reader {
    fill: Arc<Fill>,
    number: usize,
}

/// The reason why a reader gets no more bytes of a body in transit.
#[derive(Debug)]
pub(super) enum Lost {
    /// The piece that begins here was evicted before it was read.
    Evicted(u64),
    /// The body broke off.
    Broken(BodyError),
}

/// Whether more of the body may come.
enum Room {
    Yes,
    /// Once the readers have read more, or this time is over.
    AfterReaders(Option<Duration>),
}

/// The next thing that a reader gets.
enum Next {
    Piece(Bytes),
    /// It is in this chunk, from this byte on.
    Chunk(u64, usize),
    /// It was not stored, and is not kept any more.
    Gone,
    Nothing,
    End(Result<(), BodyError>),
}

impl Fill {
    /// Creates a response body in transit of which nothing has arrived, and its first reader.
    pub(super) fn new(storage: Storage, ahead: Arc<Ahead>) -> (Arc<Self>, Reader) {
        let state = FillState {
            kept: VecDeque::new(),
            begin: 0,
            end: 0,
            stored: 0,
            is_stored: true,
            readers: Vec::new(),
            patience: PATIENCE,
            taken: 0,
            outcome: None,
        };
        let id = rand::random();
        let (state, changed) = (Mutex::new(state), Notify::new());
        let fill = Arc::new(Self { storage, ahead, id, state, changed });
        let reader = fill.reader().expect("nothing has come yet");
        (fill, reader)
    }

    /// Creates a new reader of the body in transit, from its beginning; `None` if the body is not stored, or its
    /// beginning is no longer available.
    pub(crate) fn reader(self: &Arc<Self>) -> Option<Reader> {
        let mut state = self.state.lock();
        if !state.is_stored || state.begin > state.stored || matches!(state.outcome, Some(Err(_))) {
            return None;
        }
        state.readers.push(Some(0));
        let number = state.readers.len() - 1;
        Some(Reader { fill: Arc::clone(self), number })
    }

    /// Reads a response body from the origin until its end, or until it has no readers left. Calls `commit` with the
    /// stored part of the body when it is complete, before readers see its end.
    pub(crate) async fn run<Commit>(
        &self,
        mut body: Body,
        largest: u64,
        has_room_inline: impl FnOnce(usize) -> bool,
        commit: impl FnOnce(StoredBody) -> Commit,
    ) where
        Commit: Future<Output = ()>,
    {
        let mut commit = Some((has_room_inline, commit));
        let mut chunk = BytesMut::new();
        let outcome = loop {
            if !self.wait_for_room().await {
                break Err(BodyError::from("nobody reads it"));
            }
            let piece = match body.frame().await {
                None => break Ok(()),
                Some(Err(error)) => break Err(error),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => piece,
                    Err(_trailers) => continue,
                },
            };
            self.store(&mut chunk, &piece, largest).await;
            // Who has the last byte of a body of known length does not wait for its end.
            let is_end = http_body::Body::is_end_stream(&body);
            if is_end {
                self.finish(&mut chunk, commit.take()).await;
            }
            self.push(piece);
            if is_end {
                break Ok(());
            }
        };
        if outcome.is_ok() {
            self.finish(&mut chunk, commit.take()).await;
        } else {
            let stored = self.state.lock().stored;
            self.storage.remove_chunks(self.id, chunk_of(stored).0).await;
        }
        self.state.lock().outcome = Some(outcome);
        self.changed.notify_waiters();
    }

    /// Adds a piece to the chunks.
    async fn store(&self, chunk: &mut BytesMut, piece: &Bytes, largest: u64) {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let (stored, end) = {
                let state = self.state.lock();
                if !state.is_stored {
                    return;
                }
                (state.stored, state.end)
            };
            if end + piece.len() as u64 > largest {
                return self.give_up();
            }
            if chunk.len() == CHUNK_BYTES {
                let full = chunk.split().freeze();
                if !self.storage.write_chunk(self.id, chunk_of(stored).0, full).await {
                    return self.give_up();
                }
                self.state.lock().stored += CHUNK_BYTES as u64;
                self.changed.notify_waiters();
            }
            let (now, later) = rest.split_at(rest.len().min(CHUNK_BYTES - chunk.len()));
            chunk.extend_from_slice(now);
            rest = later;
        }
    }

    /// Whether storing the body in transit was given up, for example because it is too large.
    pub(crate) fn is_given_up(&self) -> bool {
        !self.state.lock().is_stored
    }

    fn give_up(&self) {
        self.state.lock().is_stored = false;
    }

    /// Stores the end of a body that has come whole.
    async fn finish<Commit>(
        &self,
        chunk: &mut BytesMut,
        commit: Option<(impl FnOnce(usize) -> bool, impl FnOnce(StoredBody) -> Commit)>,
    ) where
        Commit: Future<Output = ()>,
    {
        let Some((has_room_inline, commit)) = commit else { return };
        let (is_stored, stored) = {
            let state = self.state.lock();
            (state.is_stored, state.stored)
        };
        if !is_stored {
            return;
        }
        let last = chunk.split().freeze();
        if stored == 0 && has_room_inline(last.len()) {
            return commit(StoredBody::Inline(last)).await;
        }
        let chunks = Chunks { id: self.id, bytes: stored + last.len() as u64 };
        if self.storage.write_chunk(self.id, chunk_of(stored).0, last).await {
            commit(StoredBody::Chunks(chunks)).await;
        }
    }

    fn push(&self, piece: Bytes) {
        let mut state = self.state.lock();
        state.end += piece.len() as u64;
        state.kept.push_back(piece);
        self.forget(&mut state);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until the readers have read enough of what is kept; returns whether anybody wants more.
    async fn wait_for_room(&self) -> bool {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let patience = {
                let mut state = self.state.lock();
                if !state.is_stored && state.readers.iter().all(Option::is_none) {
                    return false;
                }
                self.forget(&mut state);
                match state.room() {
                    Room::Yes => return true,
                    Room::AfterReaders(patience) => patience,
                }
            };
            let Some(patience) = patience else {
                changed.await;
                continue;
            };
            let begin = Instant::now();
            // The next turn sees what has happened.
            let _ = timeout_at(begin + patience, changed).await;
            self.state.lock().patience = patience.saturating_sub(begin.elapsed());
        }
    }

    /// Lets go of what need not be kept, and of the memory for it.
    fn forget(&self, state: &mut FillState) {
        state.forget();
        let beyond = state.ahead().saturating_sub(MOST_AHEAD_BYTES);
        let is_of_use = state.is_stored && !state.patience.is_zero();
        self.ahead.adjust(&mut state.taken, if is_of_use { beyond } else { 0 });
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.ahead.adjust(&mut self.state.get_mut().taken, 0);
    }
}

impl FillState {
    /// Returns the place of the first of the readers, but for those that read from the store, whom nothing waits for.
    fn furthest(&self) -> u64 {
        let first = self.readers.iter().flatten().max().copied();
        first.filter(|at| !self.is_stored || *at >= self.begin).unwrap_or(self.end)
    }

    /// Returns the bytes that have come and that no reader has.
    fn ahead(&self) -> u64 {
        self.end - self.furthest()
    }

    fn room(&self) -> Room {
        let is_far_ahead = self.ahead() > MOST_AHEAD_BYTES + self.taken;
        let has_slow_ones = self.furthest().saturating_sub(self.begin) > MOST_BEHIND_BYTES;
        let patience = Some(self.patience).filter(|patience| !patience.is_zero());
        match self.is_stored {
            true if is_far_ahead && patience.is_some() => Room::AfterReaders(patience),
            // Memory is its only place.
            false if is_far_ahead => Room::AfterReaders(None),
            false if has_slow_ones && patience.is_some() => Room::AfterReaders(patience),
            _ => Room::Yes,
        }
    }

    /// Lets go of pieces that every reader has, and of those far behind the first of them if the
    /// others find them in the store, or have had their time.
    fn forget(&mut self) {
        let read = self.readers.iter().flatten().min().copied().unwrap_or(self.end);
        let behind = self.furthest().saturating_sub(MOST_BEHIND_BYTES);
        let elsewhere = match (self.is_stored, self.patience.is_zero()) {
            (true, false) => self.stored.min(behind),
            (true, true) => self.stored.min(self.end.saturating_sub(MOST_BEHIND_BYTES)),
            (false, true) => behind,
            (false, false) => 0,
        };
        while let Some(first) = self.kept.front() {
            let after = self.begin + first.len() as u64;
            let is_read = after <= read && self.end - self.begin > KEPT_BYTES;
            if !is_read && after > elsewhere {
                break;
            }
            self.begin = after;
            self.kept.pop_front();
        }
    }

    fn next(&self, at: u64) -> Next {
        if at < self.begin {
            let (index, skipped) = chunk_of(at);
            let is_full = (index + 1) * CHUNK_BYTES as u64 <= self.stored;
            return if is_full { Next::Chunk(index, skipped) } else { Next::Gone };
        }
        let mut begin = self.begin;
        for piece in &self.kept {
            let end = begin + piece.len() as u64;
            if at < end {
                let skipped = usize::try_from(at - begin).expect("less than a piece");
                return Next::Piece(piece.slice(skipped..));
            }
            begin = end;
        }
        match &self.outcome {
            Some(outcome) => Next::End(outcome.clone()),
            None => Next::Nothing,
        }
    }
}

impl Reader {
    /// Returns the next piece of the body in transit as soon as it has arrived; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Lost>> {
        loop {
            let changed = self.fill.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (at, next) = {
                let state = self.fill.state.lock();
                let at = state.readers[self.number].expect("it is here");
                (at, state.next(at))
            };
            let piece = match next {
                Next::Piece(piece) => piece,
                Next::Chunk(index, skipped) => {
                    let bytes = (index + 1) * CHUNK_BYTES as u64;
                    let chunks = Chunks { id: self.fill.id, bytes };
                    match self.fill.storage.chunk(chunks, index).await {
                        Some(chunk) => chunk.slice(skipped..),
                        None => return Some(Err(Lost::Evicted(at))),
                    }
                }
                Next::Gone => return Some(Err(Lost::Evicted(at))),
                Next::End(Ok(())) => return None,
                Next::End(Err(error)) => return Some(Err(Lost::Broken(error))),
                Next::Nothing => {
                    changed.await;
                    continue;
                }
            };
            let mut state = self.fill.state.lock();
            state.readers[self.number] = Some(at + piece.len() as u64);
            if state.outcome.is_some() {
                // Until then, what comes next does that, once for all readers.
                self.fill.forget(&mut state);
            }
            drop(state);
            self.fill.changed.notify_waiters();
            return Some(Ok(piece));
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.fill.state.lock().readers[self.number] = None;
        self.fill.changed.notify_waiters();
    }
}
