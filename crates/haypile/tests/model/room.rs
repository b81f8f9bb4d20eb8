//! Entries that fit stay, whatever happens while room is made.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shuttle::sync::atomic::AtomicU64;

use super::{
    Model, Others, appender, area, begin, draft, get, parts_of, publish, set, spawn, value_of,
};
use crate::file::area::Area;
use crate::file::format::header;
use crate::file::format::segment::{MAIN, SMALL};
use crate::file::format::slot::{LockWord, Token};
use crate::file::operations::census::Census;
use crate::file::platform::ground::Ground;
use crate::write::{WriteMode, Written};

/// Sets one of the keys that have a rank.
fn store(area: &Area<Model>, rank: u8, round: u8) {
    let value = value_of(rank, 0, round.into());
    let written = set(area, 0, &[b'k', rank], &value, WriteMode::Set);
    assert_eq!(written, Ok(Written::Stored), "{rank} in {round}");
}

fn assert_there(area: &Area<Model>, ranks: RangeInclusive<u8>, round: u8) {
    for rank in ranks {
        assert!(get(area, &[b'k', rank]).is_some(), "{rank} in {round}");
    }
}

/// Each writer has keys of its own, which it overwrites and reads.
#[test]
fn what_was_written_stays_while_others_write() {
    super::check(
        || {
            let area = area();
            let write = |area: &Area<Model>, writer: u8| {
                for round in 1..40_u16 {
                    let key = writer * 8 + u8::try_from(round % 2).expect("few");
                    let value = value_of(key, writer, round);
                    let written = set(area, writer.into(), &[b'k', key], &value, WriteMode::Set);
                    assert_eq!(written, Ok(Written::Stored), "{key} in {round}");
                    let found = get(area, &[b'k', key]).map(|value| parts_of(key, &value));
                    assert_eq!(found, Some((writer, round)), "{key}");
                }
            };
            let others = [1, 2].map(|writer| spawn(&area, move |area| write(area, writer)));
            write(&area, 0);
            for other in others {
                other.join(&area);
            }
            for writer in 0..3 {
                assert_there(&area, writer * 8..=writer * 8 + 1, 40);
            }
            assert_eq!(Census::of(&area).live().entries, 6);
        },
        60,
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
                    let value = value_of(0, 1, 0);
                    let draft = draft(&area, b"other", &value);
                    for queue in [MAIN, SMALL] {
                        while appender(&area, 1)
                            .append_to_open(queue, &draft)
                            .expect("free")
                            .is_some()
                        {}
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
                begin(&area, 1, free);
                let key = [b'd', dead.next().expect("there are few segments")];
                let value = value_of(0, 1, 0);
                let draft = draft(&area, &key, &value);
                let appended = appender(&area, 1).extend((free, area.entry(free).used()), &draft);
                appended.fill(&draft);
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
