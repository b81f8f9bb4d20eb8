//! Which process computes which key: single flight across processes.

use std::sync::atomic::Ordering;

use crate::file::area::{Area, OpError, Owner};
use crate::file::crash;
use crate::file::format::slot::Token;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;
use crate::process;
use crate::store::ClaimGuard;

/// Claims in a line, each a hash and a token, after the lock and a word that counts releases.
const PER_LINE: u64 = 3;
const RELEASES: u64 = 8;
const FIRST: u64 = 16;

/// A right to compute a key, until it is dropped or its process ends.
#[derive(Debug)]
pub(in crate::file) struct Claim<'a, G: Ground> {
    area: &'a Area<G>,
    owner: Owner,
    line: u32,
    hash: u64,
    /// The process that has it, and not a child that was forked while it was held.
    process: u64,
}

/// The outcome of asking for a claim.
#[derive(Debug)]
pub(in crate::file) enum Claimed<'a, G: Ground> {
    Held(Claim<'a, G>),
    /// This owner has it.
    Taken(Token),
    /// Its line is full of claims on other keys, and no key waits for another.
    NoRoom,
}

impl<G: Ground> Area<G> {
    fn claim_line(&self, hash: u64) -> u32 {
        let wide = u128::from(hash) * u128::from(self.geometry.numbers.claims);
        u32::try_from(wide >> 64).expect("less than the number of lines")
    }

    /// Claims a key, unless a process that is alive has; `take_over` names one that has had it for
    /// too long.
    pub(in crate::file) fn claim(
        &self,
        owner: Owner,
        hash: u64,
        take_over: Option<Token>,
    ) -> Result<Claimed<'_, G>, OpError> {
        let line = self.claim_line(hash);
        let at = self.geometry.claim(line);
        let _held = self.lock(owner, at)?;
        let mut free = None;
        for entry in (0..PER_LINE).map(|number| at + FIRST + 16 * number) {
            let holder = self.owner_of_claim(entry);
            if holder == Token::NOBODY || !self.is_alive(holder) {
                free.get_or_insert(entry);
            } else if self.ground.load(entry, Ordering::Relaxed) == hash
                && !mutant::is_on("every-process-computes")
            {
                // Of the threads of this process, flights decide which one computes.
                if take_over != Some(holder) && holder != owner.token {
                    return Ok(Claimed::Taken(holder));
                }
                free = Some(entry);
                break;
            }
        }
        let Some(entry) = free else {
            return Ok(Claimed::NoRoom);
        };
        self.ground.store(entry + 8, 0, IN_ORDER);
        self.ground.store(entry, hash, IN_ORDER);
        crash::point("claim.named");
        self.ground.store(entry + 8, u64::from(owner.token.0), IN_ORDER);
        crash::point("claim.taken");
        Ok(Claimed::Held(Claim { area: self, owner, line, hash, process: process::generation() }))
    }

    /// The owner of a claim; the upper half of the word is unused.
    fn owner_of_claim(&self, entry: u64) -> Token {
        // Who sees that it was given back sees what was stored before.
        let order = mutant::order("claim-read", Ordering::Acquire);
        let word = self.ground.load(entry + 8, order) & 0xFFFF_FFFF;
        Token(u32::try_from(word).expect("32 bits"))
    }

    /// The number of claims of the line of a key that have been given back.
    pub(in crate::file) fn releases(&self, hash: u64) -> u64 {
        self.ground.load(self.releases_at(hash), Ordering::Relaxed)
    }

    /// The word that counts them, which a waiting process can sleep on.
    pub(in crate::file) fn releases_at(&self, hash: u64) -> u64 {
        self.geometry.claim(self.claim_line(hash)) + RELEASES
    }

    /// Whether this owner has the claim on a key.
    pub(in crate::file) fn has_claim(&self, hash: u64, owner: Token) -> bool {
        let at = self.geometry.claim(self.claim_line(hash));
        (0..PER_LINE).map(|number| at + FIRST + 16 * number).any(|entry| {
            self.ground.load(entry, Ordering::Relaxed) == hash
                && self.owner_of_claim(entry) == owner
        })
    }
}

impl<G: Ground> ClaimGuard for Claim<'_, G> {}

impl<G: Ground> Drop for Claim<'_, G> {
    fn drop(&mut self) {
        if self.process != process::generation() && !mutant::is_on("children-end-claims") {
            return;
        }
        let at = self.area.geometry.claim(self.line);
        for entry in (0..PER_LINE).map(|number| at + FIRST + 16 * number) {
            // Only another process that has taken it over changes the claim of a living owner.
            if self.area.ground.load(entry, Ordering::Relaxed) == self.hash
                && self.area.ground.exchange(entry + 8, u64::from(self.owner.token.0), 0).is_ok()
            {
                break;
            }
        }
        self.area.ground.add(at + RELEASES, 1);
        self.area.ground.wake(at + RELEASES);
    }
}
