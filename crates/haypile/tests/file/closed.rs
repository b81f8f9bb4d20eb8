//! Programs that close all descriptors, as those do that become daemons.

#![expect(unsafe_code, reason = "closes descriptors that belong to others, on purpose")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haypile::{Durability, Registry, SetOptions, Store};

use crate::seccomp::{Refusal, refuse};
use crate::{child, work};

fn open(path: &Path, options: &str) -> Arc<dyn Store> {
    let url = format!("file://{}?{options}", path.display());
    Registry::new().open(&url).expect("a store")
}

/// Writes more than the file holds, so that segments are recycled, which asks about locks.
fn write_much(store: &dyn Store) {
    for number in 0..3_000_u64 {
        let written = store.set(&number.to_le_bytes(), &[7; 900], &SetOptions::set());
        assert!(written.expect("a write").is_stored());
    }
}

#[test]
#[ignore = "another test starts it"]
fn daemon() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let path = PathBuf::from(path);
    let store = open(&path, "size=1MiB");
    let copy = open(&path, "mode=copy");
    store.flush(Durability::Disk).expect("a flush");
    let recording = path.with_extension("recording");
    let recorded = Registry::new().open(&format!("memory://?record={}", recording.display()));
    let recorded = recorded.expect("a store");
    // SAFETY: the test's own descriptors are among them; it uses none from here on.
    assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
    // Their numbers are those of other files now: of others, and of the cache's own.
    let text = path.with_extension("text");
    fs::write(&text, "of the program").expect("written");
    let open_text = || OpenOptions::new().read(true).write(true).open(&text).expect("a file");
    let files = || (0..8).map(|_| open_text());
    let mut others: Vec<File> = files().chain([File::open(&path).expect("a file")]).collect();
    write_much(&*store);
    // Nothing is written to the file that has the number of the recording.
    write_much(&*recorded);
    recorded.flush(Durability::Visible).expect("the cache goes on");
    let warnings = recorded.warnings().concat();
    assert!(warnings.contains("has closed the descriptor"), "{warnings}");
    drop(recorded);
    store.flush(Durability::Disk).expect("the file is opened again by its path");
    let value = work::value(7, 5_000);
    assert!(store.set(b"key", &value, &SetOptions::set()).expect("a write").is_stored());
    assert_eq!(copy.get(b"key").expect("a read").as_ref(), Some(&value));
    // Again, and now it cannot be opened, as by a process that has given up its rights.
    // SAFETY: as above.
    assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
    std::mem::forget(std::mem::replace(&mut others, files().collect()));
    let errno = libc::EACCES.cast_unsigned();
    if refuse(&[Refusal { call: libc::SYS_openat, argument: None, errno }]).is_ok() {
        store.flush(Durability::Disk).expect("the mapping is synced");
    }
    drop((store, copy));
    for other in &mut others {
        other.seek(SeekFrom::Start(0)).expect("it is still open");
        let mut found = String::new();
        other.read_to_string(&mut found).expect("and readable");
        assert_eq!(found, "of the program");
    }
    println!("\ntold done");
}

#[test]
fn a_program_that_closes_all_descriptors_still_flushes_and_keeps_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let variables = [("HAYPILE_TEST_PATH", path.display().to_string())];
    let mut daemon = child::start("closed::daemon", &variables);
    let told = child::lines(&mut daemon, "told ");
    assert!(daemon.wait().expect("its end").success());
    assert_eq!(told, ["done"]);
    let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a report");
    assert_eq!(check.damaged, 0, "{check:?}");
}
