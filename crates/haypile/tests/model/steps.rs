//! Single steps, each in the state in which it matters.

use std::sync::atomic::Ordering;
use std::time::Duration;

use haypile_policy::rules::file::RESERVED_SEGMENTS;
use shuttle::sync::atomic::AtomicBool;

use super::{
    FOREVER, Model, Others, appender, area, area_of, bucket, clear, delete, draft, empty, find,
    get, numbers, open_for, owner, publish, restart, seal, segment_of, set, value_of, write,
};
use crate::file::area::now::Now;
use crate::file::area::{Area, Holder, OpError};
use crate::file::format::header;
use crate::file::format::layout::Numbers;
use crate::file::format::segment::{Live, MAIN, SMALL, SegmentKind, State};
use crate::file::format::slot::Slot;
use crate::file::index::bucket::Bucket;
use crate::file::log::recycle::Recycled;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::{Cause, Choice};
use crate::file::operations::census::Census;
use crate::file::operations::write::Writer;
use crate::file::platform::ground::Ground;
use crate::file::platform::halted::ProcessId;
use crate::write::{WriteMode, Written};

fn once(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, 1);
}

fn some(round: u16) -> Vec<u8> {
    value_of(0, 0, round)
}

fn store(area: &Area<Model>, key: &[u8], value: &[u8]) {
    assert_eq!(set(area, 0, key, value, WriteMode::Set), Ok(Written::Stored));
}

/// Where the next record of the open segment goes, as slots say it.
fn next_offset(area: &Area<Model>) -> u64 {
    let segment = open_for(area, SMALL).expect("it was appended to");
    let at = area.geometry.segment_start(segment) + area.entry(segment).used();
    at - area.geometry.segments
}

/// As a loss of power can leave it: a slot of a key that leads to these bytes.
fn put_slot(area: &Area<Model>, key: &[u8], offset: u64) {
    let mut bucket = bucket(area, 0, key);
    let at = bucket.vacancy().expect("a slot");
    bucket.put(at, Slot::new(area.key(key, false).hash, 0, offset));
}

/// Has something done once when a copy of a record has been appended, and is not published yet.
fn between_copy_and_slot(
    area: &std::sync::Arc<Area<Model>>,
    act: impl Fn(&Area<Model>) + Send + 'static,
) {
    let weak = std::sync::Arc::downgrade(area);
    let mut is_done = false;
    let others: Others = Box::new(move || {
        if !std::mem::replace(&mut is_done, true) {
            act(&weak.upgrade().expect("it is being used"));
        }
    });
    *area.ground.others.lock().expect("no panic") = Some(others);
}

#[test]
fn a_long_value_that_lives_is_not_dropped_as_dead() {
    once(|| {
        let area = area();
        let long = vec![7; 300];
        store(&area, b"long", &long);
        // When it was chosen it seemed to hold nothing.
        assert_eq!(
            empty(&area, 0, segment_of(&area, b"long"), Cause::Sparse),
            Recycled::Miscounted(328)
        );
        assert_eq!(get(&area, b"long"), Some(long));
    });
}

#[test]
fn a_long_value_that_is_being_written_keeps_its_segments() {
    once(|| {
        let area = area();
        let long = vec![7; 400];
        let draft = draft(&area, b"long", &long);
        let appended = appender(&area, 1).append_run(SMALL, &draft, 1).expect("room");
        for round in 0..300 {
            store(&area, &[b'k', u8::try_from(round % 4).expect("few")], &some(round));
        }
        publish(&area, b"long", &appended);
        assert_eq!(get(&area, b"long"), Some(long));
    });
}

/// The copies of the next sparse segment's live entries need a free segment.
#[test]
fn a_long_value_leaves_segments_in_reserve() {
    once(|| {
        let area = area_of(Numbers { segments: 40, ..numbers() });
        let free = || (0..40).filter(|segment| area.is_free(*segment)).count();
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for round in 0..1_300_u16 {
            let number = u8::try_from(draw(30)).expect("few");
            match number {
                // About an eighth of all is live.
                0..3 => {
                    let long = vec![7; 300 + usize::try_from(draw(900)).expect("few")];
                    store(&area, &[b'l', number], &long);
                    assert!(free() >= RESERVED_SEGMENTS as usize, "{} in {round}", free());
                }
                3..15 => store(&area, &[b'k', number], &some(round)),
                _ => store(&area, b"other", &some(round)),
            }
        }
        for key in 3..15 {
            assert!(get(&area, &[b'k', key]).is_some(), "{key} has left");
        }
    });
}

