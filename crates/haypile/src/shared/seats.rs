//! Places of this process, over which its threads are spread.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::append::HAZARD;
use super::area::{Area, Counter, Me};
use super::ground::Ground;
use super::header;
use super::kernel::Lock;
use super::mapped::Mapped;
use super::record::MAX_VERSION;
use super::slot::Token;

/// The most places of one process.
const MOST_SEATS: usize = 16;
/// Versions that a place takes at once.
const VERSIONS_AT_ONCE: u64 = 1024;
/// By so much versions jump in a new boot: the word may have been lost with the power.
const VERSIONS_PER_BOOT: u64 = 1 << 32;

/// Offsets in a place.
const INCARNATION: u64 = 0;
const STATE: u64 = 8;
pub(super) const PROCESS: u64 = 16;
const SINCE: u64 = 24;
const BOOT: u64 = 40;

const TAKEN: u64 = 1;
const LEFT: u64 = 0;

/// A place of the file that this process has taken.
#[derive(Debug)]
pub(super) struct Seat {
    me: Me,
    _lock: Lock,
    /// What was counted in the place before it was taken.
    before: [u64; Counter::ALL.len()],
    work: Mutex<Work>,
}

/// What one thread at a time does at a seat.
#[derive(Debug, Default)]
pub(super) struct Work {
    versions: std::ops::Range<u64>,
}

/// A seat that nobody else uses meanwhile.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    pub(super) me: Me,
    work: MutexGuard<'a, Work>,
}

impl Taken<'_> {
    /// A version that no other entry of the file has.
    pub(super) fn version(&mut self, area: &Area<Mapped>) -> u64 {
        self.work.versions.next().unwrap_or_else(|| {
            let first = area.ground.add(header::NEXT_VERSION, VERSIONS_AT_ONCE);
            self.work.versions = first + 1..first + VERSIONS_AT_ONCE;
            first
        }) & MAX_VERSION
    }
}

/// The seats of a process.
#[derive(Debug, Default)]
pub(super) struct Seats {
    all: [OnceLock<Seat>; MOST_SEATS],
    count: AtomicUsize,
    growing: Mutex<()>,
}

thread_local! {
    /// The number of this thread, over which threads are spread.
    static THREAD: Cell<Option<u32>> = const { Cell::new(None) };
}

static THREADS: AtomicU32 = AtomicU32::new(0);

fn thread() -> usize {
    THREAD.with(|thread| {
        let number = thread.get().unwrap_or_else(|| {
            let number = THREADS.fetch_add(1, Ordering::Relaxed);
            thread.set(Some(number));
            number
        });
        number as usize
    })
}

impl Seats {
    /// Takes the first place.
    pub(super) fn attach(area: &Area<Mapped>, now_ms: u64) -> io::Result<Self> {
        let seats = Self::default();
        let seat = area.take_seat(now_ms, false)?.ok_or_else(|| {
            let places = area.geometry.numbers.places;
            io::Error::other(format!(
                "all its {places} places are taken by processes; end some, or use a larger file"
            ))
        })?;
        seats.all[0].set(seat).expect("nobody else has these seats yet");
        seats.count.store(1, Ordering::Release);
        Ok(seats)
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn at(&self, number: usize) -> &Seat {
        self.all[number].get().expect("so many are taken")
    }

    /// The place that this thread counts in.
    #[inline]
    pub(super) fn counting(&self) -> u32 {
        self.at(thread() % self.count()).me.place
    }

    /// A seat for this thread alone. More threads get more places.
    pub(super) fn take(&self, area: &Area<Mapped>, now_ms: impl Fn() -> u64) -> Taken<'_> {
        let count = self.count();
        let first = thread() % count;
        for number in (first..count).chain(0..first) {
            let seat = self.at(number);
            if let Some(work) = seat.work.try_lock() {
                return Taken { me: seat.me, work };
            }
        }
        self.grow(area, now_ms());
        let seat = self.at(thread() % self.count());
        Taken { me: seat.me, work: seat.work.lock() }
    }

