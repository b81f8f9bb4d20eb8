//! One test for each pair of accesses whose order the protocol depends on, as small as it can be: so
//! many iterations find what few do not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{
    Joining, Model, appender, area, area_of, begin, check, delete, draft, eight_keys_of, empty,
    get, numbers, owner, parts_of, publish, seal, segment_of, set, spawn, value_of, write,
};
use crate::file::area::Area;
use crate::file::area::now::Now;
use crate::file::format::layout::Numbers;
use crate::file::format::segment::{SMALL, SegmentKind, State};
use crate::file::format::slot::{LockWord, Token};
use crate::file::log::append::{Appended, Draft};
use crate::file::log::hazards::Hazards;
use crate::file::log::recycle::Recycled;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::{Cause, Choice};
use crate::file::operations::census::Census;
use crate::file::operations::claims::{ClaimKey, Claimed};
use crate::file::operations::read::{Lookup, Search};
use crate::file::operations::write::Writer;
use crate::file::platform::ground::Ground;
use crate::write::{WriteMode, Written};

const ITERATIONS: usize = 3_000;
const KEY: u8 = 0;

fn store(area: &Area<Model>, slot: u8, round: u16) {
    let value = value_of(KEY, slot, round);
    let written = set(area, slot.into(), b"key", &value, WriteMode::Set);
    assert_eq!(written, Ok(Written::Stored));
}

/// The round of the key's value, which has to be whole.
fn round(area: &Area<Model>) -> Option<u16> {
    get(area, b"key").map(|value| parts_of(KEY, &value).1)
}

/// The key, in a segment that is sealed.
fn sealed_key() -> (Arc<Area<Model>>, u32) {
    let area = area();
    store(&area, 0, 1);
    let segment = segment_of(&area, b"key");
    seal(&area, 0);
    (area, segment)
}

/// Starts a thread, and returns what waits for its end as well. Waiting orders nothing: the effects
/// of the thread are seen late, or not.
fn spawn_and_wait<T: Send + 'static>(
    area: &Arc<Area<Model>>,
    run: impl FnOnce(&Area<Model>) -> T + Send + 'static,
) -> (Joining<T>, impl Fn()) {
    let has_ended = Arc::new(shuttle::sync::Mutex::new(false));
    let ending = Arc::clone(&has_ended);
    let joining = spawn(area, move |area| {
        let result = run(area);
        *ending.lock().expect("no panic") = true;
        result
    });
    let wait = move || {
        while !*has_ended.lock().expect("no panic") {
            shuttle::thread::yield_now();
        }
    };
    (joining, wait)
}

/// Fills a free segment with a record.
fn fill<'a>(area: &'a Area<Model>, segment: u32, draft: &Draft<'_>) -> Appended<'a, Model> {
    begin(area, 0, segment);
    let appended = appender(area, 0).extend((segment, area.entry(segment).used()), draft);
    appended.fill(draft);
    appended
}

/// The bytes under a reader become another value of the same key and length.
#[test]
fn a_reader_notices_that_a_segment_is_filled_again() {
    check(
        || {
            let (area, segment) = sealed_key();
            let writer = spawn(&area, move |area| {
                assert_eq!(empty(area, 0, segment, Cause::Room), Recycled::Emptied);
                let value = value_of(KEY, 0, 2);
                let draft = draft(area, b"key", &value);
                publish(area, b"key", &fill(area, segment, &draft));
            });
            let reader = spawn(&area, |area| {
                if round(area) == Some(2) {
                    assert_eq!(round(area), Some(2), "what came before came back");
                }
            });
            writer.join(&area);
            reader.join(&area);
            assert_eq!(round(&area), Some(2));
        },
        ITERATIONS,
    );
}