#[test]
fn what_fits_half_stays_where_no_segment_is_half_empty() {
    once(|| {
        let area = area_of(Numbers { overflows: 4, ..numbers() });
        let mut keys = Vec::new();
        for round in 0..10 {
            // Three that stay, and two that are overwritten: so is each segment.
            for number in 0..3 {
                keys.push([b'k', round, number]);
                store(&area, &keys[keys.len() - 1], &some(round.into()));
            }
            store(&area, b"x", &some(round.into()));
            store(&area, b"x", &some(round.into()));
        }
        for round in 0..200 {
            store(&area, b"x", &some(round));
        }
        for key in &keys {
            assert!(get(&area, key).is_some(), "{key:?}");
        }
    });
}

#[test]
fn who_comes_after_a_dead_process_holds_nothing_of_it() {
    once(|| {
        let area = area();
        store(&area, b"key", &some(1));
        let segment = segment_of(&area, b"key");
        let process = ProcessId { number: 7, namespace: 0 };
        let dead = area.owner_slot(3).settle(process, 1);
        area.owner_slot(3).set_hazard(Some(segment));
        std::mem::forget(Bucket::lock(&area, dead, area.key(b"key", false).hash).expect("free"));
        let next = area.owner_slot(3).settle(process, 1);
        assert_ne!(dead.token, next.token);
        // Its owner slot is taken again, so that only the token tells the two apart.
        store(&area, b"key", &some(2));
        seal(&area, 0);
        assert_eq!(empty(&area, 0, segment, Cause::Sparse), Recycled::Emptied);
        assert_eq!(get(&area, b"key"), Some(some(2)));
    });
}

#[test]
fn what_is_sparse_stays_where_its_copies_have_no_room() {
    once(|| {
        let area = area();
        store(&area, b"key", &some(1));
        let segment = segment_of(&area, b"key");
        seal(&area, 0);
        // All others are being recycled, by somebody who has stopped.
        for other in (0..area.geometry.numbers.segments).filter(|other| *other != segment) {
            area.entry(other).set_state(State { kind: SegmentKind::Recycling, ..State::FREE });
        }
        assert_eq!(empty(&area, 0, segment, Cause::Sparse), Recycled::NoRoom);
        assert_eq!(get(&area, b"key"), Some(some(1)));
        // What is needed leaves.
        assert_eq!(empty(&area, 0, segment, Cause::Room), Recycled::Emptied);
        assert_eq!(get(&area, b"key"), None);
    });
}

#[test]
fn an_entry_that_was_touched_outlives_what_its_segment_was_to() {
    once(|| {
        let area = area();
        let stored = write(&area, owner(0), b"key", &some(1), WriteMode::Set, 1_000);
        assert_eq!(stored, Ok(Written::Stored));
        seal(&area, 0);
        let key = area.key(b"key", false);
        assert_eq!(Writer::new(&area, owner(0)).touch(&key, 5_000, &Now::at(1)), Ok(Some(true)));
        assert_eq!(area.entry(segment_of(&area, b"key")).expires_ms(), 5_000);
        let recycler = Recycler::lock(&area, owner(0)).expect("nobody is in the way");
        let wanted = area.geometry.numbers.segments as usize;
        let _ = recycler.make_free(wanted, 2_000);
        assert_eq!(find(&area, &key).expires_ms, 5_000);
    });
}

#[test]
fn a_long_write_ends_though_everything_is_cleared_again_and_again() {
    once(|| {
        let area = area();
        area.ground.pause_us.store(20_000, Ordering::SeqCst);
        let long = vec![7; 400];
        let is_done = std::sync::Arc::new(AtomicBool::new(false));
        let clearing = {
            let is_done = std::sync::Arc::clone(&is_done);
            super::spawn(&area, move |area| {
                while !is_done.load(Ordering::SeqCst) {
                    area.ground.add(header::EPOCH, 1);
                }
            })
        };
        let written = set(&area, 0, b"long", &long, WriteMode::Set);
        is_done.store(true, Ordering::SeqCst);
        clearing.join(&area);
        assert_eq!(written, Err(OpError::Busy(Holder::Running)));
        store(&area, b"long", &long);
        assert_eq!(get(&area, b"long"), Some(long));
    });
}

#[test]
fn a_clearing_gives_every_segment_back() {
    once(|| {
        let area = area();
        for round in 0..60 {
            store(&area, &[b'k', u8::try_from(round % 30).expect("few")], &some(round));
        }
        assert!(open_for(&area, SMALL).is_some());
        clear(&area, owner(0));
        assert_eq!((open_for(&area, SMALL), open_for(&area, MAIN)), (None, None));
        let recycler = Recycler::lock(&area, owner(0)).expect("nobody is in the way");
        let wanted = area.geometry.numbers.segments as usize;
        let mut free = 0;
        for _ in 0..wanted {
            let made = recycler.make_free(wanted, 1);
            free = made.expect("nothing is used").len();
        }
        assert_eq!(free, wanted);
    });
}

