//! A bucket under its lock, with the overflow lines that it goes on in.

use std::sync::atomic::Ordering;

use super::area::{Area, Key, Me, Record, Stop};
use super::chain::{MOST_LINES, slots_of_line};
use super::crash;
use super::ground::Ground;
use super::lock::Held;
use super::slot::{LockWord, Slot, Token};

/// How many overflow lines are looked at for a free one.
const LINES_TRIED: usize = 64;

/// A slot and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) at: u64,
    pub(super) slot: Slot,
    pub(super) record: Record,
}

/// The slots of a key.
#[derive(Debug, Default)]
pub(super) struct Matches {
    pub(super) first: Option<Found>,
    /// What a loss of power left.
    pub(super) others: Vec<Found>,
}

impl Matches {
    pub(super) fn all(&self) -> impl Iterator<Item = &Found> {
        self.first.iter().chain(&self.others)
    }
}

/// A bucket that nobody else changes, but for frequencies.
#[derive(Debug)]
pub(super) struct Bucket<'a, G: Ground> {
    area: &'a Area<G>,
    number: u32,
    held: Held<'a, G>,
}

impl<G: Ground> Area<G> {
    pub(super) fn lock_bucket(&self, me: Me, hash: u64) -> Result<Bucket<'_, G>, Stop> {
        let number = self.geometry.bucket_of(hash);
        let held = self.lock(me, self.geometry.bucket(number))?;
        crash::point("bucket.locked");
        let mut bucket = Bucket { area: self, number, held };
        bucket.mend();
        Ok(bucket)
    }
}