/// Of a value in several segments, one becomes another's, and it is not the first.
#[test]
fn a_reader_notices_that_a_part_of_a_long_value_is_filled_again() {
    check(
        || {
            let area = area();
            let long = vec![7; 300];
            let written = set(&area, 0, b"key", &long, WriteMode::Set);
            assert_eq!(written, Ok(Written::Stored));
            let segment = segment_of(&area, b"key");
            let writer = spawn(&area, move |area| {
                assert_eq!(empty(area, 0, segment, Cause::Room), Recycled::Emptied);
                let value = vec![9; 200];
                let _ = fill(area, segment + 1, &draft(area, b"other", &value));
            });
            let found = get(&area, b"key");
            assert!(found.is_none_or(|found| found == long), "a part of it is another's");
            writer.join(&area);
        },
        ITERATIONS / 3,
    );
}

/// Of one that reads in place and one that empties, at least one notices the other.
#[test]
fn what_is_pinned_is_not_emptied() {
    check(
        || {
            let (area, segment) = sealed_key();
            let (recycler, wait) = spawn_and_wait(&area, move |area| {
                empty(area, 0, segment, Cause::Sparse) == Recycled::Emptied
            });
            let name = area.key(b"key", false);
            if let Ok(Search::Found(seen)) = Lookup::new(&area, &name).search(None)
                && let Some(held) = Lookup::new(&area, &name).hold(&seen, 3).expect("memory")
                && seen.segment == segment
            {
                wait();
                assert!(!recycler.join(&area), "it was pinned");
                let mut value = Vec::new();
                area.copy_value(&held.record, &mut value).expect("memory");
                assert_eq!(parts_of(KEY, &value), (0, 1));
            } else {
                recycler.join(&area);
            }
            assert_eq!(round(&area), Some(1));
        },
        ITERATIONS,
    );
}

/// A reader that pins a segment after it was begun again does not read its former record.
#[test]
fn what_is_pinned_too_late_is_not_read_in_place() {
    check(
        || {
            let (area, segment) = sealed_key();
            let (recycler, wait) = spawn_and_wait(&area, move |area| {
                assert_eq!(empty(area, 0, segment, Cause::Room), Recycled::Emptied);
                begin(area, 0, segment);
            });
            let name = area.key(b"key", false);
            let found = Lookup::new(&area, &name).search(None).expect("memory");
            wait();
            if let Search::Found(seen) = found {
                let held = Lookup::new(&area, &name).hold(&seen, 3).expect("memory");
                assert!(held.is_none(), "it was begun again");
            }
            recycler.join(&area);
        },
        ITERATIONS / 3,
    );
}

/// A process that empties a segment sees the records of those who appended to it.
#[test]
fn what_was_appended_is_seen_by_who_empties() {
    check(
        || {
            let area = area();
            store(&area, 0, 1);
            let segment = segment_of(&area, b"key");
            let writer = spawn(&area, |area| {
                let value = value_of(1, 1, 1);
                let written = set(area, 1, b"other", &value, WriteMode::Set);
                assert_eq!(written, Ok(Written::Stored));
            });
            let recycler = spawn(&area, move |area| {
                seal(area, 0);
                let _ = empty(area, 0, segment, Cause::Sparse);
            });
            writer.join(&area);
            recycler.join(&area);
            assert_eq!(round(&area), Some(1));
            assert!(get(&area, b"other").is_some(), "it fits");
            assert_eq!(Census::of(&area).live().entries, 2);
        },
        ITERATIONS,
    );
}

/// A process that finds that nobody claims a key finds its value as well, if one was computed.
#[test]
fn who_gets_a_claim_that_was_given_back_finds_the_value() {
    check(
        || {
            let area = area();
            let hash = area.key(b"key", false).hash;
            let computing = spawn(&area, move |area| {
                let claimed =
                    ClaimKey::new(area, hash).claim(owner(0), None).expect("nobody is in the way");
                if matches!(claimed, Claimed::Held(_)) && round(area).is_none() {
                    store(area, 0, 1);
                    drop(claimed);
                    return 1;
                }
                0
            });
            let asking = spawn(&area, move |area| {
                loop {
                    match ClaimKey::new(area, hash)
                        .claim(owner(1), None)
                        .expect("nobody is in the way")
                    {
                        Claimed::Held(_claim) if round(area).is_some() => return 0,
                        Claimed::Held(_claim) => {
                            store(area, 1, 1);
                            return 1;
                        }
                        _ => shuttle::thread::yield_now(),
                    }
                }
            });
            assert_eq!(computing.join(&area) + asking.join(&area), 1, "it is computed once");
        },
        ITERATIONS,
    );
}

