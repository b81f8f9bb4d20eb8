//! Lanes, and segments that are taken without the recycler's lock.

use super::{
    Model, appender, area, area_of, check, die, draft, get, numbers, owner, publish, segment_of,
    set, spawn,
};
use crate::file::area::Area;
use crate::file::area::now::Now;
use crate::file::format::layout::Numbers;
use crate::file::format::segment::{SMALL, SegmentKind, State};
use crate::file::log::hazards::Hazards;
use crate::file::log::lane::Lanes;
use crate::file::log::ready::Ready;
use crate::file::log::recycler::Recycler;
use crate::file::operations::census::Census;
use crate::write::{WriteMode, Written};

const ITERATIONS: usize = 1_000;

fn store(area: &Area<Model>, slot: u32, key: &[u8], value: &[u8]) {
    assert_eq!(set(area, slot, key, value, WriteMode::Set), Ok(Written::Stored));
}

/// Of each key.
fn value_of(number: u8) -> [u8; 60] {
    [number; 60]
}

fn with_lanes(lanes: u32) -> Numbers {
    Numbers { lanes, ..numbers() }
}

#[test]
fn what_is_ready_is_taken_by_one() {
    check(
        || {
            let area = area();
            Ready::of(&area).give_back(5);
            let takers = [1, 2]
                .map(|slot| spawn(&area, move |area| appender(area, slot).take_ready(5).is_some()));
            let taken = takers.map(|taker| taker.join(&area));
            assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
        },
        ITERATIONS,
    );
}

/// A segment that its owner has just taken looks like one that a dead owner left, until its hazard is
/// seen. Only a few steps run, so that most schedules of the model checker come to that.
#[test]
fn what_was_just_taken_is_not_freed_as_abandoned() {
    check(
        || {
            let area = area();
            Ready::of(&area).give_back(5);
            let taker = spawn(&area, |area| appender(area, 1).take_ready(5).is_some());
            let recycler = spawn(&area, |area| {
                let recycler = Recycler::lock(area, owner(0)).expect("nobody is in the way");
                let free = recycler.make_free(1, 1).expect("others are free");
                assert!(!free.contains(&5), "its owner is alive");
            });
            assert!(taker.join(&area), "nobody else takes what is ready");
            recycler.join(&area);
            assert_eq!(area.entry(5).state().kind, SegmentKind::Taken);
        },
        ITERATIONS,
    );
}

/// Writers open what is ready while another process empties whatever it may.
#[test]
fn what_is_opened_without_the_recycler_is_not_emptied_by_it() {
    check(
        || {
            let area = area_of(with_lanes(4));
            for segment in [3, 6, 9] {
                Ready::of(&area).give_back(segment);
            }
            let writers = [1, 2].map(|slot| {
                spawn(&area, move |area| {
                    for number in 0..4 {
                        let key = [b'a' + number, slot];
                        store(area, slot.into(), &key, &value_of(number));
                    }
                })
            });
            let recycler = spawn(&area, |area| {
                for _ in 0..2 {
                    let recycler = Recycler::lock(area, owner(0)).expect("nobody is in the way");
                    let _ = recycler.make_free(12, 1);
                }
            });
            for writer in writers {
                writer.join(&area);
            }
            recycler.join(&area);
            for (slot, number) in [1, 2].into_iter().flat_map(|it| (0..4).map(move |n| (it, n))) {
                let key = [b'a' + number, slot];
                assert_eq!(get(&area, &key), Some(value_of(number).to_vec()), "it fits half");
            }
            assert_eq!(Census::of(&area).live().entries, 8);
        },
        ITERATIONS,
    );
}

/// A segment that was filled before, and that is ready to be opened by whoever takes it.
fn ready_again(area: &Area<Model>) -> u32 {
    super::begin(area, 0, 7);
    assert_eq!(super::empty(area, 0, 7, super::Cause::Room), super::Recycled::Emptied);
    Ready::of(area).give_back(7);
    7
}

/// Opens what is ready with a record as its first, and publishes that.
fn open_ready(area: &Area<Model>, slot: u32, key: &[u8], value: &[u8]) {
    let draft = draft(area, key, value);
    let appended = appender(area, slot).append_to_ready(SMALL, &draft, 1).expect("free");
    publish(area, key, &appended.expect("one is ready"));
}

/// From its hazard a segment comes to its lane's name. Only a few steps run, as above.
#[test]
fn what_was_opened_is_held_until_its_lane_has_another() {
    check(
        || {
            let area = area_of(with_lanes(4));
            let segment = ready_again(&area);
            let writer = spawn(&area, |area| open_ready(area, 1, b"new", &value_of(2)));
            let looking = spawn(&area, move |area| {
                for _ in 0..4 {
                    let state = State::decode(area.entry(segment).state_word());
                    let is_open = state.kind == SegmentKind::Open;
                    assert!(!is_open || Hazards::of(area).or_lanes_name(segment), "it is in use");
                }
            });
            writer.join(&area);
            looking.join(&area);
        },
        ITERATIONS,
    );
}

