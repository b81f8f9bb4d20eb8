//! Who computes which key: single flight across processes.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use super::area::{Area, Me, Stop};
use super::crash;
use super::ground::Ground;
use super::slot::Token;
use crate::store::ClaimGuard;

/// Claims in a line, each a hash and a token, after the lock and a word that counts releases.
const PER_LINE: u64 = 3;
const RELEASES: u64 = 8;
const FIRST: u64 = 16;

/// A right to compute a key, until it is dropped or its process ends.
#[derive(Debug)]
pub(super) struct Claim<'a, G: Ground> {
    area: &'a Area<G>,
    me: Me,
    line: u32,
    hash: u64,
}

/// What came of asking for a claim.
#[derive(Debug)]
pub(super) enum Claimed<'a, G: Ground> {
    Held(Claim<'a, G>),
    /// Somebody has it, or the line has no room. What the line's count of releases is.
    Wait(u64),
}

thread_local! {
    /// Claims that this thread holds: who holds one waits for no other, or two could wait for each
    /// other for ever.
    static HOLDING: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread holds a claim of any file.
pub(super) fn is_holding() -> bool {
    HOLDING.with(Cell::get) > 0
}

impl<G: Ground> Area<G> {
    fn claim_line(&self, hash: u64) -> u32 {
        let wide = u128::from(hash) * u128::from(self.geometry.numbers.claims);
        u32::try_from(wide >> 64).expect("less than the number of lines")
    }

    /// Claims a key, unless a process that is there has.
    pub(super) fn claim(&self, me: Me, hash: u64) -> Result<Claimed<'_, G>, Stop> {
        let line = self.claim_line(hash);
        let at = self.geometry.claim(line);
        let _held = self.lock(me, at)?;
        let entries = || (0..PER_LINE).map(|number| at + FIRST + 16 * number);
        let token = |at: u64| {
            // The upper half is unused.
            Token(
                u32::try_from(self.ground.load(at + 8, Ordering::Acquire) & 0xFFFF_FFFF)
                    .expect("32 bits"),
            )
        };
        let mut free = None;
        for entry in entries() {
            if token(entry) == Token::NOBODY || !self.is_alive(token(entry)) {
                free.get_or_insert(entry);
            } else if self.ground.load(entry, Ordering::Acquire) == hash {
                return Ok(Claimed::Wait(self.releases(hash)));
            }
        }
        let Some(entry) = free else {
            return Ok(Claimed::Wait(self.releases(hash)));
        };
        self.ground.store(entry + 8, 0, Ordering::Release);
        self.ground.store(entry, hash, Ordering::Release);
        crash::point("claim.named");
        self.ground.store(entry + 8, u64::from(me.token.0), Ordering::Release);
        crash::point("claim.taken");
        HOLDING.with(|holding| holding.set(holding.get() + 1));
        Ok(Claimed::Held(Claim { area: self, me, line, hash }))
    }

    /// How many claims of the line of a key have been given back.
    pub(super) fn releases(&self, hash: u64) -> u64 {
        self.ground.load(self.releases_at(hash), Ordering::Acquire)
    }

    /// The word that counts them, which who waits can sleep on.
    pub(super) fn releases_at(&self, hash: u64) -> u64 {
        self.geometry.claim(self.claim_line(hash)) + RELEASES
    }
}

impl<G: Ground> ClaimGuard for Claim<'_, G> {}

impl<G: Ground> Drop for Claim<'_, G> {
    fn drop(&mut self) {
        HOLDING.with(|holding| holding.set(holding.get().saturating_sub(1)));
        let at = self.area.geometry.claim(self.line);
        for entry in (0..PER_LINE).map(|number| at + FIRST + 16 * number) {
            // Nobody else changes the claim of an owner who is there.
            if self.area.ground.load(entry, Ordering::Acquire) == self.hash
                && self.area.ground.exchange(entry + 8, u64::from(self.me.token.0), 0).is_ok()
            {
                break;
            }
        }
        self.area.ground.add(at + RELEASES, 1);
        self.area.ground.wake(at + RELEASES);
    }
}
