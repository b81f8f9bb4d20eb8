//! Reading, while others write and recycle.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Model, area_of, check, delete, get, numbers, parts_of, set, spawn, value_of};
use crate::file::area::{Area, OpError};
use crate::file::format::layout::Numbers;
use crate::file::operations::read::{Lookup, Search};
use crate::write::{WriteMode, Written};

const KEYS: u8 = 3;

/// Few segments, so that each is soon filled again: three more than are kept free.
fn few_segments() -> Numbers {
    Numbers { segments: 5, ..numbers() }
}

fn write_often(area: &Area<Model>, writer: u8, writes: u16) {
    for round in 1..=writes {
        let key = u8::try_from(round % u16::from(KEYS)).expect("few");
        let value = value_of(key, writer, round);
        let written = set(area, writer.into(), &[b'k', key], &value, WriteMode::Set);
        assert!(matches!(written, Ok(Written::Stored) | Err(OpError::Busy(_))), "{written:?}");
    }
}

/// Reads, and checks that what is read is whole, and that no writer's values go back.
fn read_often(area: &Area<Model>, reads: u16) {
    let mut last = HashMap::new();
    for read in 0..reads {
        let key = u8::try_from(read % u16::from(KEYS)).expect("few");
        if let Some(value) = get(area, &[b'k', key]) {
            let (writer, round) = parts_of(key, &value);
            let before = last.insert((key, writer), round);
            assert!(before.is_none_or(|before| before <= round), "{before:?} came after {round}");
        }
    }
}

#[test]
fn a_reader_sees_whole_values_and_none_that_it_has_seen_replaced() {
    check(
        || {
            let area = area_of(few_segments());
            let writer = spawn(&area, |area| write_often(area, 0, 200));
            let reader = spawn(&area, |area| read_often(area, 200));
            writer.join(&area);
            reader.join(&area);
            read_often(&area, 3);
        },
        30,
    );
}

#[test]
fn a_reader_sees_whole_values_of_two_writers() {
    check(
        || {
            let area = area_of(few_segments());
            let writers =
                [0, 1].map(|writer| spawn(&area, move |area| write_often(area, writer, 40)));
            read_often(&area, 60);
            for writer in writers {
                writer.join(&area);
            }
            read_often(&area, 3);
        },
        60,
    );
}

/// Reads an entry in place, twice.
fn read_in_place(area: &Area<Model>, key: u8) -> bool {
    let name = [b'k', key];
    let name = area.key(&name, false);
    let Search::Found(seen) = Lookup::new(area, &name).search(None).expect("memory") else {
        return false;
    };
    let Some(held) = Lookup::new(area, &name).hold(&seen, 3).expect("memory") else {
        return false;
    };
    let read = || {
        let mut value = Vec::new();
        area.copy_value(&held.record, &mut value).expect("memory");
        parts_of(key, &value)
    };
    assert_eq!(read(), read(), "it changed while it was pinned");
    true
}

#[test]
fn a_value_that_is_pinned_stays_what_it_is() {
    check(
        || {
            let area = area_of(few_segments());
            let writer = spawn(&area, |area| write_often(area, 0, 100));
            let reader = spawn(&area, |area| {
                (0..40).filter(|read| read_in_place(area, read % KEYS)).count()
            });
            writer.join(&area);
            reader.join(&area);
            assert!(read_in_place(&area, 0), "nobody is in the way");
        },
        60,
    );
}

/// Keys of one bucket, so many that its slots go on in other lines, come and go.
#[test]
fn what_is_there_all_the_time_is_found_while_lines_come_and_go() {
    const STAYING: std::ops::Range<u8> = 0..3;
    const COMING: std::ops::Range<u8> = 3..18;
    check(
        || {
            let area = area_of(Numbers { segments: 24, overflows: 3, ..numbers() });
            for key in STAYING {
                let _ = set(&area, 0, &[b'k', key], &value_of(key, 0, 0), WriteMode::Set);
            }
            let writer = spawn(&area, |area| {
                for round in 1..3 {
                    for key in COMING {
                        let value = value_of(key, 0, round);
                        let _ = set(area, 0, &[b'k', key], &value, WriteMode::Set).expect("room");
                    }
                    for key in COMING {
                        assert!(delete(area, 0, &[b'k', key]), "{key}");
                    }
                }
            });
            for read in 0..40_u8 {
                let staying = read % STAYING.end;
                let found = get(&area, &[b'k', staying]);
                assert!(found.is_some_and(|value| parts_of(staying, &value) == (0, 0)));
                let coming = COMING.start + read % (COMING.end - COMING.start);
                if let Some(value) = get(&area, &[b'k', coming]) {
                    let _ = parts_of(coming, &value);
                }
            }
            writer.join(&area);
        },
        40,
    );
}

/// Two threads see each other's entries wherever those are.
#[test]
fn what_was_written_before_is_seen_by_who_hears_of_it() {
    check(
        || {
            let area = area_of(Numbers { segments: 24, overflows: 3, ..numbers() });
            let news = Arc::new(shuttle::sync::Mutex::new((0, area.ground.memory.view())));
            let writer = {
                let news = Arc::clone(&news);
                spawn(&area, move |area| {
                    for key in 0..16 {
                        let value = value_of(key, 0, 1);
                        let _ = set(area, 0, &[b'k', key], &value, WriteMode::Set).expect("room");
                        *news.lock().expect("no panic") = (key + 1, area.ground.memory.view());
                    }
                })
            };
            for _ in 0..20 {
                let (keys, view) = news.lock().expect("no panic").clone();
                area.ground.memory.see(&view);
                for key in 0..keys {
                    assert!(get(&area, &[b'k', key]).is_some(), "{key} of {keys}");
                }
            }
            writer.join(&area);
        },
        40,
    );
}