/// Whoever sees that it is open sees its opener as well.
#[test]
fn what_is_being_opened_is_no_orphan() {
    check(
        || {
            let area = area_of(with_lanes(4));
            let segment = ready_again(&area);
            let writer = spawn(&area, |area| open_ready(area, 1, b"new", &value_of(2)));
            let recycler = spawn(&area, move |area| {
                let recycler = Recycler::lock(area, owner(0)).expect("nobody is in the way");
                for _ in 0..4 {
                    assert!(!recycler.is_orphan(SMALL, segment, 64), "its owner is alive");
                }
            });
            writer.join(&area);
            recycler.join(&area);
        },
        ITERATIONS,
    );
}

/// The reserve of a process that died looks like what another process is about to open.
#[test]
fn what_is_about_to_be_opened_is_not_taken_for_a_reserve() {
    check(
        || {
            let area = area_of(with_lanes(4));
            store(&area, 0, b"kept", &value_of(1));
            let segment = segment_of(&area, b"kept");
            // The copy of the kept record then needs another segment.
            Recycler::lock(&area, owner(0)).expect("nobody is in the way").seal_all_lanes();
            ready_again(&area);
            let writer = spawn(&area, |area| open_ready(area, 1, b"new", &value_of(2)));
            let recycler = spawn(&area, move |area| {
                let _ = super::empty(area, 0, segment, super::Cause::Sparse);
            });
            writer.join(&area);
            recycler.join(&area);
            for (key, number) in [(&b"kept"[..], 1), (b"new", 2)] {
                assert_eq!(get(&area, key), Some(value_of(number).to_vec()));
            }
        },
        ITERATIONS,
    );
}

#[test]
fn a_dead_owner_s_lane_is_used_by_the_next() {
    check(
        || {
            let area = area_of(with_lanes(4));
            store(&area, 1, b"one", &value_of(1));
            die(&area, 1);
            store(&area, 2, b"two", &value_of(2));
            assert_eq!(segment_of(&area, b"one"), segment_of(&area, b"two"));
            store(&area, 3, b"three", &value_of(3));
            assert_ne!(segment_of(&area, b"two"), segment_of(&area, b"three"), "its user lives");
        },
        1,
    );
}

/// Releases what nobody appends to while many segments are opened.
fn release(area: &Area<Model>) {
    for _ in 0..24 {
        let recycler = Recycler::lock(area, owner(0)).expect("nobody is in the way");
        recycler.release_idle_lanes();
        let _ = area.next_sequence();
    }
}

/// An owner that appends while its lane is found idle goes on in another one.
#[test]
fn an_idle_lane_is_given_back_while_its_owner_appends() {
    check(
        || {
            let area = area_of(with_lanes(4));
            store(&area, 1, b"idle", &value_of(1));
            store(&area, 2, b"busy", &value_of(2));
            let recycler = spawn(&area, release);
            let writer = spawn(&area, |area| store(area, 1, b"again", &value_of(3)));
            recycler.join(&area);
            writer.join(&area);
            for (key, number) in [(&b"idle"[..], 1), (b"busy", 2), (b"again", 3)] {
                assert_eq!(get(&area, key), Some(value_of(number).to_vec()));
            }
            release(&area);
            assert_eq!(
                Lanes::of(&area).open_segments().count(),
                1,
                "the last lane of a queue stays"
            );
        },
        ITERATIONS / 2,
    );
}

#[test]
fn what_is_in_reserve_is_not_made_ready() {
    check(
        || {
            let area = area_of(Numbers { segments: 128, lanes: 8, ..numbers() });
            store(&area, 1, b"one", &value_of(1));
            store(&area, 2, b"two", &value_of(2));
            let recycler = Recycler::lock(&area, owner(0)).expect("nobody is in the way");
            recycler.revoke_ready();
            recycler.offer(&[100, 101, 102]);
            assert_eq!(
                Ready::of(&area).segments().map(|(_, segment)| segment).collect::<Vec<_>>(),
                [102]
            );
        },
        1,
    );
}

/// Writers that take what is ready leave it to others, and to later, to make room.
#[test]
fn an_append_that_takes_what_is_ready_opens_one_segment_and_empties_none() {
    check(
        || {
            let area = area_of(Numbers { segments: 128, lanes: 8, overflows: 40, ..numbers() });
            let generations = || -> u64 { (0..128).map(|it| area.entry(it).generation()).sum() };
            let mut number = 0_u32;
            let mut taken = 0;
            while taken < 20 {
                for slot in [1, 2] {
                    let has_ready = Ready::of(&area).segments().next().is_some();
                    number += 1;
                    let (key, value) = (number.to_le_bytes(), value_of(1));
                    let draft = draft(&area, &key, &value);
                    let before = generations();
                    let appended =
                        appender(&area, slot).append(SMALL, &draft, &Now::at(1)).expect("room");
                    let opened = generations() - before;
                    publish(&area, &key, &appended);
                    drop(appended);
                    if has_ready && opened > 0 {
                        assert_eq!(opened, 1, "it is opened, and nothing else is");
                        taken += 1;
                    }
                    appender(&area, slot).keep_up(1);
                }
            }
        },
        1,
    );
}
