//! The remains of a loss of power, and of a clearing.

use super::{
    Model, appender, area, bucket, check, clear, draft, get, open_for, owner, publish, restart,
    set, spawn, sweep_on, value_of, write_alone,
};
use crate::file::area::Area;
use crate::file::area::now::Now;
use crate::file::format::counter::Counter;
use crate::file::format::record::Head;
use crate::file::format::segment::{MAIN, SMALL};
use crate::file::format::slot::{MAX_FREQUENCY, Slot};
use crate::file::index::chain::slots_of_line;
use crate::file::operations::census::Census;
use crate::file::operations::read::{Lookup, Search};
use crate::file::platform::ground::Ground;
use crate::write::{WriteMode, Written};

fn get_often(area: &Area<Model>, key: &[u8]) {
    for _ in 0..MAX_FREQUENCY {
        let found = Lookup::new(area, &area.key(key, false)).search(None).expect("memory");
        if let Search::Found(seen) = found {
            seen.note_use(&area.ground);
        }
    }
}

fn some(round: u16) -> Vec<u8> {
    value_of(0, 0, round)
}

/// Two slots of a key, as a loss of power leaves them: readers get to the first.
fn two_slots(area: &Area<Model>, values: [&[u8]; 2]) {
    for (queue, value) in [SMALL, MAIN].into_iter().zip(values) {
        let draft = draft(area, b"key", value);
        let appended = appender(area, 0).append(queue, &draft, &Now::at(1)).expect("room");
        publish(area, b"key", &appended);
    }
}

