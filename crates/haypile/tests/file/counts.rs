//! Counts of live entries that are wrong: a loss of power leaves any, and a death is off by one.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use haypile::{Durability, Registry, SetOptions, Store};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::places::Places;
use crate::work;

const VALUE_BYTES: usize = 1_000;

fn open(path: &Path, size: &str) -> Arc<dyn Store> {
    let url = format!("file://{}?size={size}", path.display());
    Registry::new().open(&url).expect("a store")
}

fn set(store: &dyn Store, number: u64) {
    let value = work::value(number, VALUE_BYTES);
    let written = store.set(&number.to_le_bytes(), &value, &SetOptions::set());
    assert!(written.expect("room can be made").is_stored());
}

/// Where the tables of live counts of a file begin, and their length.
fn live_tables(file: &File) -> (u64, usize) {
    let mut header = [0; 4096];
    file.read_exact_at(&mut header, 0).expect("a header");
    let live = Places::of(&header).live;
    (live.start as u64, live.len())
}

/// The tables of counts after a loss of power.
#[derive(Clone, Copy, Debug)]
enum Left {
    /// None of them was ever brought to disk.
    Zeros,
    /// They are of the moment at which a tenth of the file was filled.
    Earlier,
    /// Each word is of some moment of some other life.
    Anything,
}

/// Fills a file, falsifies its counts as `left` says, and checks that as many writes again succeed, without any
/// `len` or `clear` that would repair the counts.
fn write_with_wrong_counts(size: &str, left: Left, is_rebooted: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    haypile::file::hooks::set_boot_id(Some("before"));
    let store = open(&path, size);
    store.flush(Durability::Disk).expect("a flush");
    let file = OpenOptions::new().read(true).write(true).open(&path).expect("a file");
    let (start, bytes) = live_tables(&file);
    let count = file.metadata().expect("its size").len() / 1_100;
    let mut tables = vec![0; bytes];
    for number in 0..count {
        set(&*store, number);
        if matches!(left, Left::Earlier) && number == count / 10 {
            file.read_exact_at(&mut tables, start).expect("a read");
        }
    }
    drop(store);
    if matches!(left, Left::Anything) {
        ChaCha8Rng::seed_from_u64(7).fill_bytes(&mut tables);
    }
    file.write_all_at(&tables, start).expect("a write");
    haypile::file::hooks::set_boot_id(is_rebooted.then_some("after"));
    let store = open(&path, size);
    for number in count..2 * count {
        set(&*store, number);
        let key = (number - 1).to_le_bytes();
        assert!(
            store
                .get(&key)
                .expect("a read")
                .is_none_or(|value| { value == work::value(number - 1, VALUE_BYTES) })
        );
    }
    haypile::file::hooks::set_boot_id(None);
}

#[test]
fn counts_that_a_loss_of_power_left_refuse_no_write() {
    for left in [Left::Zeros, Left::Earlier, Left::Anything] {
        write_with_wrong_counts("8MiB", left, true);
        write_with_wrong_counts("8MiB", left, false);
    }
    // As many segments as choosing one of them ever looks at.
    write_with_wrong_counts("63MiB", Left::Zeros, true);
    write_with_wrong_counts("63MiB", Left::Earlier, true);
}

#[cfg(feature = "crash-points")]
mod deaths {
    use std::path::Path;
    use std::process::Child;

    use rustix::process::{Pid, Signal, kill_process};

    use super::{open, set};
    use crate::{child, stop};

    #[test]
    #[ignore = "another test starts it"]
    fn writer() {
        let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
            return;
        };
        let number = child::variable("HAYPILE_TEST_NUMBER").expect("one");
        set(&*open(Path::new(&path), "4MiB"), number.parse().expect("a number"));
    }

    fn start(path: &Path, number: u64, variable: &str, step: &str) -> Child {
        let variables = [
            ("HAYPILE_TEST_PATH", path.display().to_string()),
            ("HAYPILE_TEST_NUMBER", number.to_string()),
            (variable, step.to_owned()),
        ];
        child::start("counts::deaths::writer", &variables)
    }

    /// Deaths leave a count that is wrong, and a stopped process prevents that it is counted again.
    #[test]
    fn a_recount_that_failed_is_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        let store = open(&path, "4MiB");
        (0..100).for_each(|number| set(&*store, number));
        for number in 100..103 {
            let killed = start(&path, number, "HAYPILE_CRASH_AT", "set.counted").wait();
            assert!(!killed.expect("its end").success());
        }
        // Each of the dead holds the lock of a bucket. Whoever takes it notes a death: if a count did, it would
        // be in doubt for that alone.
        (100..103).for_each(|number| set(&*store, number));
        let mut stopped = start(&path, 103, "HAYPILE_STOP_AT", "bucket.locked");
        assert!(stop::is_stopped(&stopped), "it locks a bucket");
        // Something like the number of entries, for it is not waited for.
        let _ = store.len().expect("a count");
        kill_process(Pid::from_child(&stopped), Signal::CONT).expect("it is there");
        assert!(stopped.wait().expect("its end").success());
        assert_eq!(store.len().expect("a count"), 104);
        assert_eq!(open(&path, "4MiB").len().expect("a count"), 104);
    }
}
