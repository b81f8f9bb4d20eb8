//! Several who write one key.

use super::{
    Model, area, area_of, check, delete, die, eight_keys_of, get, numbers, owner, parts_of, set,
    spawn, value_of, write,
};
use crate::file::area::Area;
use crate::file::area::now::Now;
use crate::file::format::layout::Numbers;
use crate::file::operations::census::Census;
use crate::file::operations::read::Lookup;
use crate::file::operations::write::Writer;
use crate::write::{WriteMode, Written};

const KEY: u8 = 0;

fn set_key(area: &Area<Model>, slot: u8, mode: WriteMode) -> Written {
    let value = value_of(KEY, slot, 0);
    set(area, slot.into(), b"key", &value, mode).expect("room")
}

fn assert_whole(area: &Area<Model>) {
    let _ = parts_of(KEY, &get(area, b"key").expect("somebody stored it"));
}

#[test]
fn of_many_who_add_one_does() {
    check(
        || {
            let area = area();
            let adders =
                [0, 1, 2].map(|slot| spawn(&area, move |area| set_key(area, slot, WriteMode::Add)));
            let written = adders.map(|adder| adder.join(&area));
            assert_eq!(written.iter().filter(|written| **written == Written::Stored).count(), 1);
            assert_whole(&area);
            assert_eq!(Census::of(&area).live().entries, 1);
        },
        500,
    );
}

#[test]
fn a_key_that_is_deleted_last_is_gone_whatever_was_written_before() {
    check(
        || {
            let area = area();
            let others =
                [0, 1].map(|slot| spawn(&area, move |area| set_key(area, slot, WriteMode::Set)));
            for other in others {
                assert_eq!(other.join(&area), Written::Stored);
            }
            assert!(delete(&area, 2, b"key"));
            assert_eq!(get(&area, b"key"), None);
            assert_eq!(Census::of(&area).live().entries, 0);
        },
        500,
    );
}

#[test]
fn entries_are_counted_again_while_others_write() {
    check(
        || {
            let area = area();
            assert_eq!(set_key(&area, 0, WriteMode::Set), Written::Stored);
            area.invalidate_counts();
            let writer = spawn(&area, |area| set_key(area, 1, WriteMode::Set));
            Census::of(&area).recount_after_deaths(owner(0));
            assert_eq!(writer.join(&area), Written::Stored);
            assert_eq!(Census::of(&area).live().entries, 1);
        },
        2_000,
    );
}

#[test]
fn what_a_dead_owner_holds_is_taken_by_one() {
    check(
        || {
            let area = area();
            assert_eq!(set_key(&area, 0, WriteMode::Set), Written::Stored);
            std::mem::forget(super::bucket(&area, 3, b"key"));
            die(&area, 3);
            let others =
                [0, 1, 2].map(|slot| spawn(&area, move |area| set_key(area, slot, WriteMode::Set)));
            // A read waits for nobody.
            assert_whole(&area);
            for other in others {
                assert_eq!(other.join(&area), Written::Stored);
            }
            assert_whole(&area);
            assert_eq!(Census::of(&area).live().entries, 1);
        },
        300,
    );
}

/// Two buckets go on in lines that each gives back as soon as it can.
#[test]
fn buckets_that_take_and_give_back_the_same_lines_keep_their_entries() {
    check(
        || {
            let area = area_of(Numbers { buckets: 2, overflows: 1, segments: 24, ..numbers() });
            let writers = [0, 1_u8].map(|slot| {
                let keys = eight_keys_of(&area, slot.into());
                spawn(&area, move |area| {
                    for round in 0..3 {
                        for key in &keys {
                            let value = value_of(*key, slot, round);
                            let added = set(area, slot.into(), &[*key], &value, WriteMode::Set);
                            assert_eq!(added, Ok(Written::Stored));
                        }
                        // The eighth may have taken the room of another.
                        let there = |key: &u8| {
                            let value = get(area, &[*key])?;
                            assert_eq!(parts_of(*key, &value), (slot, round));
                            Some(())
                        };
                        assert!(keys.iter().filter_map(there).count() >= 7);
                        for key in &keys {
                            let _ = delete(area, slot.into(), &[*key]);
                        }
                    }
                })
            });
            for writer in writers {
                writer.join(&area);
            }
            assert_eq!(Census::of(&area).live().entries, 0);
        },
        60,
    );
}

/// An entry that is touched while its segment is recycled keeps what it was given last.
#[test]
fn a_touch_is_not_undone_by_moving() {
    check(
        || {
            let area = area();
            let stored =
                write(&area, owner(0), b"key", &value_of(KEY, 0, 0), WriteMode::Set, 1_000);
            assert_eq!(stored, Ok(Written::Stored));
            let toucher = spawn(&area, |area| {
                let key = area.key(b"key", false);
                assert_eq!(
                    Writer::new(area, owner(1)).touch(&key, 5_000, &Now::at(1)),
                    Ok(Some(true))
                );
            });
            for round in 0..40 {
                let value = value_of(1, 0, round);
                assert_eq!(set(&area, 0, b"other", &value, WriteMode::Set), Ok(Written::Stored));
            }
            toucher.join(&area);
            let found = Lookup::new(&area, &area.key(b"key", false)).search(None).expect("memory");
            let super::Search::Found(seen) = found else {
                panic!("it fits");
            };
            assert_eq!(seen.expires_ms, 5_000);
        },
        100,
    );
}