#[test]
fn what_was_hidden_does_not_come_back_when_its_segment_cannot_be_walked() {
    shuttle::check_random(
        || {
            let mut area = area();
            let _ = set(&area, 0, b"before", &some(0), WriteMode::Set).expect("room");
            two_slots(&area, [&some(2), &some(1)]);
            let segment = open_for(&area, SMALL).expect("it was appended to");
            restart(&mut area);
            // The first record of the segment is torn.
            let start = area.geometry.segment_start(segment);
            area.ground.store(start, u64::MAX, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(get(&area, b"key"), Some(some(2)));
            while !area.is_swept() {
                sweep_on(&area, owner(0));
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
            let mut area = area();
            two_slots(&area, [&some(2), &some(1)]);
            restart(&mut area);
            assert_eq!(get(&area, b"key"), Some(some(2)));
            let mut others = 0_u8..;
            while area.owner_slot(0).counted().of(Counter::Crowded) == 0 {
                let key = [others.next().expect("a bucket has fewer slots")];
                let _ = set(&area, 0, &key, &some(0), WriteMode::Set).expect("room");
                // All are warmer than the first.
                get_often(&area, &key);
            }
            assert_eq!(get(&area, b"key"), None);
        },
        1,
    );
}

/// A record that looks like one of another key, within a value: where it is, and the value.
fn false_record(area: &Area<Model>, key: &[u8; 3]) -> Vec<u8> {
    let head = Head::new(1, 3, 8, false, false);
    let (first, second) = head.encode(head.checksum(area.key(key, false).hash, b"no value"));
    let words = [first.to_le_bytes(), second.to_le_bytes()];
    [&words.concat()[..], key, &[0; 5], b"no value"].concat()
}

#[test]
fn a_slot_that_leads_into_a_value_is_not_believed_while_the_index_is_swept() {
    check(
        || {
            let mut area = area();
            restart(&mut area);
            let value = false_record(&area, b"key");
            let _ = set(&area, 0, b"real", &value, WriteMode::Set).expect("room");
            let name = area.key(b"real", false);
            let Search::Found(seen) = Lookup::new(&area, &name).search(None).expect("memory")
            else {
                panic!("it was set");
            };
            let record = area.record(seen.slot, seen.segment).expect("it is there");
            let offset = record.at + record.head.value_at() - area.geometry.segments;
            {
                let mut bucket = bucket(&area, 0, b"key");
                let at = bucket.vacancy().expect("a slot");
                bucket.put(at, Slot::new(area.key(b"key", false).hash, 0, offset));
            }
            let sweeper = spawn(&area, |area| {
                while !area.is_swept() {
                    sweep_on(area, owner(1));
                }
            });
            let reader = spawn(&area, |area| {
                for _ in 0..6 {
                    assert_eq!(get(area, b"key"), None);
                }
            });
            sweeper.join(&area);
            reader.join(&area);
            assert_eq!(get(&area, b"real"), Some(value));
        },
        300,
    );
}

/// The first writes after a restart look at no more than others, however large the index is.
#[test]
fn no_write_waits_for_the_index_to_be_swept() {
    shuttle::check_random(
        || {
            let numbers = super::Numbers { buckets: 10_000, segments: 40, ..super::numbers() };
            let mut area = super::area_of(numbers);
            let mut most = 0;
            for is_restarted in [false, true] {
                if is_restarted {
                    restart(&mut area);
                }
                for round in 0..300 {
                    let before = area.ground.memory.accesses();
                    let key = [b'k', u8::try_from(round % 100).expect("few")];
                    let (value, mode) = (some(round), WriteMode::Set);
                    let written = write_alone(&area, owner(0), &key, &value, mode, super::FOREVER);
                    assert_eq!(written, Ok(Written::Stored));
                    let accesses = area.ground.memory.accesses() - before;
                    if is_restarted {
                        assert!(accesses < most + 1_000, "{accesses} of {most} in {round}");
                    } else {
                        most = most.max(accesses);
                    }
                }
            }
            assert!(most < 10_000, "less than the buckets: {most}");
        },
        1,
    );
}

/// Writes while another thread clears. What was there before is found by nobody, and counts for nobody.
fn write_while_clearing(mode: WriteMode) {
    check(
        move || {
            let area = area();
            let _ = set(&area, 0, b"key", &some(1), WriteMode::Set).expect("room");
            let clearing = spawn(&area, |area| clear(area, owner(1)));
            let writing = spawn(&area, move |area| set(area, 2, b"key", &some(2), mode));
            clearing.join(&area);
            let written = writing.join(&area).expect("room");
            let found = get(&area, b"key");
            assert!(found.is_none() || found == Some(some(2)), "{found:?} came back");
            assert_eq!(Census::of(&area).live().entries, u64::from(found.is_some()));
            match mode {
                // It came before the clearing, and is gone; or after it, and found nothing.
                WriteMode::Cas(_) => assert_eq!(found, None, "{written:?}"),
                // It found nothing only after the clearing.
                WriteMode::Add => assert_eq!(found.is_some(), written == Written::Stored),
                _ => assert_eq!(written, Written::Stored),
            }
        },
        400,
    );
}

/// A slot that a clearing left is before the one of its key, which is replaced.
#[test]
fn what_is_there_all_the_time_is_found_behind_what_was_cleared() {
    check(
        || {
            let area = area();
            let _ = set(&area, 0, b"key", &some(1), WriteMode::Set).expect("room");
            clear(&area, owner(0));
            let value = some(2);
            let draft = draft(&area, b"key", &value);
            let appended = appender(&area, 0).append(SMALL, &draft, &Now::at(1)).expect("room");
            {
                let mut bucket = bucket(&area, 0, b"key");
                let behind = bucket.lines().flat_map(slots_of_line).nth(1).expect("a slot");
                area.add_live(0, appended.segment, appended.head.bytes());
                bucket.put(behind, appended.publishable(draft.key.hash, 0));
            }
            drop(appended);
            let writing = spawn(&area, |area| set(area, 1, b"key", &some(3), WriteMode::Set));
            assert!(get(&area, b"key").is_some(), "it was there all the time");
            assert_eq!(writing.join(&area), Ok(Written::Stored));
            assert_eq!(get(&area, b"key"), Some(some(3)));
            assert_eq!((Census::of(&area).live().entries, area.slots_of(0).len()), (1, 1));
        },
        500,
    );
}

#[test]
fn what_was_there_before_a_clearing_does_not_come_back() {
    write_while_clearing(WriteMode::Set);
    write_while_clearing(WriteMode::Add);
    // Versions are counted from 1: the entry's is known.
    write_while_clearing(WriteMode::Cas(crate::Version::from_raw(1)));
}
