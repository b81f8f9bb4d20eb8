//! Locks that outlive the processes that hold them.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::file::area::wait::{LEAST_ATTEMPTS, LONGEST_CROWD, LONGEST_WAIT, STOPPED_WAIT};
use crate::file::area::{Area, Holder, OpError, Owner};
use crate::file::format::counter::Counter;
use crate::file::format::header;
use crate::file::format::slot::{LockWord, Token};
use crate::file::platform::ground::Ground;
use crate::mutant;

/// The number of times that a waiting process reads the word again at once.
const SPINS: u32 = 64;
/// A waiting process asks the kernel this often whether the owner is dead.
const SUSPICIOUS: Duration = Duration::from_millis(1);

/// A held lock in the cache file, released on drop. One half of the lock's word is a payload, a
/// number that the holder may change.
#[derive(Debug)]
pub(in crate::file) struct Held<'a, G: Ground> {
    ground: &'a G,
    at: u64,
    token: Token,
    payload: Cell<u32>,
}

impl<G: Ground> Held<'_, G> {
    pub(in crate::file) fn payload(&self) -> u32 {
        self.payload.get()
    }

    /// Changes the number in a lock's word that such a lock does not use otherwise, to show waiting
    /// processes that the holder of the lock makes progress.
    pub(in crate::file) fn note_progress(&self) {
        self.change_payload(self.payload().wrapping_add(1));
    }

    /// Stores a new payload (the number next to the lock's owner) in the word of a held lock.
    pub(in crate::file) fn set_payload(&mut self, payload: u32) {
        self.change_payload(payload);
    }

    fn change_payload(&self, payload: u32) {
        self.payload.set(payload);
        let word = LockWord::new(self.token, payload);
        self.ground.store(self.at, word.0, mutant::order("payload-written", Ordering::Release));
    }
}

impl<G: Ground> Drop for Held<'_, G> {
    #[inline]
    fn drop(&mut self) {
        let word = LockWord::new(Token::NOBODY, self.payload());
        self.ground.store(self.at, word.0, mutant::order("unlock", Ordering::Release));
    }
}

impl<G: Ground> Area<G> {
    /// Takes the lock at this offset in the cache file, waiting for it or taking it over from a
    /// dead process.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn lock(&self, owner: Owner, at: u64) -> Result<Held<'_, G>, OpError> {
        let word = LockWord(self.ground.load(at, Ordering::Relaxed));
        if word.token() == Token::NOBODY
            && let Some(held) = self.try_lock(owner, at, word)
        {
            return Ok(held);
        }
        // Not handed through as it is: where a call may have written the result, the compiler keeps it in
        // memory for the common case as well.
        let held = self.wait_for(owner, at)?;
        Ok(held)
    }

    /// Takes the lock at this offset in the cache file, without waiting; returns `None` if a living
    /// process holds it.
    pub(in crate::file) fn lock_if_free(&self, owner: Owner, at: u64) -> Option<Held<'_, G>> {
        // Whoever reads an owner's token then reads the slot as that owner took it.
        let word = LockWord(self.ground.load(at, mutant::order("owner-read", Ordering::Acquire)));
        if word.token() == Token::NOBODY {
            return self.try_lock(owner, at, word);
        }
        (!self.is_alive(word.token())).then(|| self.take_over(owner, at, word)).flatten()
    }

    #[inline]
    fn try_lock(&self, owner: Owner, at: u64, from: LockWord) -> Option<Held<'_, G>> {
        let payload = from.payload();
        self.ground.exchange(at, from.0, LockWord::new(owner.token, payload).0).ok()?;
        Some(Held { ground: &self.ground, at, token: owner.token, payload: Cell::new(payload) })
    }

    #[cold]
    fn wait_for(&self, owner: Owner, at: u64) -> Result<Held<'_, G>, OpError> {
        let begin = self.ground.now();
        let (mut since, mut asked) = (begin, begin);
        let mut seen = LockWord(0);
        let mut looks = 0;
        for times in 0.. {
            // Whoever reads an owner's token then reads the slot as that owner took it.
            let order = mutant::order("owner-read", Ordering::Acquire);
            let word = LockWord(self.ground.load(at, order));
            if word.token() == Token::NOBODY {
                if let Some(held) = self.try_lock(owner, at, word) {
                    return Ok(held);
                }
            } else if self.is_void(word.token())
                && let Some(held) = self.take_over(owner, at, word)
            {
                return Ok(held);
            }
            if times >= SPINS {
                let now = self.ground.now();
                looks += 1;
                // An owner that changes what the word means goes on.
                if word != seen {
                    (seen, since, asked, looks) = (word, now, now, 0);
                } else if now.saturating_sub(asked) >= SUSPICIOUS {
                    if (mutant::is_on("lock-taken-from-the-living") || !self.is_alive(word.token()))
                        && let Some(held) = self.take_over(owner, at, word)
                    {
                        return Ok(held);
                    }
                    let waited = now.saturating_sub(since);
                    if looks >= LEAST_ATTEMPTS
                        && !mutant::is_on("waits-without-bound")
                        && let Some(holder) = self.gives_up_on(owner, word.token(), waited)
                    {
                        return Err(OpError::Busy(holder));
                    }
                    asked = now;
                }
                if now.saturating_sub(begin) >= LONGEST_CROWD {
                    return Err(OpError::Busy(Holder::Running));
                }
            }
            self.ground.pause(times);
        }
        unreachable!("the loop has no end of its own")
    }

    /// Takes a lock whose owner is dead.
    fn take_over(&self, owner: Owner, at: u64, word: LockWord) -> Option<Held<'_, G>> {
        let held = self.try_lock(owner, at, word)?;
        self.ground.add(header::DEATHS, 1);
        self.count(owner.counting(), Counter::Recoveries, 1);
        Some(held)
    }

    /// Why an operation that has waited this long for an owner gives up; `None` if it does not. An
    /// owner that is hurried takes another choice as soon as it has looked often enough.
    fn gives_up_on(&self, owner: Owner, token: Token, waited: Duration) -> Option<Holder> {
        if waited < STOPPED_WAIT && !owner.is_hurried {
            return None;
        }
        let halted = self.halted_process(token).map(Holder::Halted);
        let is_over = waited >= LONGEST_WAIT || owner.is_hurried;
        halted.or(is_over.then_some(Holder::Running))
    }

    /// Returns the id of the process that an owner token (the name of a user of the cache file)
    /// names, if that process was seen to be stopped or frozen.
    pub(in crate::file) fn halted_process(&self, token: Token) -> Option<u64> {
        let process = self.owner_slot(token.owner_slot()?).process();
        self.ground.is_halted(process).then_some(process.number)
    }

    /// Returns whether the file alone shows that the owner of a token is gone: the token is garbage, or of
    /// an earlier boot, or its slot has another owner since.
    fn is_void(&self, token: Token) -> bool {
        let slots = self.geometry.numbers.owner_slots;
        let number = token.owner_slot().filter(|number| *number < slots);
        number.is_none_or(|number| {
            let slot = self.owner_slot(number);
            slot.has_earlier_stamp() || !token.is_of(slot.incarnation())
        })
    }

    /// Returns whether the process that an owner token (the name of a user of the cache file) names
    /// is alive.
    pub(in crate::file) fn is_alive(&self, token: Token) -> bool {
        let Some(number) = token.owner_slot().filter(|_| !self.is_void(token)) else {
            return false;
        };
        // Read again after the kernel was asked: the owner slot may have got its next owner in between.
        self.ground.is_taken(number) && token.is_of(self.owner_slot(number).incarnation())
    }
}
