//! Locks that outlive who holds them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::area::{Area, Counter, Me, Stop};
use super::ground::Ground;
use super::header;
use super::seats::PROCESS;
use super::slot::{LockWord, Token};

/// Times that a waiting process looks again at once.
const SPINS: u32 = 64;
/// From when on it is asked whether the owner is dead, and how often.
const SUSPICIOUS: Duration = Duration::from_millis(1);
/// When an operation gives up on an owner that has been stopped.
const PATIENCE: Duration = Duration::from_millis(50);
/// The same where others wait for this one.
const HURRIED_PATIENCE: Duration = Duration::from_millis(2);
/// When it gives up on one that is alive and seems to run: it may only lack a processor.
const LONG_PATIENCE: Duration = Duration::from_secs(2);
/// It has to have been looked at so often: who waits may have been stopped itself.
const LOOKS: u32 = 8;

/// A lock that is held until this is dropped. What its word means beside is changed through it.
#[derive(Debug)]
pub(super) struct Held<'a, G: Ground> {
    ground: &'a G,
    at: u64,
    token: Token,
    payload: u32,
}

impl<G: Ground> Held<'_, G> {
    pub(super) fn payload(&self) -> u32 {
        self.payload
    }

    /// Changes what the word means, at once.
    pub(super) fn set_payload(&mut self, payload: u32) {
        self.payload = payload;
        let word = LockWord::new(self.token, payload);
        self.ground.store(self.at, word.0, Ordering::Release);
    }
}

impl<G: Ground> Drop for Held<'_, G> {
    fn drop(&mut self) {
        let word = LockWord::new(Token::NOBODY, self.payload);
        self.ground.store(self.at, word.0, Ordering::Release);
    }
}

impl<G: Ground> Area<G> {
    /// Takes the lock at this word, from the dead if need be.
    pub(super) fn lock(&self, me: Me, at: u64) -> Result<Held<'_, G>, Stop> {
        let word = LockWord(self.ground.load(at, Ordering::Relaxed));
        if word.token() == Token::NOBODY
            && let Some(held) = self.try_lock(me, at, word)
        {
            return Ok(held);
        }
        self.wait_for(me, at)
    }

    fn try_lock(&self, me: Me, at: u64, from: LockWord) -> Option<Held<'_, G>> {
        let payload = from.payload();
        self.ground.exchange(at, from.0, LockWord::new(me.token, payload).0).ok()?;
        Some(Held { ground: &self.ground, at, token: me.token, payload })
    }

    #[cold]
    fn wait_for(&self, me: Me, at: u64) -> Result<Held<'_, G>, Stop> {
        let mut since = self.ground.now();
        let mut suspected = since;
        let mut holder = Token::NOBODY;
        let mut looks = 0;
        let patience = if me.is_hurried { HURRIED_PATIENCE } else { PATIENCE };
        for times in 0.. {
            let word = LockWord(self.ground.load(at, Ordering::Acquire));
            let token = word.token();
            if token == Token::NOBODY {
                if let Some(held) = self.try_lock(me, at, word) {
                    return Ok(held);
                }
                continue;
            }
            if times >= SPINS {
                let now = self.ground.now();
                looks += 1;
                if token != holder {
                    (holder, since, suspected, looks) = (token, now, now, 0);
                } else if now.saturating_sub(suspected) >= SUSPICIOUS {
                    if !self.is_alive(token)
                        && let Some(held) = self.try_lock(me, at, word)
                    {
                        self.ground.add(header::DEATHS, 1);
                        self.count(me.place, Counter::Recoveries, 1);
                        return Ok(held);
                    }
                    let waited = now.saturating_sub(since);
                    let is_over =
                        waited >= LONG_PATIENCE || (waited >= patience && self.is_stopped(token));
                    if is_over && looks >= LOOKS {
                        return Err(Stop::Busy);
                    }
                    suspected = now;
                }
            }
            self.ground.pause(times);
        }
        unreachable!("the loop has no end of its own")
    }

    /// Whether the process that a token names was stopped by a signal, as far as can be seen.
    fn is_stopped(&self, token: Token) -> bool {
        token.place().is_some_and(|place| {
            let at = self.geometry.place(place) + PROCESS;
            self.ground.is_stopped(self.ground.load(at, Ordering::Relaxed))
        })
    }

    /// Whether the process that a token names is there.
    pub(super) fn is_alive(&self, token: Token) -> bool {
        let Some(place) = token.place().filter(|place| *place < self.geometry.numbers.places)
        else {
            return false;
        };
        let incarnation = || self.ground.load(self.geometry.place(place), Ordering::Acquire);
        // Looked at again: the place may have got its next owner in between.
        token.is_of(incarnation()) && self.ground.is_taken(place) && token.is_of(incarnation())
    }
}