/// A process that takes an overflow line comes after the one that emptied it.
#[test]
fn what_is_put_into_a_line_is_not_emptied_by_who_had_it_before() {
    check(
        || {
            let area = area_of(Numbers { buckets: 2, overflows: 1, segments: 24, ..numbers() });
            let (here, there) = (eight_keys_of(&area, 0), eight_keys_of(&area, 1));
            let set_key = |area: &Area<Model>, key: u8| {
                let written = set(area, 0, &[key], &value_of(key, 0, 0), WriteMode::Set);
                assert_eq!(written, Ok(Written::Stored));
            };
            here.iter().chain(&there[..7]).for_each(|key| set_key(&area, *key));
            let first = here[7];
            let emptying = spawn(&area, move |area| assert!(delete(area, 1, &[first])));
            let last = there[7];
            let filling = spawn(&area, move |area| set_key(area, last));
            emptying.join(&area);
            filling.join(&area);
            assert!(get(&area, &[last]).is_some(), "it was emptied");
        },
        ITERATIONS / 10,
    );
}

/// A death has left the last of some lines with an old slot of a key in it; the line is emptied and
/// linked again.
fn find_nothing_in_a_line_that_was_left(lines: u32) {
    check(
        move || {
            let area = area_of(Numbers { overflows: lines, segments: 24, ..numbers() });
            store(&area, 0, 1);
            let key = area.key(b"key", false);
            let Ok(Search::Found(old)) = Lookup::new(&area, &key).search(None) else {
                panic!("it was set");
            };
            store(&area, 0, 2);
            let set_key = |area: &Area<Model>, key: u8| {
                let written = set(area, 0, &[key], &value_of(key, 0, 0), WriteMode::Set);
                assert_eq!(written, Ok(Written::Stored));
            };
            let others = u8::try_from(7 * lines - 1).expect("few");
            (0..others).for_each(|key| set_key(&area, key));
            // Another takes its place: what comes next needs the line.
            assert!(delete(&area, 1, b"key"));
            set_key(&area, others);
            // One bucket takes them in their order.
            let left = area.geometry.overflow_line(lines - 1);
            area.ground.store(left, LockWord::new(Token(1), 0).0, Ordering::Relaxed);
            area.ground.store(left + 16, old.slot.0, Ordering::Relaxed);
            let adding = spawn(&area, move |area| set_key(area, others + 1));
            for _ in 0..4 {
                assert_eq!(round(&area), None, "it came back");
            }
            adding.join(&area);
        },
        ITERATIONS / 6,
    );
}

#[test]
fn what_was_left_in_the_first_line_of_a_bucket_is_not_found() {
    find_nothing_in_a_line_that_was_left(1);
}

#[test]
fn what_was_left_in_the_next_line_of_a_bucket_is_not_found() {
    find_nothing_in_a_line_that_was_left(2);
}