#[test]
fn a_touch_between_a_copy_and_its_slot_is_kept() {
    once(|| {
        let area = area();
        let stored = write(&area, owner(0), b"key", &some(1), WriteMode::Set, 1_000);
        assert_eq!(stored, Ok(Written::Stored));
        let segment = segment_of(&area, b"key");
        seal(&area, 0);
        between_copy_and_slot(&area, |area| {
            let key = area.key(b"key", false);
            assert_eq!(Writer::new(area, owner(1)).touch(&key, 5_000, &Now::at(1)), Ok(Some(true)));
        });
        assert_eq!(empty(&area, 0, segment, Cause::Sparse), Recycled::Emptied);
        assert_eq!(find(&area, &area.key(b"key", false)).expires_ms, 5_000);
    });
}

#[test]
fn what_is_deleted_between_a_copy_and_its_slot_stays_deleted() {
    once(|| {
        let area = area();
        store(&area, b"key", &some(1));
        let segment = segment_of(&area, b"key");
        seal(&area, 0);
        between_copy_and_slot(&area, |area| assert!(delete(area, 1, b"key")));
        assert_eq!(empty(&area, 0, segment, Cause::Sparse), Recycled::Emptied);
        assert_eq!(get(&area, b"key"), None);
        assert_eq!(Census::of(&area).live().entries, 0);
    });
}

/// Everything is cleared after a write has appended its record, and before it has the bucket.
#[test]
fn what_was_appended_before_a_clearing_is_not_published_after_it() {
    once(|| {
        let area = area();
        store(&area, b"other", &some(1));
        between_copy_and_slot(&area, |area| clear(area, owner(1)));
        store(&area, b"key", &some(2));
        // It was appended again, to a segment of the current epoch.
        assert_eq!(get(&area, b"key"), Some(some(2)));
        assert_eq!((get(&area, b"other"), Census::of(&area).live().entries), (None, 1));
    });
}

/// Waits that end, and in time; the clock of the model moves with each pause.
#[test]
fn a_lock_of_the_living_is_waited_for_and_not_for_ever() {
    once(|| {
        let area = area();
        let _held = bucket(&area, 1, b"key");
        for (owner, most) in [(owner(0), 1_100), (owner(0).hurried(), 40)] {
            let begin = area.ground.now();
            let written = write(&area, owner, b"key", &some(1), WriteMode::Set, FOREVER);
            assert_eq!(written, Err(OpError::Busy(Holder::Running)));
            let waited = area.ground.now() - begin;
            assert!(waited < Duration::from_millis(most), "{waited:?}");
        }
        assert_eq!(get(&area, b"key"), None);
    });
}

#[test]
fn all_slots_of_a_record_follow_it_or_go() {
    once(|| {
        let mut area = area();
        let value = some(1);
        let draft = draft(&area, b"key", &value);
        let appended = appender(&area, 0).append(SMALL, &draft, &Now::at(1)).expect("room");
        publish(&area, b"key", &appended);
        put_slot(&area, b"key", appended.offset);
        let segment = appended.segment;
        drop(appended);
        restart(&mut area);
        seal(&area, 0);
        assert_eq!(empty(&area, 0, segment, Cause::Sparse), Recycled::Emptied);
        assert_eq!(get(&area, b"key"), Some(some(1)));
        let leads_there = |slot: &Slot| area.segment_of(*slot) == Some(segment);
        assert!(!area.slots_of(0).iter().any(leads_there));
        assert!(delete(&area, 0, b"key"));
        assert_eq!(get(&area, b"key"), None);
    });
}

#[test]
fn a_write_leaves_one_slot_of_its_key() {
    once(|| {
        let area = area();
        store(&area, b"key", &some(1));
        let value = some(2);
        let draft = draft(&area, b"key", &value);
        publish(
            &area,
            b"key",
            &appender(&area, 0).append(MAIN, &draft, &Now::at(1)).expect("room"),
        );
        assert_eq!(area.slots_of(0).len(), 2);
        store(&area, b"key", &some(3));
        assert_eq!(area.slots_of(0).len(), 1);
        assert!(delete(&area, 0, b"key"));
        assert_eq!(get(&area, b"key"), None);
    });
}

