//! One process, compared with a model.

use haypile::Registry;

use crate::script::{self, Kind, Model};

fn follow(kind: Kind, entry_size: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size=2MiB&entry_size={entry_size}", path.display());
    let store = Registry::new().open(&url).expect("a store");
    let mut model = Model::default();
    for number in 0..8_000 {
        let op = script::op(kind, 3, number);
        script::perform(&*store, op).expect("an operation");
        model.perform(op);
        if number % 100 == 0 {
            script::check(&*store, kind, &model, &model);
            if kind == Kind::Roomy {
                assert_eq!(store.stats().expect("counts").evictions, 0, "after {number}");
            }
        }
    }
    let entries = store.len().expect("a count");
    let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a file");
    assert_eq!((check.damaged, check.entries), (0, entries), "{check:?}");
}

#[test]
fn where_there_is_room_it_is_a_map() {
    follow(Kind::Roomy, "256");
    follow(Kind::Roomy, "4KiB");
}

#[test]
fn where_there_is_none_entries_leave_and_none_is_wrong() {
    follow(Kind::Crowded, "256");
    follow(Kind::Crowded, "16KiB");
}