/// An append moves a segment from its lane's name to its owner's hazard. Then others may rename the lane.
#[test]
fn what_is_appended_to_is_not_emptied_while_its_lane_is_renamed() {
    check(
        || {
            let area = area();
            store(&area, 1, 1);
            let segment = segment_of(&area, b"key");
            begin(&area, 0, 7);
            let writer = spawn(&area, |area| {
                let value = value_of(1, 1, 2);
                assert_eq!(set(area, 1, b"new", &value, WriteMode::Set), Ok(Written::Stored));
            });
            // It shares the lane.
            let renamer = spawn(&area, |area| appender(area, 2).name(SMALL, 7).expect("free"));
            let recycler = spawn(&area, move |area| {
                if empty(area, 0, segment, Cause::Sparse) == Recycled::Emptied {
                    let value = value_of(2, 0, 3);
                    publish(area, b"other", &fill(area, segment, &draft(area, b"other", &value)));
                }
            });
            writer.join(&area);
            renamer.join(&area);
            recycler.join(&area);
            let found = get(&area, b"new").expect("it was stored");
            assert_eq!(parts_of(1, &found), (1, 2));
            assert_eq!(round(&area), Some(1));
        },
        ITERATIONS,
    );
}

/// A process marks an open segment just before a lane names it, and dies. Its successor sees only the mark.
#[test]
fn what_a_dead_process_has_marked_is_not_emptied_while_it_is_appended_to() {
    check(
        || {
            let area = area();
            store(&area, 1, 1);
            let segment = segment_of(&area, b"key");
            let (recycler, wait) = spawn_and_wait(&area, move |area| {
                let word = area.entry(segment).state_word();
                let marked = State { kind: SegmentKind::Recycling, ..State::decode(word) };
                assert!(area.entry(segment).exchange_state(word, marked));
                let recycler = Recycler::lock(area, owner(0)).expect("nobody is in the way");
                recycler.begin_recycling(segment).is_some()
            });
            let value = value_of(1, 1, 2);
            let draft = draft(&area, b"new", &value);
            let appended = appender(&area, 1).append_to_open(SMALL, &draft).expect("free");
            wait();
            let is_emptied = recycler.join(&area);
            assert!(appended.is_none() || !is_emptied, "the record is lost");
        },
        ITERATIONS / 3,
    );
}

/// The look at hazards and names that decides this. Only a few steps run, so that many schedules come to each
/// order of them.
#[test]
fn what_is_appended_to_is_held_while_its_lane_is_renamed() {
    check(
        || {
            let area = area();
            store(&area, 1, 1);
            let segment = segment_of(&area, b"key");
            begin(&area, 0, 7);
            let (looking, wait) = spawn_and_wait(&area, move |area| {
                (0..4).all(|_| Hazards::of(area).or_lanes_name(segment))
            });
            let value = value_of(1, 1, 2);
            let draft = draft(&area, b"new", &value);
            let appended = appender(&area, 1).append_to_open(SMALL, &draft).expect("free");
            let appended = appended.expect("there is room");
            assert_eq!(appended.segment, segment);
            appender(&area, 2).name(SMALL, 7).expect("free");
            wait();
            drop(appended);
            assert!(looking.join(&area), "a lane names it, and then it is appended to");
        },
        ITERATIONS / 3,
    );
}

/// An entry that has expired for the recycler is touched before it leaves.
#[test]
fn what_is_touched_before_it_is_dropped_stays() {
    check(
        || {
            let area = area();
            let value = value_of(KEY, 0, 1);
            let stored = write(&area, owner(0), b"key", &value, WriteMode::Set, 1_000);
            assert_eq!(stored, Ok(Written::Stored));
            let segment = segment_of(&area, b"key");
            seal(&area, 0);
            let toucher = spawn(&area, |area| {
                let key = area.key(b"key", false);
                Writer::new(area, owner(1))
                    .touch(&key, 5_000, &Now::at(999))
                    .expect("nobody is in the way")
            });
            let recycler = spawn(&area, move |area| {
                let recycler = Recycler::lock(area, owner(0)).expect("nobody is in the way");
                // It seems to hold nothing that lives.
                let choice = Choice::of(segment, Cause::Dead);
                let _ = recycler.recycle(choice, 0, &mut Reserve::default(), 1_000);
            });
            recycler.join(&area);
            if toucher.join(&area) == Some(true) {
                assert_eq!(round(&area), Some(1), "it was there, and expires later");
            }
        },
        ITERATIONS / 3,
    );
}
