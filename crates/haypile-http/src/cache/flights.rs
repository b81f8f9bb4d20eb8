//! One request to the origin at a time for each target.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::fill::Fill;
use crate::semantics::Stored;
use crate::storage::{Begun, Group};

/// The requests that are on their way to the origin, by the name of their target.
#[derive(Debug, Default)]
pub(super) struct Flights {
    by_name: Mutex<HashMap<Bytes, watch::Receiver<Progress>>>,
}

/// The progress of such a request.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// The origin has not answered yet.
    Waiting,
    /// The response may answer others as well.
    Coming(Arc<Coming>),
    /// The entry has changed.
    LookAgain,
    /// The response is for nobody else, or there is none.
    Alone,
}

/// A response that is being stored.
#[derive(Debug)]
pub(super) struct Coming {
    pub(super) head: Stored,
    pub(super) fill: Arc<Fill>,
    pub(super) begun: Begun,
    pub(super) groups: Vec<Group>,
    pub(super) length: Option<u64>,
}

/// The role of a request that finds nothing of use.
pub(super) enum Boarding {
    Lead(Leader),
    Follow(watch::Receiver<Progress>),
}

/// The right to ask the origin. Others wait until it is dropped, at most.
#[derive(Debug)]
pub(super) struct Leader {
    flights: Arc<Flights>,
    name: Bytes,
    progress: watch::Sender<Progress>,
    /// Whether the request before it, whose response is of no use any more, is still on its way, and
    /// with it the claim among processes.
    pub(super) has_superseded: bool,
}

impl Flights {
    pub(super) fn board(self: &Arc<Self>, name: &Bytes) -> Boarding {
        let mut by_name = self.by_name.lock();
        if let Some(progress) = by_name.get(name) {
            return Boarding::Follow(progress.clone());
        }
        let (progress, follower) = watch::channel(Progress::Waiting);
        by_name.insert(name.clone(), follower);
        let (flights, name) = (Arc::clone(self), name.clone());
        Boarding::Lead(Leader { flights, name, progress, has_superseded: false })
    }

    /// Takes the place of a request whose response was invalidated on its way; `None` if another
    /// request has done so.
    pub(super) fn supersede(
        self: &Arc<Self>,
        name: &Bytes,
        old: &watch::Receiver<Progress>,
    ) -> Option<Leader> {
        let mut by_name = self.by_name.lock();
        let is_still = |now: &watch::Receiver<Progress>| now.same_channel(old);
        if !by_name.get(name).is_none_or(is_still) {
            return None;
        }
        let (progress, follower) = watch::channel(Progress::Waiting);
        by_name.insert(name.clone(), follower);
        let (flights, name) = (Arc::clone(self), name.clone());
        Some(Leader { flights, name, progress, has_superseded: true })
    }
}

impl Leader {
    /// Tells those who wait.
    pub(super) fn tell(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let mut by_name = self.flights.by_name.lock();
        // Another may have taken its place.
        if by_name.get(&self.name).is_some_and(|now| now.same_channel(&self.progress.subscribe())) {
            by_name.remove(&self.name);
        }
        drop(by_name);
        self.progress.send_if_modified(|progress| {
            let is_waiting = matches!(progress, Progress::Waiting);
            if is_waiting {
                *progress = Progress::Alone;
            }
            is_waiting
        });
    }
}
