//! The protocol under many interleavings of its threads, by the Shuttle model checker.
//!
//! Each access to a shared word is a point at which another thread may go on. Threads stand for
//! processes; one that is dead stays where it is, with what it holds.

use std::collections::HashSet;
use std::fmt::{self, Debug};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::AtomicU64;

use super::append::{Appended, Draft, head_at};
use super::area::{Area, Counter, Me, Stop};
use super::get::Search;
use super::ground::Ground;
use super::halted::ProcessId;
use super::header;
use super::layout::{Geometry, Numbers};
use super::seats::PLACE_STAMP;
use super::segment::{HEADS, MAIN, SMALL};
use super::slot::{LockWord, MAX_FREQUENCY, Token};
use super::sweep::Sweep;
use super::write::{Expiry, Outcome, Write};
use crate::write::{WriteMode, Written};

const ITERATIONS: usize = 1_000;
const FOREVER: u64 = u64::MAX;
/// As all stamps, with the upper bit.
const STAMP: u64 = 1 << 63 | 7;

/// Words of memory, and who is dead.
struct Model {
    words: Vec<AtomicU64>,
    dead: Mutex<HashSet<u32>>,
    /// Moves on with each pause, so that waiting ends.
    clock: AtomicU64,
    /// What others do at once when the lock of a queue's head is released.
    others: Mutex<Option<Others>>,
}

type Others = Box<dyn FnMut() + Send>;

impl Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

impl Model {
    fn word(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "offset {at}");
        &self.words[usize::try_from(at / 8).expect("an index")]
    }
}

impl Ground for Model {
    fn load(&self, at: u64, _: Ordering) -> u64 {
        self.word(at).load(Ordering::SeqCst)
    }

    fn store(&self, at: u64, value: u64, _: Ordering) {
        self.word(at).store(value, Ordering::SeqCst);
        let is_head = (0..HEADS).any(|queue| at == head_at(queue));
        if is_head && LockWord(value).token() == Token::NOBODY {
            // Taken out meanwhile: they release it as well.
            let others = self.others.lock().expect("no panic").take();
            if let Some(mut others) = others {
                others();
                *self.others.lock().expect("no panic") = Some(others);
            }
        }
    }

    fn exchange(&self, at: u64, old: u64, new: u64) -> Result<(), u64> {
        let order = Ordering::SeqCst;
        self.word(at).compare_exchange(old, new, order, order).map(|_| ())
    }

    fn fence(&self, _: Ordering) {}

    fn add(&self, at: u64, delta: u64) -> u64 {
        self.word(at).fetch_add(delta, Ordering::SeqCst)
    }

    fn raise(&self, at: u64, value: u64) {
        self.word(at).fetch_max(value, Ordering::SeqCst);
    }

    fn copy_out_to(&self, at: u64, bytes: usize, into: &mut Vec<u8>) {
        for offset in (0..bytes).step_by(8) {
            let word = self.load(at + offset as u64, Ordering::Relaxed).to_le_bytes();
            into.extend_from_slice(&word[..(bytes - offset).min(8)]);
        }
    }

