//! Leases: no value is stored that was computed before a removal of its key.

use super::*;
use crate::file::index::removals::Removals;
use crate::file::operations::leases::LeasedKey;
use crate::removals::Since;

/// A word that stands for a data base: processes read and change it by plain loads and stores.
const DATA_BASE: u64 = header::ATTACHER;
pub(super) const OLD: u64 = 0;
const NEW: u64 = 1;

pub(super) fn ask(area: &Area<Model>) -> u64 {
    area.ground.load(DATA_BASE, Ordering::Relaxed)
}

pub(super) fn change(area: &Area<Model>) {
    area.ground.store(DATA_BASE, NEW, Ordering::Relaxed);
}

/// Takes a lease, asks the data base and stores its answer.
fn compute(area: &Area<Model>, slot: u32, key: &[u8]) -> Written {
    let leased = LeasedKey { area, key: area.key(key, false), namespace: None, groups: None };
    let lease = leased.grant().expect("it does not change all the time");
    let answer = ask(area);
    let written = set(area, slot, key, &answer.to_le_bytes(), WriteMode::Leased(lease));
    written.expect("nobody is in the way for long")
}

fn is_old(area: &Area<Model>, key: &[u8]) -> bool {
    get(area, key).is_some_and(|value| value == OLD.to_le_bytes())
}

/// Computers on two owner slots, and one that changes the data base and then removes the key by `remove`.
fn race(remove: fn(&Area<Model>), others: fn(&Area<Model>)) {
    check(
        move || {
            let area = area();
            // One each: a second one would replace what the first has wrongly stored.
            let computers = [0, 1].map(|slot| {
                spawn(&area, move |area| {
                    let _ = compute(area, slot, b"key");
                })
            });
            let other = spawn(&area, others);
            let remover = spawn(&area, move |area| {
                change(area);
                remove(area);
                assert!(!is_old(area, b"key"), "after the removal");
            });
            remover.join(&area);
            assert!(!is_old(&area, b"key"), "later");
            for computer in computers {
                computer.join(&area);
            }
            other.join(&area);
            assert!(!is_old(&area, b"key"), "at the end");
        },
        1_500,
    );
}

#[test]
fn a_deletion_is_not_undone() {
    race(|area| _ = delete(area, 2, b"key"), |_| {});
}

#[test]
fn a_clearing_is_not_undone() {
    race(|area| clear(area, owner(2)), |_| {});
}

#[test]
fn a_newer_value_is_not_replaced_after_it_was_deleted() {
    race(
        |area| {
            let written = set(area, 2, b"key", &NEW.to_le_bytes(), WriteMode::Set);
            assert_eq!(written, Ok(Written::Stored));
            delete(area, 2, b"key");
        },
        |_| {},
    );
}

/// Sets a newer value, and recycles the segment that it is in, unless others use that.
fn set_and_recycle(area: &Area<Model>) {
    let written = set(area, 2, b"key", &NEW.to_le_bytes(), WriteMode::Set);
    assert_eq!(written, Ok(Written::Stored));
    let key = area.key(b"key", false);
    let Ok(Search::Found(seen)) = Lookup::new(area, &key).search(None) else { return };
    let recycler = Recycler::lock(area, owner(2)).expect("nobody is in the way for long");
    recycler.seal_all_lanes();
    let choice = Choice { segment: seen.segment, cause: Cause::Room, most_bytes: 0 };
    let _ = recycler.recycle(choice, 0, &mut Reserve::default(), 1);
}

#[test]
fn a_newer_value_is_not_replaced_after_it_was_recycled() {
    shuttle::check_random(
        || {
            let area = area();
            set_and_recycle(&area);
            assert_eq!(get(&area, b"key"), None, "it is dropped where nobody is in the way");
        },
        1,
    );
    race(set_and_recycle, |_| {});
}

/// All keys share one line: others' removals take the places of notes.
#[test]
fn removals_of_other_keys_do_not_hide_one() {
    race(
        |area| _ = delete(area, 2, b"key"),
        |area| {
            for number in 0..8_u8 {
                delete(area, 3, &[number]);
            }
        },
    );
}

