//! Owners that come and go, and what they claim.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shuttle::sync::atomic::AtomicU64;

use super::{FOREVER, area, bucket, check, get, owner, parts_of, set, spawn, value_of, write};
use crate::file::format::header;
use crate::file::format::owner_slot::{INCARNATION, SLOT_STAMP};
use crate::file::operations::census::Census;
use crate::file::operations::claims::{ClaimKey, Claimed};
use crate::file::platform::ground::Ground;
use crate::file::platform::halted::ProcessId;
use crate::write::{WriteMode, Written};

#[test]
fn a_lock_of_who_has_just_come_is_not_taken_over() {
    check(
        || {
            let area = area();
            let writers = [0, 1].map(|slot| {
                spawn(&area, move |area| {
                    // As the kernel's lock, which nobody else has.
                    let process = ProcessId { number: slot, namespace: 0 };
                    let owner =
                        area.owner_slot(u32::try_from(slot).expect("few")).settle(process, 1);
                    for round in 0..3 {
                        let value = value_of(0, u8::try_from(slot).expect("few"), round);
                        let written = write(area, owner, b"key", &value, WriteMode::Set, FOREVER);
                        assert_eq!(written, Ok(Written::Stored));
                    }
                })
            });
            for writer in writers {
                writer.join(&area);
            }
            let _ = parts_of(0, &get(&area, b"key").expect("it was written"));
            assert_eq!(area.ground.load(header::DEATHS, Ordering::Relaxed), 0);
            assert_eq!(Census::of(&area).live().entries, 1);
        },
        500,
    );
}

/// The next holder of a lock sees everything that was done under it.
#[test]
fn one_at_a_time_has_a_lock() {
    check(
        || {
            let area = area();
            let at = area.geometry.claim(0) + 8;
            let counters = [0, 1, 2].map(|slot| {
                spawn(&area, move |area| {
                    for _ in 0..3 {
                        let _bucket = bucket(area, slot, b"key");
                        let before = area.ground.load(at, Ordering::Relaxed);
                        area.ground.store(at, before + 1, Ordering::Relaxed);
                    }
                })
            });
            for counter in counters {
                counter.join(&area);
            }
            assert_eq!(area.ground.load(at, Ordering::Relaxed), 9);
        },
        300,
    );
}

#[test]
fn one_process_computes_and_the_others_find_its_value() {
    check(
        || {
            let area = area();
            let computed = Arc::new(AtomicU64::new(0));
            let callers = [0, 1, 2_u8].map(|slot| {
                let computed = Arc::clone(&computed);
                spawn(&area, move |area| {
                    let hash = area.key(b"key", false).hash;
                    while get(area, b"key").is_none() {
                        match ClaimKey::new(area, hash)
                            .claim(owner(slot.into()), None)
                            .expect("free")
                        {
                            Claimed::Held(_claim) => {
                                if get(area, b"key").is_some() {
                                    return;
                                }
                                computed.fetch_add(1, Ordering::SeqCst);
                                let value = value_of(0, slot, 0);
                                let set = set(area, slot.into(), b"key", &value, WriteMode::Set);
                                assert_eq!(set, Ok(Written::Stored));
                            }
                            Claimed::Taken(owner) => {
                                while ClaimKey::new(area, hash).is_held_by(owner) {
                                    area.ground.pause(0);
                                }
                            }
                            Claimed::NoRoom => panic!("there is one key"),
                        }
                    }
                })
            });
            for caller in callers {
                caller.join(&area);
            }
            assert_eq!(computed.load(Ordering::SeqCst), 1);
        },
        300,
    );
}

/// Wherever a new owner ends, the next one jumps over the tokens that a loss of power may have left.
#[test]
fn an_owner_that_ends_before_it_has_its_slot_loses_no_jump() {
    let incarnation = |area: &super::Area<super::Model>| {
        area.ground.load(area.geometry.owner_slot(3) + INCARNATION, Ordering::Relaxed)
    };
    shuttle::check_random(
        move || {
            let process = ProcessId { number: 7, namespace: 0 };
            for stores in 0..10 {
                let mut area = area();
                let before = incarnation(&area);
                super::restart(&mut area);
                // The owner slot has not been taken since.
                let stamp = area.geometry.owner_slot(3) + SLOT_STAMP;
                area.ground.store(stamp, area.stamp - 1, Ordering::Relaxed);
                area.ground.stores_left.store(stores, Ordering::SeqCst);
                let _ = area.owner_slot(3).settle(process, 1);
                area.ground.stores_left.store(u64::MAX, Ordering::SeqCst);
                let _ = area.owner_slot(3).settle(process, 1);
                let jump = 1 + (area.stamp & 0xF_FFFF);
                assert!(incarnation(&area) >= before + jump, "after {stores} stores");
            }
        },
        1,
    );
}