    fn copy_in(&self, at: u64, from: &[u8]) {
        for (number, bytes) in (0_u64..).zip(from.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.store(at + 8 * number, u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    fn prefetch(&self, _: u64) {}

    fn is_taken(&self, place: u32) -> bool {
        !self.dead.lock().expect("no panic").contains(&place)
    }

    fn is_halted(&self, _: ProcessId) -> bool {
        false
    }

    fn is_pinned(&self, _: u32) -> bool {
        false
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.clock.load(Ordering::SeqCst))
    }

    fn sleep_on(&self, _: u64, _: u64, _: Duration) {
        shuttle::thread::yield_now();
    }

    fn wake(&self, _: u64) {}

    fn pause(&self, _: u32) {
        self.clock.fetch_add(40, Ordering::SeqCst);
        shuttle::thread::yield_now();
    }
}

/// A file of twelve segments of 256 bytes, with one bucket.
fn area() -> Arc<Area<Model>> {
    let numbers = Numbers {
        places: 4,
        claims: 1,
        buckets: 1,
        overflows: 2,
        ghosts: 1,
        segments: 12,
        segment_log2: 8,
    };
    let geometry = Geometry::of(numbers, 1 << 20);
    let end = geometry.segment_start(numbers.segments);
    let words = (0..end / 8).map(|_| AtomicU64::new(0)).collect();
    let ground = Model {
        words,
        dead: Mutex::new(HashSet::new()),
        clock: AtomicU64::new(0),
        others: Mutex::new(None),
    };
    let sweep = Sweep::default();
    let area = Area { ground, geometry, hash_seed: 1, stamp: STAMP, verifies_all: false, sweep };
    for segment in 0..numbers.segments {
        area.entry(segment).free();
    }
    for at in [header::EPOCH, header::SEQUENCE, header::NEXT_VERSION] {
        area.ground.store(at, 1, Ordering::Relaxed);
    }
    for at in [header::STAMP, header::SWEPT] {
        area.ground.store(at, STAMP, Ordering::Relaxed);
    }
    area.ground.store(header::PLACES_USED, numbers.places.into(), Ordering::Relaxed);
    for place in 0..numbers.places {
        area.ground.store(geometry.place(place), 1, Ordering::Relaxed);
        area.ground.store(geometry.place(place) + PLACE_STAMP, STAMP, Ordering::Relaxed);
    }
    Arc::new(area)
}

fn me(place: u32) -> Me {
    Me::new(place, Token::new(place, 1))
}

fn set(
    area: &Area<Model>,
    place: u32,
    key: &[u8],
    value: &[u8],
    mode: WriteMode,
) -> Result<Written, Stop> {
    let version = area.ground.add(header::NEXT_VERSION, 1);
    let write = Write {
        key: area.key(key, false),
        value,
        mode,
        expiry: Expiry::At(FOREVER),
        version,
        now_ms: 1,
    };
    area.write(me(place), &write).map(|outcome| match outcome {
        Outcome::Written(written) => written,
        Outcome::Outrun => panic!("no two writes have one version"),
    })
}

fn get(area: &Area<Model>, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    match area.search(&area.key(key, false), Some(&mut value)).expect("memory") {
        Search::Found(_) => Some(value),
        Search::Nothing | Search::Contended => None,
        Search::Damaged => panic!("nothing is verified here"),
    }
}

/// Sets one of the keys that have a rank.
fn store(area: &Area<Model>, rank: u8, round: u8) {
    let written = set(area, 0, &[b'k', rank], &uniform(round), WriteMode::Set);
    assert_eq!(written, Ok(Written::Stored), "{rank} in {round}");
}

fn assert_there(area: &Area<Model>, ranks: RangeInclusive<u8>, round: u8) {
    for rank in ranks {
        assert!(get(area, &[b'k', rank]).is_some(), "{rank} in {round}");
    }
}

fn get_often(area: &Area<Model>, key: &[u8]) {
    for _ in 0..MAX_FREQUENCY {
        let found = area.search(&area.key(key, false), None).expect("memory");
        if let Search::Found(seen) = found {
            area.note_use(&seen);
        }
    }
}

fn draft<'a>(area: &Area<Model>, key: &'a [u8], value: &'a [u8]) -> Draft<'a> {
    Draft {
        key: area.key(key, false),
        value,
        version: area.ground.add(header::NEXT_VERSION, 1),
        expires_ms: FOREVER,
        has_expiry: false,
        checksum: None,
    }
}

/// Lets one more slot of a key point to a record.
fn publish(area: &Area<Model>, key: &[u8], appended: &Appended<'_, Model>) {
    let hash = area.key(key, false).hash;
    let mut bucket = area.lock_bucket(me(0), hash).expect("free");
    let at = bucket.vacancy().expect("a slot");
    area.entry(appended.segment).add_live(appended.head.bytes());
    let slot = appended.publishable(&mut bucket, hash, 0);
    bucket.put(at, slot);
}

/// A value all of whose words are the same.
fn uniform(byte: u8) -> Vec<u8> {
    vec![byte; 24]
}

fn assert_uniform(value: &[u8]) {
    assert!(value.len() == 24 && value.iter().all(|byte| *byte == value[0]), "{value:?}");
}

#[test]
fn a_reader_sees_whole_values_while_segments_are_recycled() {
    shuttle::check_random(
        || {
            let area = area();
            let writers: Vec<_> = (0..2_u8)
                .map(|place| {
                    let area = Arc::clone(&area);
                    shuttle::thread::spawn(move || {
                        for round in 0..30 {
                            let key = [b'k', round % 3];
                            let value = uniform(place * 64 + round);
                            let written = set(&area, place.into(), &key, &value, WriteMode::Set);
                            assert!(matches!(written, Ok(Written::Stored) | Err(_)), "{written:?}");
                        }
                    })
                })
                .collect();
            for round in 0..30_u8 {
                if let Some(value) = get(&area, &[b'k', round % 3]) {
                    assert_uniform(&value);
                }
            }
            for writer in writers {
                writer.join().expect("no panic");
            }
        },
        ITERATIONS / 10,
    );
}

#[test]
fn what_fits_half_of_the_file_stays_though_others_fill_what_is_opened() {
    shuttle::check_random(
        || {
            let area = area();
            // They fill up to six segments while one write makes room, as where it lacks a processor.
            let left = Arc::new(AtomicU64::new(0));
            let others: Others = {
                let (area, left) = (Arc::downgrade(&area), Arc::clone(&left));
                Box::new(move || {
                    let area = area.upgrade().expect("it is being used");
                    let is_recycling =
                        LockWord(area.ground.load(header::RECYCLER, Ordering::SeqCst));
                    if is_recycling.token() == Token::NOBODY || left.load(Ordering::SeqCst) == 0 {
                        return;
                    }
                    let value = uniform(0);
                    let draft = draft(&area, b"other", &value);
                    for queue in [MAIN, SMALL] {
                        while area.append_to_open(me(1), queue, &draft).expect("free").is_some() {}
                    }
                    left.fetch_sub(1, Ordering::SeqCst);
                })
            };
            *area.ground.others.lock().expect("no panic") = Some(others);
            for round in 0..200_u8 {
                left.store(6, Ordering::SeqCst);
                // Each third write is of another key at first, the others are of one.
                let rank = if round % 3 == 0 { (round / 3).min(13) } else { 13 };
                store(&area, rank, round);
                assert_there(&area, 0..=(round / 3).min(12), round);
            }
        },
        1,
    );
}

#[test]
fn what_fits_half_of_the_file_stays_though_those_who_recycle_die() {
    shuttle::check_random(
        || {
            let area = area();
            for round in 0..40_u8 {
                store(&area, if round % 3 == 0 { round / 3 } else { 20 }, round);
            }
            // One after the other begins a free segment, moves a record there, and dies.
            let mut dead = 0_u8..;
            for free in (0..12).filter(|segment| area.is_free(*segment)) {
                area.begin(me(1), SMALL, free, 1).expect("it can be walked");
                let key = [b'd', dead.next().expect("there are few segments")];
                let value = uniform(0);
                let draft = draft(&area, &key, &value);
                let appended = area.extend(me(1), free, &draft);
                area.fill(&appended, &draft);
                publish(&area, &key, &appended);
            }
            for round in 40..200_u8 {
                store(&area, 20, round);
                assert_there(&area, 0..=13, round);
            }
        },
        1,
    );
}

#[test]
fn what_fits_half_of_the_file_stays_though_values_are_longer_than_segments() {
    shuttle::check_random(
        || {
            let area = area();
            let long = vec![7; 300];
            for round in 0..200_u8 {
                let rank = if round % 3 == 0 { (round / 3).min(8) } else { 20 };
                store(&area, rank, round);
                let written = set(&area, 0, b"long", &long, WriteMode::Set);
                assert_eq!(written, Ok(Written::Stored), "{round}");
                assert_eq!(get(&area, b"long").as_ref(), Some(&long), "{round}");
                assert_there(&area, 0..=(round / 3).min(8), round);
            }
        },
        1,
    );
}

#[test]
fn of_many_who_add_one_does() {
    shuttle::check_random(
        || {
            let area = area();
            let adders: Vec<_> = (0..3_u8)
                .map(|place| {
                    let area = Arc::clone(&area);
                    shuttle::thread::spawn(move || {
                        set(&area, place.into(), b"key", &uniform(place), WriteMode::Add)
                    })
                })
                .collect();
            let written = adders.into_iter().map(|adder| adder.join().expect("no panic"));
            let stored = written.filter(|written| *written == Ok(Written::Stored)).count();
            assert_eq!(stored, 1);
            assert_uniform(&get(&area, b"key").expect("somebody stored it"));
        },
        ITERATIONS,
    );
}

#[test]
fn a_key_that_is_deleted_last_is_gone_whatever_was_written_before() {
    shuttle::check_random(
        || {
            let area = area();
            let others: Vec<_> = (0..2_u8)
                .map(|place| {
                    let area = Arc::clone(&area);
                    shuttle::thread::spawn(move || {
                        set(&area, place.into(), b"key", &uniform(place), WriteMode::Set)
                            .expect("room")
                    })
                })
                .collect();
            for other in others {
                let _ = other.join().expect("no panic");
            }
            let key = area.key(b"key", false);
            assert_eq!(area.delete(me(2), &key, None, 1), Ok(true));
            assert_eq!(get(&area, b"key"), None);
            assert_eq!(area.live().entries, 0);
        },
        ITERATIONS,
    );
}

#[test]
fn what_a_dead_owner_holds_is_taken_by_one() {
    shuttle::check_random(
        || {
            let area = area();
            let _ = set(&area, 0, b"key", &uniform(9), WriteMode::Set).expect("room");
            let bucket = area.lock_bucket(me(3), area.key(b"key", false).hash).expect("free");
            std::mem::forget(bucket);
            area.ground.dead.lock().expect("no panic").insert(3);
            let others: Vec<_> = (0..3_u8)
                .map(|place| {
                    let area = Arc::clone(&area);
                    shuttle::thread::spawn(move || {
                        set(&area, place.into(), b"key", &uniform(place), WriteMode::Set)
                    })
                })
                .collect();
            assert_uniform(&get(&area, b"key").expect("a read waits for nobody"));
            for other in others {
                assert_eq!(other.join().expect("no panic"), Ok(Written::Stored));
            }
            assert_uniform(&get(&area, b"key").expect("it is there"));
            assert_eq!(area.live().entries, 1);
        },
        ITERATIONS,
    );
}

/// Two slots of a key, as a loss of power leaves them: readers get to the first.
fn two_slots(area: &Area<Model>, values: [&[u8]; 2]) {
    for (queue, value) in [SMALL, MAIN].into_iter().zip(values) {
        let draft = draft(area, b"key", value);
        let appended = area.append(me(0), queue, &draft, 1).expect("room");
        publish(area, b"key", &appended);
    }
}

#[test]
fn what_was_hidden_does_not_come_back_when_its_segment_cannot_be_walked() {
    shuttle::check_random(
        || {
            let mut area = area();
            let _ = set(&area, 0, b"before", &uniform(0), WriteMode::Set).expect("room");
            two_slots(&area, [&uniform(2), &uniform(1)]);
            let segment = area.open_for(SMALL).expect("it was appended to");
            // In the next boot, the first record of the segment is torn.
            let stamp = STAMP + 1;
            Arc::get_mut(&mut area).expect("nobody else has it").stamp = stamp;
            area.ground.store(header::STAMP, stamp, Ordering::Relaxed);
            area.ground.store(area.geometry.place(0) + PLACE_STAMP, stamp, Ordering::Relaxed);
            let start = area.geometry.segment_start(segment);
            area.ground.store(start, u64::MAX, Ordering::Relaxed);
            assert_eq!(get(&area, b"key"), Some(uniform(2)));
            while !area.is_swept() {
                area.sweep_on(me(0));
            }
            assert_eq!(get(&area, b"key"), None);
        },
        1,
    );
}

#[test]
fn what_was_hidden_does_not_come_back_when_a_bucket_is_full() {
    shuttle::check_random(
        || {
            let area = area();
            two_slots(&area, [&uniform(2), &uniform(1)]);
            let mut others = 0_u8..;
            while area.counted(0, Counter::Crowded) == 0 {
                let key = [others.next().expect("a bucket has fewer slots")];
                let _ = set(&area, 0, &key, &uniform(0), WriteMode::Set).expect("room");
                // All are warmer than the first.
                get_often(&area, &key);
            }
            assert_eq!(get(&area, b"key"), None);
        },
        1,
    );
}

#[test]
fn what_was_there_before_clearing_does_not_come_back() {
    shuttle::check_random(
        || {
            let area = area();
            let _ = set(&area, 0, b"key", &uniform(1), WriteMode::Set).expect("room");
            let clearing = {
                let area = Arc::clone(&area);
                shuttle::thread::spawn(move || area.clear(me(1)).expect("nobody is in the way"))
            };
            let writing = {
                let area = Arc::clone(&area);
                // Versions are counted from 1: the entry's is known.
                let mode = WriteMode::Cas(crate::Version::from_raw(1));
                shuttle::thread::spawn(move || set(&area, 2, b"key", &uniform(2), mode))
            };
            clearing.join().expect("no panic");
            // It came before the clearing, and is gone; or after it, and found nothing.
            let _ = writing.join().expect("no panic");
            assert_eq!(get(&area, b"key"), None);
        },
        ITERATIONS,
    );
}