/// A slot that a loss of power has left leads to where a record is written now.
#[test]
fn a_record_in_doubt_is_not_found_before_it_is_published() {
    once(|| {
        let mut area = area();
        restart(&mut area);
        store(&area, b"other", &some(1));
        put_slot(&area, b"key", next_offset(&area));
        let value = some(2);
        let draft = draft(&area, b"key", &value);
        let appended = appender(&area, 1).append(SMALL, &draft, &Now::at(1)).expect("room");
        assert_eq!(get(&area, b"key"), None, "it may never be published");
        publish(&area, b"key", &appended);
        assert_eq!(get(&area, b"key"), Some(some(2)));
    });
}

#[test]
fn a_slot_that_led_to_a_record_before_it_was_written_counts_for_nothing() {
    once(|| {
        let mut area = area();
        restart(&mut area);
        store(&area, b"other", &some(1));
        put_slot(&area, b"key", next_offset(&area));
        store(&area, b"key", &some(2));
        let live = Census::of(&area).live();
        assert_eq!((live.entries, area.slots_of(0).len()), (2, 2), "{live:?}");
        assert!(delete(&area, 0, b"key"));
        assert_eq!((get(&area, b"key"), Census::of(&area).live().entries), (None, 1));
    });
}

/// The same where a copy is written.
#[test]
fn what_a_slot_hides_is_not_shown_when_a_copy_is_written_where_it_leads() {
    once(|| {
        let mut area = area();
        let (key, value) = (b"key", some(1));
        // Between the two, in the order of the bucket, comes what is hidden.
        let other = draft(&area, b"other", &value).head.bytes();
        let next = area.geometry.segment_start(1) + other - area.geometry.segments;
        put_slot(&area, key, next);
        let older = draft(&area, key, &value);
        publish(&area, key, &appender(&area, 0).append(SMALL, &older, &Now::at(1)).expect("room"));
        restart(&mut area);
        seal(&area, 0);
        assert_eq!(open_for(&area, SMALL), Some(1));
        store(&area, b"other", &some(1));
        assert_eq!((next_offset(&area), get(&area, key)), (next, None), "it is hidden");
        assert_eq!(empty(&area, 0, 0, Cause::Sparse), Recycled::Emptied);
        assert_eq!(get(&area, key), None, "it came to light");
    });
}

/// A slot that leads astray may have led to the newest value: an older one behind it is not shown.
#[test]
fn what_a_slot_that_leads_astray_hides_is_not_shown() {
    once(|| {
        let mut area = area_of(Numbers { segments: 24, ..numbers() });
        let value = some(2);
        let newer = draft(&area, b"key", &value);
        publish(
            &area,
            b"key",
            &appender(&area, 0).append(SMALL, &newer, &Now::at(1)).expect("room"),
        );
        let value = some(1);
        let older = draft(&area, b"key", &value);
        publish(
            &area,
            b"key",
            &appender(&area, 0).append(MAIN, &older, &Now::at(1)).expect("room"),
        );
        let segment = segment_of(&area, b"key");
        restart(&mut area);
        assert_eq!(get(&area, b"key"), Some(some(2)));
        // The page with the newer record was not written.
        for at in (0..area.geometry.segment_bytes()).step_by(8) {
            let at = area.geometry.segment_start(segment) + at;
            area.ground.store(at, 0, std::sync::atomic::Ordering::Relaxed);
        }
        assert_eq!(get(&area, b"key"), None);
        store(&area, b"key", &some(3));
        assert!(delete(&area, 0, b"key"));
        assert_eq!(get(&area, b"key"), None);
    });
}

/// A loss of power leaves any counts: what the recycler finds in a segment, it writes down.
#[test]
fn a_wrong_count_is_corrected_by_who_finds_it_out() {
    once(|| {
        let area = area();
        store(&area, b"key", &some(1));
        let segment = segment_of(&area, b"key");
        let live = area.live_of(segment);
        for (wrong, cause) in [
            (Live::default(), Cause::Dead),
            (Live::default(), Cause::Sparse),
            (Live { entries: 1, bytes: 8 }, Cause::Sparse),
        ] {
            seal(&area, 0);
            area.correct_live(0, segment, area.live_sum(segment), wrong);
            let recycler = Recycler::lock(&area, owner(0)).expect("nobody is in the way");
            let choice = Choice { segment, cause, most_bytes: wrong.bytes };
            let recycled = recycler.recycle(choice, 0, &mut Reserve::default(), 1);
            assert_eq!(recycled, Ok(Recycled::Miscounted(live.bytes)));
            drop(recycler);
            assert_eq!((area.live_of(segment), get(&area, b"key")), (live, Some(some(1))));
        }
    });
}