impl<'a, G: Ground> Bucket<'a, G> {
    /// Where each line begins, the bucket's own first.
    fn lines(&self) -> impl Iterator<Item = u64> + use<'a, G> {
        self.area.lines(self.number, self.held.payload())
    }

    /// Looks at every slot and where it is, until one gives an answer.
    fn scan<T>(&self, look: impl FnMut(u64, Slot) -> Option<T>) -> Option<T> {
        self.area.scan(self.number, self.held.payload(), look)
    }

    /// Cuts a link to a line that is not of this bucket: what a loss of power or garbage left.
    /// Nobody else changes links meanwhile, so that it would stay so.
    fn mend(&mut self) {
        // Nearly all have no other line, or one.
        let link = self.held.payload();
        let next = self.area.follow(self.number, link);
        if link == 0 || next.is_some_and(|(_, word)| word.payload() == 0) {
            return;
        }
        let (count, last) = self.count_lines();
        if count == 1 {
            self.held.set_payload(0);
        } else if LockWord(self.area.ground.load(last, Ordering::Acquire)).payload() != 0 {
            let word = LockWord::new(Token(self.number + 1), 0);
            self.area.ground.store(last, word.0, Ordering::Release);
        }
    }

    /// How many lines there are, and where the last begins.
    fn count_lines(&self) -> (usize, u64) {
        self.lines().fold((0, 0), |(count, _), line| (count + 1, line))
    }

    /// The slots of a key, which are one at most, but for what a loss of power left. What another
    /// epoch wrote is not there.
    pub(super) fn find(&self, key: &Key<'_>, epoch: u64) -> Matches {
        let mut matches = Matches::default();
        let _: Option<()> = self.scan(|at, slot| {
            if slot.is_tagged(key.hash)
                && let Some(record) = self.area.live_record(slot, epoch)
                && self.area.is_of(&record, key)
            {
                let found = Found { at, slot, record };
                match matches.first {
                    None => matches.first = Some(found),
                    Some(_) => matches.others.push(found),
                }
            }
            None
        });
        matches
    }

    /// Whether there may be a key of this hash.
    pub(super) fn has_tagged(&self, hash: u64) -> bool {
        self.scan(|_, slot| slot.is_tagged(hash).then_some(())).is_some()
    }

    /// The slot that points to this record.
    pub(super) fn find_slot(&self, of: Slot) -> Option<(u64, Slot)> {
        self.scan(|at, slot| slot.is_same(of).then_some((at, slot)))
    }

    /// Lets a slot point to another record, or to none.
    pub(super) fn put(&mut self, at: u64, slot: Slot) {
        self.area.ground.store(at, slot.0, Ordering::Release);
    }

    /// A slot for a new entry: an empty one, or one whose record is of no use any more, or one of a
    /// new line. `None`: there is no room for another line.
    pub(super) fn vacancy(&mut self) -> Option<u64> {
        if let Some(at) = self.scan(|at, slot| slot.is_empty().then_some(at)) {
            return Some(at);
        }
        // Of an earlier epoch. Records are not looked at: each would be a line from memory.
        let epoch = self.area.epoch();
        let is_stale = |slot: Slot| {
            let segment = self.area.segment_of(slot);
            segment.is_none_or(|segment| self.area.entry(segment).epoch() != epoch)
        };
        let stale = self.scan(|at, slot| is_stale(slot).then_some(at));
        stale.or_else(|| self.extend())
    }

    /// The entry that the bucket misses least: it has no room for all.
    pub(super) fn coldest(&self) -> Option<(u64, Slot)> {
        let mut coldest: Option<(u64, Slot)> = None;
        let _: Option<()> = self.scan(|at, slot| {
            if coldest.is_none_or(|(_, coldest)| slot.frequency() < coldest.frequency()) {
                coldest = Some((at, slot));
            }
            None
        });
        coldest
    }

    /// Links one more line; says where its first slot is.
    fn extend(&mut self) -> Option<u64> {
        let (count, last) = self.count_lines();
        if count >= MOST_LINES {
            return None;
        }
        let line = self.take_line()?;
        crash::point("bucket.line-taken");
        let to_line = line + 1;
        if count == 1 {
            self.held.set_payload(to_line);
        } else {
            let word = LockWord::new(Token(self.number + 1), to_line);
            self.area.ground.store(last, word.0, Ordering::Release);
        }
        crash::point("bucket.line-linked");
        Some(self.area.geometry.overflow_line(line) + 8)
    }

    /// Takes an overflow line for this bucket. They are tried from a place that depends on the
    /// bucket, so that few look at the same ones.
    fn take_line(&self) -> Option<u32> {
        let area = self.area;
        let count = area.geometry.numbers.overflows;
        let spread = u64::from(self.number) * u64::from(count);
        let from = spread / u64::from(area.geometry.numbers.buckets.max(1));
        let from = u32::try_from(from).ok()?;
        let own = Token(self.number + 1);
        (from..count).chain(0..from.min(count)).take(LINES_TRIED).find(|line| {
            let at = area.geometry.overflow_line(*line);
            let word = LockWord(area.ground.load(at, Ordering::Acquire));
            // One of its own that is not linked was left by a death in between.
            let free = word.token() == Token::NOBODY || (word.token() == own && !self.has(at));
            let taken = LockWord::new(own, 0);
            let taken = free && area.ground.exchange(at, word.0, taken.0).is_ok();
            if taken {
                // What a death or a loss of power left in it.
                for slot in slots_of_line(at) {
                    area.ground.store(slot, 0, Ordering::Release);
                }
            }
            taken
        })
    }

    fn has(&self, line: u64) -> bool {
        self.lines().any(|at| at == line)
    }

    /// Gives the last line back if it is empty.
    pub(super) fn shrink(&mut self) {
        if self.held.payload() == 0 {
            return;
        }
        let lines: Vec<u64> = self.lines().collect();
        let &[.., before, last] = lines.as_slice() else {
            return;
        };
        let area = self.area;
        if slots_of_line(last).any(|at| !area.slot(at).is_empty()) {
            return;
        }
        if lines.len() == 2 {
            self.held.set_payload(0);
        } else {
            let word = LockWord::new(Token(self.number + 1), 0);
            area.ground.store(before, word.0, Ordering::Release);
        }
        crash::point("bucket.line-unlinked");
        area.ground.store(last, 0, Ordering::Release);
    }
}

impl<G: Ground> Area<G> {
    /// The record of a slot, if it is of this epoch.
    pub(super) fn live_record(&self, slot: Slot, epoch: u64) -> Option<Record> {
        if slot.is_empty() {
            return None;
        }
        let segment = self.segment_of(slot)?;
        if self.entry(segment).epoch() != epoch {
            return None;
        }
        self.record(slot, segment)
    }
}
