//! The requests that are on their way to the origin, and those that wait for their responses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::fill::Fill;
use crate::semantics::Stored;
use crate::storage::{Begun, Group};

/// The requests in progress to the origin, by the key of the response that each asks for.
#[derive(Debug, Default)]
pub(super) struct Flights {
    by_name: Mutex<HashMap<Bytes, Flight>>,
    /// The counter that numbers the requests that come and those that are sent.
    numbers: AtomicU64,
}

/// A request that is on its way, or two for the same where the first takes long.
#[derive(Debug)]
struct Flight {
    number: u64,
    leaders: u32,
    progress: watch::Sender<Progress>,
}

/// The progress of a request to the origin, as other requests that wait for its response see it: waiting, coming,
/// failed and so on.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// The origin has not answered yet.
    Waiting,
    /// The response may answer others as well.
    Coming(Arc<Coming>),
    /// The origin has validated the stored response, whose request began there and which is in these groups; `None` if
    /// it is not stored.
    Validated(Option<Arc<(Begun, Vec<Group>)>>),
    /// Another process has stored a response.
    Found,
    /// The response may be outdated by a change; another request has taken this one's place.
    Superseded,
    /// The origin has answered with an error.
    Failed,
    /// The request failed without a response from the origin; the text is the error.
    Unanswered(Arc<str>),
    /// The response can serve no other request, because of what its own asked for. Another one may bring a response that
    /// can.
    Own,
    /// The response can serve no other request, or there is none.
    Alone,
}

/// A response from the origin whose body is arriving and being stored, so that other requests can read it too.
#[derive(Debug)]
pub(super) struct Coming {
    pub(super) head: Stored,
    pub(super) fill: Arc<Fill>,
    pub(super) begun: Begun,
    pub(super) groups: Vec<Group>,
    pub(super) length: Option<u64>,
}

/// The role of a request that finds no usable stored response: it asks the origin (leads), or waits for the request
/// that does (follows).
pub(super) enum Boarding {
    Lead(Leader),
    Follow(Followed),
}

/// A request in progress to the origin, for whose response another one waits.
#[derive(Debug)]
pub(super) struct Followed {
    number: u64,
    pub(super) progress: watch::Receiver<Progress>,
}

/// The right to ask the origin for a response, while other requests wait for it. They wait at most until this is
/// dropped (of two, the last).
#[derive(Debug)]
pub(super) struct Leader {
    flights: Arc<Flights>,
    name: Bytes,
    number: u64,
    progress: watch::Sender<Progress>,
    /// Whether an earlier request for the same response is still in progress, which holds the right to ask among
    /// processes.
    pub(super) is_second: bool,
    /// Whether the request first waited for another request to the origin, so that the stored entry may have changed
    /// since it was read.
    pub(super) has_waited: bool,
}

impl Flights {
    /// Returns a serial number for a request that comes now, which orders it among the requests sent to the origin.
    pub(super) fn ticket(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Joins a request in progress to the origin for the same response, or gets the right to start a new one.
    pub(super) fn board(self: &Arc<Self>, name: &Bytes) -> Boarding {
        let mut by_name = self.by_name.lock();
        if let Some(flight) = by_name.get(name) {
            let (number, progress) = (flight.number, flight.progress.subscribe());
            return Boarding::Follow(Followed { number, progress });
        }
        Boarding::Lead(self.lead(&mut by_name, name, false))
    }

    /// Returns the right to send a second request to the origin in addition to a slow one: requests that wait get the
    /// response that comes first. Returns `None` if the slow one is over, or a second one is in progress.
    pub(super) fn reinforce(self: &Arc<Self>, name: &Bytes, slow: &Followed) -> Option<Leader> {
        let mut by_name = self.by_name.lock();
        let flight = by_name.get_mut(name);
        let flight = flight.filter(|flight| flight.number == slow.number && flight.leaders == 1)?;
        flight.leaders += 1;
        let (flights, name, number) = (Arc::clone(self), name.clone(), flight.number);
        let progress = flight.progress.clone();
        Some(Leader { flights, name, number, progress, is_second: true, has_waited: true })
    }

    /// Returns the right to send a request to the origin in place of one in progress whose response cannot be used;
    /// `None` if that was replaced already.
    pub(super) fn supersede(self: &Arc<Self>, name: &Bytes, old: &Followed) -> Option<Leader> {
        let mut by_name = self.by_name.lock();
        if let Some(flight) = by_name.get(name) {
            if flight.number != old.number {
                return None;
            }
            // Those who wait for it wait for the new one.
            flight.progress.send_if_modified(|progress| {
                let is_waiting = matches!(progress, Progress::Waiting);
                if is_waiting {
                    *progress = Progress::Superseded;
                }
                is_waiting
            });
        }
        Some(self.lead(&mut by_name, name, true))
    }

    fn lead(
        self: &Arc<Self>,
        by_name: &mut HashMap<Bytes, Flight>,
        name: &Bytes,
        is_second: bool,
    ) -> Leader {
        let (number, progress) = (self.ticket(), watch::Sender::new(Progress::Waiting));
        let flight = Flight { number, leaders: 1, progress: progress.clone() };
        by_name.insert(name.clone(), flight);
        let (flights, name) = (Arc::clone(self), name.clone());
        Leader { flights, name, number, progress, is_second, has_waited: is_second }
    }
}

impl Followed {
    /// Whether the awaited request was sent to the origin after the request with this serial number came to the cache.
    pub(super) fn is_after(&self, ticket: u64) -> bool {
        self.number > ticket
    }
}

impl Leader {
    /// Returns the key of the response that this request asks the origin for, which all requests for it have in common.
    pub(super) fn name(&self) -> &Bytes {
        &self.name
    }

    /// Informs the requests that wait for a response of the progress of the request to the origin, such as its failure.
    pub(super) fn tell(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let mut by_name = self.flights.by_name.lock();
        // Another may have taken its place.
        let own = by_name.get_mut(&self.name).filter(|flight| flight.number == self.number);
        let Some(flight) = own else { return };
        flight.leaders -= 1;
        let is_waiting = matches!(*self.progress.borrow(), Progress::Waiting);
        if is_waiting && flight.leaders > 0 {
            return;
        }
        by_name.remove(&self.name);
        drop(by_name);
        if is_waiting {
            self.tell(Progress::Alone);
        }
    }
}
