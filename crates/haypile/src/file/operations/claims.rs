//! Claims on keys: one process computes a key at a time.

use std::sync::atomic::Ordering;

use crate::file::area::{Area, OpError, Owner};
use crate::file::crash;
use crate::file::format::slot::Token;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;
use crate::process;

/// Claims in a line, each a hash and a token, after the lock and a word that counts releases.
const PER_LINE: u64 = 3;
const RELEASES: u64 = 8;
const FIRST: u64 = 16;

/// The exclusive right of one user of the cache file to compute a key's value, until it is dropped
/// or its process ends.
#[derive(Debug)]
pub(in crate::file) struct Claim<'a, G: Ground> {
    key: ClaimKey<'a, G>,
    owner: Owner,
    /// The process that has the claim, and not a child that was forked while it was held.
    process: u64,
}

/// The outcome of claiming the exclusive right to compute a key's value: held, taken by another
/// process, or no room for the claim.
#[derive(Debug)]
pub(in crate::file) enum Claimed<'a, G: Ground> {
    Held(Claim<'a, G>),
    /// The owner with this token has the claim.
    Taken(Token),
    /// The key's line is full of claims on other keys, and no key waits for another.
    NoRoom,
}

/// A key whose value one process at a time may compute, and the line of the cache file that records
/// which process does.
#[derive(Debug)]
pub(in crate::file) struct ClaimKey<'a, G> {
    area: &'a Area<G>,
    hash: u64,
    /// The offset of the key's line.
    at: u64,
}

impl<'a, G: Ground> ClaimKey<'a, G> {
    pub(in crate::file) fn new(area: &'a Area<G>, hash: u64) -> Self {
        let wide = u128::from(hash) * u128::from(area.geometry.numbers.claims);
        let line = u32::try_from(wide >> 64).expect("less than the number of lines");
        Self { area, hash, at: area.geometry.claim(line) }
    }

    /// Claims the right to compute the key's value, unless a living process has it; `take_over`
    /// names a holder that has had it for too long.
    pub(in crate::file) fn claim(
        self,
        owner: Owner,
        take_over: Option<Token>,
    ) -> Result<Claimed<'a, G>, OpError> {
        let Self { area, hash, .. } = self;
        let _held = area.lock(owner, self.at)?;
        let mut free = None;
        for entry in self.entries() {
            let holder = self.holder_of(entry);
            if holder == Token::NOBODY || !area.is_alive(holder) {
                free.get_or_insert(entry);
            } else if area.ground.load(entry, Ordering::Relaxed) == hash
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
        area.ground.store(entry + 8, 0, IN_ORDER);
        area.ground.store(entry, hash, IN_ORDER);
        crash::point("claim.named");
        area.ground.store(entry + 8, u64::from(owner.token.0), IN_ORDER);
        crash::point("claim.taken");
        Ok(Claimed::Held(Claim { key: self, owner, process: process::generation() }))
    }

    /// Returns where each claim of the line is.
    fn entries(&self) -> impl Iterator<Item = u64> + use<G> {
        let at = self.at;
        (0..PER_LINE).map(move |number| at + FIRST + 16 * number)
    }

    /// Returns the owner that holds a claim of the line.
    fn holder_of(&self, entry: u64) -> Token {
        // Who sees that it was given back sees what was stored before.
        let order = mutant::order("claim-read", Ordering::Acquire);
        // The upper half of the word is unused.
        let word = self.area.ground.load(entry + 8, order) & 0xFFFF_FFFF;
        Token(u32::try_from(word).expect("32 bits"))
    }

    /// Returns how often a right to compute the value of a key in this line of the cache file was
    /// given back; waiting processes poll this number.
    pub(in crate::file) fn releases(&self) -> u64 {
        self.area.ground.load(self.releases_at(), Ordering::Relaxed)
    }

    /// Returns the offset in the cache file of the word that counts how often a right to compute a
    /// value was given back; waiting processes can sleep on it.
    pub(in crate::file) fn releases_at(&self) -> u64 {
        self.at + RELEASES
    }

    /// Returns whether this user of the cache file has the right to compute the key's value.
    pub(in crate::file) fn is_held_by(&self, owner: Token) -> bool {
        self.entries().any(|entry| {
            self.area.ground.load(entry, Ordering::Relaxed) == self.hash
                && self.holder_of(entry) == owner
        })
    }
}

impl<G: Ground> Drop for Claim<'_, G> {
    fn drop(&mut self) {
        if self.process != process::generation() && !mutant::is_on("children-end-claims") {
            return;
        }
        let ground = &self.key.area.ground;
        for entry in self.key.entries() {
            // Only another process that has taken it over changes the claim of a living owner.
            if ground.load(entry, Ordering::Relaxed) == self.key.hash
                && ground.exchange(entry + 8, u64::from(self.owner.token.0), 0).is_ok()
            {
                break;
            }
        }
        let at = self.key.releases_at();
        ground.add(at, 1);
        ground.wake(at);
    }
}
