//! Single flight: one computation per key at a time, however many threads ask.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

/// The computations that are going on.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    by_key: Mutex<HashMap<Box<[u8]>, Arc<Flight>>>,
}

#[derive(Debug)]
struct Flight {
    leader: ThreadId,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Clone, Debug)]
enum State {
    Computing,
    Landed(Arc<[u8]>),
    /// The computation failed or panicked.
    Abandoned,
}

/// What a thread has to do that wants the value of a key.
pub(crate) enum Boarding<'a> {
    /// Compute it, and [`land`](Leader::land) it.
    Lead(Leader<'a>),
    /// Another thread is at it.
    Follow(Follower),
}

impl Flights {
    /// Leads the flight of `key` if there is none.
    pub(crate) fn board(&self, key: &[u8]) -> Boarding<'_> {
        let mut by_key = self.by_key.lock();
        if let Some(flight) = by_key.get(key) {
            return Boarding::Follow(Follower { flight: Arc::clone(flight) });
        }
        let flight = Arc::new(Flight {
            leader: thread::current().id(),
            state: Mutex::new(State::Computing),
            ended: Condvar::new(),
        });
        by_key.insert(key.into(), Arc::clone(&flight));
        Boarding::Lead(Leader { flights: self, key: key.into(), flight })
    }
}

/// The right to compute. Dropped without landing, also by a panic, it lets the next one try.
pub(crate) struct Leader<'a> {
    flights: &'a Flights,
    key: Box<[u8]>,
    flight: Arc<Flight>,
}

impl Leader<'_> {
    /// Hands the value to all who follow. The flight itself ends when the leader is dropped, so
    /// that the value can be stored before anybody else leads.
    pub(crate) fn land(&self, value: &[u8]) {
        *self.flight.state.lock() = State::Landed(value.into());
        self.flight.ended.notify_all();
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.flights.by_key.lock().remove(&self.key);
        let mut state = self.flight.state.lock();
        if matches!(*state, State::Computing) {
            *state = State::Abandoned;
        }
        self.flight.ended.notify_all();
    }
}

/// A seat on the flight of another thread.
pub(crate) struct Follower {
    flight: Arc<Flight>,
}

impl Follower {
    /// Waits for the value; `None` where the leader gave up.
    ///
    /// # Errors
    ///
    /// [`Error::ComputesItself`] where this thread is the leader.
    pub(crate) fn wait(&self) -> Result<Option<Vec<u8>>> {
        let mut state = self.flight.state.lock();
        if matches!(*state, State::Computing) && self.flight.leader == thread::current().id() {
            return Err(Error::ComputesItself);
        }
        loop {
            match &*state {
                State::Computing => self.flight.ended.wait(&mut state),
                State::Landed(value) => return Ok(Some(value.to_vec())),
                State::Abandoned => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead<'a>(flights: &'a Flights, key: &[u8]) -> Leader<'a> {
        match flights.board(key) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) => panic!("there is a flight already"),
        }
    }

    fn follow(flights: &Flights, key: &[u8]) -> Follower {
        match flights.board(key) {
            Boarding::Lead(_) => panic!("there is no flight"),
            Boarding::Follow(follower) => follower,
        }
    }

    #[test]
    fn those_who_follow_get_the_value() {
        let flights = Flights::default();
        let leader = lead(&flights, b"key");
        let follower = follow(&flights, b"key");
        let _other_keys_fly_alone = lead(&flights, b"other");
        leader.land(b"value");
        assert_eq!(follower.wait().unwrap().unwrap(), b"value");
        assert_eq!(follow(&flights, b"key").wait().unwrap().unwrap(), b"value");
        drop(leader);
        drop(lead(&flights, b"key"));
    }

    #[test]
    fn those_who_follow_are_released_when_the_leader_gives_up() {
        let flights = Flights::default();
        let leader = lead(&flights, b"key");
        let follower = follow(&flights, b"key");
        drop(leader);
        assert_eq!(follower.wait().unwrap(), None);
        drop(lead(&flights, b"key"));
    }

    #[test]
    fn a_thread_that_waits_is_woken() {
        let flights = Flights::default();
        let leader = lead(&flights, b"key");
        thread::scope(|scope| {
            let follower = scope.spawn(|| follow(&flights, b"key").wait().unwrap());
            leader.land(b"value");
            assert_eq!(follower.join().unwrap().unwrap(), b"value");
        });
    }

    #[test]
    fn the_leader_cannot_wait_for_itself() {
        let flights = Flights::default();
        let _leader = lead(&flights, b"key");
        assert!(matches!(follow(&flights, b"key").wait(), Err(Error::ComputesItself)));
    }
}
