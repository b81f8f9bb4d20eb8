//! Groups: nothing of before an invalidation is read after it.

use super::leases::{OLD, ask, change};
use super::*;
use crate::NoneStore;
use crate::file::groups::marked;
use crate::file::operations::leases::LeasedKey;
use crate::groups::{Hashes, hash};

const GROUP: &[u8] = b"group";

fn groups() -> Hashes {
    Hashes::of(&NoneStore::new(), &[GROUP], 0).expect("a name")
}

fn invalidate(area: &Area<Model>) {
    area.invalidate(hash(GROUP, 0));
}

/// Writes a value in the group.
fn set_in_group(area: &Area<Model>, slot: u32, value: u64, mode: WriteMode) -> Written {
    let groups = groups();
    let value = marked(area, &value.to_le_bytes(), mode, &groups);
    loop {
        let write = Write {
            key: area.key(b"key", false),
            value: &value,
            has_groups: true,
            groups: Some(&groups),
            mode,
            namespace: None,
            expiry: Expiry::At(FOREVER),
            version: area.ground.add(header::NEXT_VERSION, 1),
            now: &Now::at(1),
        };
        let outcome = Writer::new(area, owner(slot)).write(&write);
        if let WriteOutcome::Written(written) = outcome.expect("nobody is in the way for long") {
            return written;
        }
    }
}

/// Reads the value, if the entry is valid: one of an invalidated group is one that has expired.
fn read(area: &Area<Model>) -> Option<u64> {
    let mut value = Vec::new();
    let key = area.key(b"key", false);
    let search = Lookup::new(area, &key).search(Some(&mut value)).expect("memory");
    let Search::Found(Seen { expires_ms: 1.., .. }) = search else { return None };
    Some(u64::from_le_bytes(value.try_into().expect("a value without its marks")))
}

fn is_old(area: &Area<Model>) -> bool {
    read(area) == Some(OLD)
}

/// Takes a lease, asks the data base and stores its answer in the group.
fn compute(area: &Area<Model>, slot: u32) {
    let key = area.key(b"key", false);
    let leased = LeasedKey { area, key, namespace: None, groups: None };
    let lease = leased.grant().expect("it does not change all the time");
    let answer = ask(area);
    let _ = set_in_group(area, slot, answer, WriteMode::Leased(lease));
}

/// One changes the data base and then invalidates the group, while others do this.
fn race<const N: usize>(others: [fn(&Area<Model>); N], runs: usize) {
    check(
        move || {
            let area = area();
            let others = others.map(|other| spawn(&area, other));
            let invalidator = spawn(&area, |area| {
                change(area);
                invalidate(area);
                assert!(!is_old(area), "after the invalidation");
            });
            invalidator.join(&area);
            assert!(!is_old(&area), "later");
            for other in others {
                other.join(&area);
            }
            assert!(!is_old(&area), "at the end");
        },
        runs,
    );
}

#[test]
fn an_invalidation_is_not_undone_by_what_was_computed_before() {
    race([|area| compute(area, 0), |area| compute(area, 1)], 1_500);
}

/// Of two invalidations, the word keeps the higher number.
#[test]
fn one_invalidation_does_not_undo_another() {
    race([|area| compute(area, 0), invalidate], 1_500);
}

/// The copy of a record has its marks, and is judged by them.
#[test]
fn a_copy_of_an_invalidated_entry_is_none_either() {
    fn compute_and_move(area: &Area<Model>) {
        compute(area, 0);
        let key = area.key(b"key", false);
        let Ok(Search::Found(seen)) = Lookup::new(area, &key).search(None) else { return };
        let recycler = Recycler::lock(area, owner(0)).expect("nobody is in the way for long");
        recycler.seal_all_lanes();
        let choice = Choice::of(seen.segment, Cause::Sparse);
        let _ = recycler.recycle(choice, u64::MAX, &mut Reserve::default(), 1);
    }
    race([compute_and_move], 1_500);
}

/// A touch writes the word that says that there are marks.
#[test]
fn a_touched_entry_keeps_its_groups() {
    let test = || {
        let area = area();
        assert_eq!(set_in_group(&area, 0, OLD, WriteMode::Set), Written::Stored);
        let toucher = spawn(&area, |area| {
            let key = area.key(b"key", false);
            let touched = Writer::new(area, owner(1)).touch(&key, 5, &Now::at(1));
            touched.expect("nobody is in the way for long");
        });
        invalidate(&area);
        assert_eq!(read(&area), None, "while it is touched");
        toucher.join(&area);
        assert_eq!(read(&area), None, "afterwards");
    };
    shuttle::check_random(test, 500);
}

/// Wherever an invalidator ends, what it has made a miss does not come back, and the next one does all.
#[test]
fn an_invalidation_that_is_cut_short_is_done_or_not() {
    shuttle::check_random(
        || {
            for stores in 0..4 {
                let area = area();
                assert_eq!(set_in_group(&area, 0, OLD, WriteMode::Set), Written::Stored);
                let key = area.key(b"key", false);
                let leased = LeasedKey { area: &area, key, namespace: None, groups: None };
                let lease = leased.grant().expect("a lease");
                area.ground.stores_left.store(stores, Ordering::SeqCst);
                invalidate(&area);
                area.ground.stores_left.store(u64::MAX, Ordering::SeqCst);
                let is_gone = read(&area).is_none();
                let written = set_in_group(&area, 0, OLD, WriteMode::Leased(lease));
                assert_eq!(is_gone, written == Written::Revoked, "after {stores} stores");
                assert!(!is_gone || read(&area).is_none(), "after {stores} stores");
                invalidate(&area);
                assert_eq!(read(&area), None, "after {stores} stores, and the next one");
            }
        },
        1,
    );
}