    /// Takes one more place, while there are plenty.
    fn grow(&self, area: &Area<Mapped>, now_ms: u64) {
        let Some(_growing) = self.growing.try_lock() else {
            return;
        };
        let count = self.count();
        if count == MOST_SEATS {
            return;
        }
        if let Ok(Some(seat)) = area.take_seat(now_ms, true) {
            self.all[count].set(seat).expect("only who grows sets it");
            self.count.store(count + 1, Ordering::Release);
        }
    }

    /// What was counted since they were taken.
    pub(super) fn counted(&self, area: &Area<Mapped>, counter: Counter) -> u64 {
        (0..self.count())
            .map(|number| self.at(number))
            .map(|seat| {
                let now = area.counted(seat.me.place, counter);
                now.wrapping_sub(seat.before[counter as usize])
            })
            .fold(0, u64::wrapping_add)
    }

    /// A token of this process, for what its threads do together.
    pub(super) fn token(&self) -> Token {
        self.at(0).me.token
    }

    /// Gives all places back, after what is being done at them.
    pub(super) fn leave(&self, area: &Area<Mapped>) {
        for number in 0..self.count() {
            let seat = self.at(number);
            let _work = seat.work.lock();
            area.ground.store(area.geometry.place(seat.me.place) + STATE, LEFT, Ordering::Release);
        }
    }
}

impl Area<Mapped> {
    /// Takes a free place. An extra one only while more than half of them are free.
    fn take_seat(&self, now_ms: u64, is_extra: bool) -> io::Result<Option<Seat>> {
        let places = self.geometry.numbers.places;
        let is_left = |place: &u32| {
            self.ground.load(self.geometry.place(*place) + STATE, Ordering::Relaxed) == LEFT
        };
        if is_extra && (0..places).filter(is_left).count() <= places as usize / 2 {
            return Ok(None);
        }
        // Those that were left first; then those whose owners have died.
        let left = (0..places).filter(is_left);
        let all = left.chain((0..places).filter(|place| !is_left(place)));
        for place in all {
            if let Some(lock) = self.ground.kernel.take_place(place)? {
                return Ok(Some(self.sit_down(place, lock, now_ms)));
            }
        }
        Ok(None)
    }

    fn sit_down(&self, place: u32, lock: Lock, now_ms: u64) -> Seat {
        let at = self.geometry.place(place);
        let load = |word: u64| self.ground.load(at + word, Ordering::Acquire);
        let store = |word: u64, value: u64| self.ground.store(at + word, value, Ordering::Release);
        if load(STATE) == TAKEN {
            self.ground.add(header::DEATHS, 1);
        }
        // After a loss of power there may be tokens of owners that the word does not know of.
        let jump = if load(BOOT) == self.stamp { 1 } else { 1 + (self.stamp & 0xF_FFFF) };
        let incarnation = load(INCARNATION).wrapping_add(jump);
        store(HAZARD, 0);
        store(BOOT, self.stamp);
        store(INCARNATION, incarnation);
        store(PROCESS, u64::from(std::process::id()));
        store(SINCE, now_ms);
        store(STATE, TAKEN);
        let before = Counter::ALL.map(|counter| self.counted(place, counter));
        let me = Me::new(place, Token::new(place, incarnation));
        Seat { me, _lock: lock, before, work: Mutex::default() }
    }

    /// Notes that this boot uses the file; the first who does makes versions jump.
    pub(super) fn note_boot(&self) {
        if self.ground.load(header::BOOT, Ordering::Acquire) == self.stamp {
            return;
        }
        self.ground.add(header::NEXT_VERSION, VERSIONS_PER_BOOT);
        self.ground.store(header::BOOT, self.stamp, Ordering::Release);
    }

    /// The processes that have a place: their ids, and since when, in ms since 1970.
    pub(super) fn processes(&self) -> Vec<(u64, u64)> {
        let places = (0..self.geometry.numbers.places).filter(|place| {
            let state = self.ground.load(self.geometry.place(*place) + STATE, Ordering::Relaxed);
            state == TAKEN && self.ground.is_taken(*place)
        });
        let mut processes: Vec<(u64, u64)> = places
            .map(|place| {
                let word =
                    |word| self.ground.load(self.geometry.place(place) + word, Ordering::Relaxed);
                (word(PROCESS), word(SINCE))
            })
            .collect();
        processes.sort_unstable();
        processes.dedup_by_key(|(process, _)| *process);
        processes
    }
}