#[test]
fn removals_of_several_keys_at_once_are_all_noted() {
    check(
        || {
            let area = area();
            let before = LeasedKey {
                area: &area,
                key: area.key(b"key", false),
                namespace: None,
                groups: None,
            };
            let lease = before.grant().expect("a lease");
            let removers = [0, 1, 2].map(|slot: u8| {
                spawn(&area, move |area| {
                    for number in 0..2 {
                        delete(area, slot.into(), &[slot, number]);
                    }
                    if slot == 0 {
                        delete(area, 0, b"key");
                        let written = set(area, 0, b"key", b"12345678", WriteMode::Leased(lease));
                        assert_eq!(written, Ok(Written::Revoked));
                    }
                })
            });
            for remover in removers {
                remover.join(&area);
            }
            let written = set(&area, 3, b"key", b"12345678", WriteMode::Leased(lease));
            assert_eq!(written, Ok(Written::Revoked));
        },
        400,
    );
}

/// A namespace is cleared in two steps, and its word is in no line of a key.
#[test]
fn the_clearing_of_a_namespace_is_not_undone() {
    const NAMESPACE: u64 = 7;
    let compute = |area: &Area<Model>, slot: u32| {
        let key = area.key(b"key", false);
        let leased = LeasedKey { area, key, namespace: Some(NAMESPACE), groups: None };
        let lease = leased.grant().expect("it does not change all the time");
        let value = ask(area).to_le_bytes();
        let write = Write {
            key,
            value: &value,
            has_groups: false,
            groups: None,
            mode: WriteMode::Leased(lease),
            namespace: leased.namespace,
            expiry: Expiry::At(FOREVER),
            version: area.ground.add(header::NEXT_VERSION, 1),
            now: &Now::at(1),
        };
        let _ =
            Writer::new(area, owner(slot)).write(&write).expect("nobody is in the way for long");
    };
    check(
        move || {
            let area = area();
            let computers = [0, 1].map(|slot| spawn(&area, move |area| compute(area, slot)));
            let remover = spawn(&area, |area| {
                change(area);
                area.note_clearing(NAMESPACE);
                let cleared = Writer::new(area, owner(2)).clear_bucket(0, |key, _| key == b"key");
                cleared.expect("nobody is in the way for long");
                assert!(!is_old(area, b"key"), "after the clearing");
            });
            remover.join(&area);
            for computer in computers {
                computer.join(&area);
            }
            assert!(!is_old(&area, b"key"), "at the end");
        },
        400,
    );
}

/// The oldest note moves on, and then another takes the place of the key's: a look at the first before that, and at the
/// second after it, would see an old note and none of the key.
#[test]
fn a_line_is_seen_as_it_was_at_one_moment() {
    let test = || {
        let area = area();
        let hash = |number: u64| number * 0x1_0001;
        let removals = |number| Removals::of(&area, hash(number));
        removals(1).note();
        let granted = removals(2).count();
        for number in 2..8 {
            removals(number).note();
        }
        let others = spawn(&area, move |area| {
            for number in [1, 8] {
                Removals::of(area, hash(number)).note();
            }
        });
        assert_ne!(removals(2).since(granted), Since::Nothing);
        others.join(&area);
    };
    shuttle::check_random(test, 1_000);
    shuttle::check_pct(test, 3_000, 3);
}

/// Wherever a remover ends: what it has removed is not brought back.
#[test]
fn a_removal_that_is_cut_short_is_done_or_not() {
    shuttle::check_random(
        || {
            for stores in 0..14 {
                let area = area();
                let key = area.key(b"key", false);
                let leased = LeasedKey { area: &area, key, namespace: None, groups: None };
                let lease = leased.grant().expect("a lease");
                let stored = set(&area, 0, b"key", &NEW.to_le_bytes(), WriteMode::Set);
                assert_eq!(stored, Ok(Written::Stored));
                area.ground.stores_left.store(stores, Ordering::SeqCst);
                let _ = Writer::new(&area, owner(1)).delete(&key, None, &Now::at(1));
                area.ground.stores_left.store(u64::MAX, Ordering::SeqCst);
                die(&area, 1);
                let is_removed = get(&area, b"key").is_none();
                let written = set(&area, 0, b"key", b"12345678", WriteMode::Leased(lease));
                assert!(!is_removed || written == Ok(Written::Revoked), "after {stores} stores");
            }
        },
        1,
    );
}
