//! Processes that see different boots, or none: containers with a boot id of their own, or where /proc
//! is hidden. All of them use one file at the same time, or one after the other.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haypile::file::hooks::set_boot_id;
use haypile::{Durability, Registry, SetOptions, Store};

use crate::{child, work};

const KEYS: u64 = 300;
const ROUNDS: u64 = 40;
/// Where the header has the number of the next version.
const NEXT_VERSION_AT: u64 = 384;

fn open(path: &Path, options: &str) -> Arc<dyn Store> {
    let url = format!("file://{}?size=4MiB{options}", path.display());
    Registry::new().open(&url).expect("a store")
}

/// Opens a file as a process with this boot id does.
fn open_as(boot_id: &str, path: &Path, options: &str) -> Arc<dyn Store> {
    set_boot_id(Some(boot_id));
    let store = open(path, options);
    set_boot_id(None);
    store
}

/// Writes keys of its own again and again, and says how many of them were lost. All of it fits.
#[test]
#[ignore = "another test starts it"]
fn keeper() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let number: u64 = child::variable("HAYPILE_TEST_NUMBER").expect("one").parse().expect("digits");
    let store = open(Path::new(&path), "");
    let (mut lost, mut wrong) = (0, 0);
    let name = |key: u64| format!("{number}-{key}").into_bytes();
    for round in 0..ROUNDS {
        for key in 0..KEYS {
            if round > 0 {
                let expected = work::value(number << 30 | key << 10 | (round - 1), 300);
                match store.get(&name(key)).expect("a read") {
                    None => lost += 1,
                    Some(found) => wrong += u64::from(found != expected),
                }
            }
            let value = work::value(number << 30 | key << 10 | round, 300);
            assert!(store.set(&name(key), &value, &SetOptions::set()).expect("it").is_stored());
        }
    }
    println!("\nlost {lost} wrong {wrong}");
}

fn keeper_as(boot_id: &str, path: &Path, number: u64) -> Child {
    let variables = [
        ("HAYPILE_TEST_PATH", path.display().to_string()),
        ("HAYPILE_TEST_NUMBER", number.to_string()),
        ("HAYPILE_BOOT_ID", boot_id.to_owned()),
    ];
    child::start("containers::keeper", &variables)
}

fn assert_nothing_lost(keepers: impl IntoIterator<Item = Child>) {
    for mut keeper in keepers {
        assert_eq!(child::lines(&mut keeper, "lost "), ["0 wrong 0"]);
        assert!(keeper.wait().expect("its end").success());
    }
}

#[test]
fn containers_with_boot_ids_of_their_own_lose_nothing() {
    for ids in [["one", "other"], ["", ""], ["one", ""], ["same", "same"]] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        drop(open_as("a third", &path, ""));
        let keepers = ids.iter().zip(1..).map(|(id, number)| keeper_as(id, &path, number));
        assert_nothing_lost(keepers.collect::<Vec<Child>>());
        let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a report");
        assert_eq!((check.entries, check.damaged), (2 * KEYS, 0), "{ids:?}");
    }
}

/// Runs a keeper in a mount namespace of its own; `None` where that is not allowed here.
fn keeper_in_namespace(prepare: &str, path: &Path, number: u64) -> Option<Child> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", prepare]).stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        assert!(
            std::env::var_os("HAYPILE_REQUIRE_NAMESPACES").is_none(),
            "namespaces are required, and 'unshare --mount' does not work here"
        );
        println!("skipped: 'unshare --mount' does not work here (it needs root and util-linux)");
        return None;
    }
    let program = std::env::current_exe().expect("this program");
    let test = "containers::keeper --exact --ignored --nocapture --test-threads=1";
    let script = format!("{prepare} && exec '{}' {test}", program.display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).stdout(Stdio::piped());
    command.env("HAYPILE_TEST_PATH", path).env("HAYPILE_TEST_NUMBER", number.to_string());
    Some(command.spawn().expect("a process"))
}

/// As systemd-nspawn, LXC and Incus do, and as systemd's `ProcSubset=pid` does.
#[test]
fn what_the_system_says_of_the_boot_may_be_hidden_or_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let boot_id = directory.path().join("boot_id");
    fs::write(&boot_id, "11111111-2222-3333-4444-555555555555\n").expect("written");
    let other = format!("mount --bind '{}' /proc/sys/kernel/random/boot_id", boot_id.display());
    for prepare in [&*other, "mount -t tmpfs none /proc/sys/kernel/random"] {
        let path = directory.path().join("cache");
        let Some(inside) = keeper_in_namespace(prepare, &path, 1) else {
            return;
        };
        let variables = [
            ("HAYPILE_TEST_PATH", path.display().to_string()),
            ("HAYPILE_TEST_NUMBER", "2".to_owned()),
        ];
        assert_nothing_lost([inside, child::start("containers::keeper", &variables)]);
        fs::remove_file(&path).expect("removed");
    }
}

fn is_swept(path: &Path) -> bool {
    haypile::file::FileStat::of(path).expect("a report").is_swept
}

#[test]
fn the_first_user_of_a_file_decides_which_boot_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let one = open_as("one", &path, "");
    let set = |key: &[u8], value: &[u8]| {
        assert!(one.set(key, value, &SetOptions::set()).expect("a write").is_stored());
    };
    set(b"key", &vec![1; 200_000]);
    let damaged = work::value(1, 1_000);
    set(b"damaged", &damaged);
    work::flip_in(&path, &damaged);
    let other = open_as("other", &path, "");
    assert!(is_swept(&path), "somebody else has it open");
    // What is not in doubt can be read in place.
    let in_place = |store: &dyn Store| {
        let pinned = store.get_pinned(b"key").expect("a read").expect("it is there");
        !format!("{pinned:?}").contains("copied: true")
    };
    assert!(in_place(&*other));
    // What only reads copies all values, and verifies those that are in doubt.
    let believes = |container: &str| {
        let reader = open_as(container, &path, "&mode=ro");
        reader.get(b"damaged").expect("a read").is_some()
    };
    assert!(believes("a third"));
    drop(one);
    assert!(believes("a third"), "the other one has it open");
    drop(other);
    // Of one that only reads nobody knows.
    assert!(!believes("other"));
    assert!(believes("one"), "it knows the boot");
    assert!(is_swept(&path));
    let next = open_as("other", &path, "");
    assert!(!is_swept(&path));
    assert!(!in_place(&*next));
    drop(next);
}

/// Two slots of a page tell the boot; nothing written in the meantime does.
#[test]
fn a_read_lock_does_not_make_its_holder_a_user() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    drop(open_as("one", &path, ""));
    let reader = fs::File::open(&path).expect("a file");
    read_lock(&reader, (1 << 62) + 5);
    let store = open_as("other", &path, "");
    assert!(!is_swept(&path), "a new boot was installed");
    assert!(store.set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
    drop(store);
    // On all owner slots: nobody can write, and the reason is told.
    (0..64).for_each(|slot| read_lock(&reader, (1 << 62) + slot));
    let store = open_as("other", &path, "");
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    let error = store.set(b"key", b"other", &SetOptions::set()).expect_err("locked").to_string();
    assert!(error.contains("may only read"), "{error}");
}

#[expect(unsafe_code, reason = "locks as a hostile reader takes them")]
fn read_lock(file: &fs::File, byte: i64) {
    use std::os::fd::AsRawFd;
    // SAFETY: zeros are a valid lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_RDLCK as i16;
    (lock.l_start, lock.l_len) = (byte, 1);
    // SAFETY: the descriptor is open and the lock a valid structure.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }, 0);
}

fn next_version(path: &Path) -> u64 {
    let mut word = [0; 8];
    let file = fs::File::open(path).expect("a file");
    file.read_exact_at(&mut word, NEXT_VERSION_AT).expect("a header");
    u64::from_le_bytes(word)
}

fn write_next_version(path: &Path, version: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("a file");
    file.write_all_at(&version.to_le_bytes(), NEXT_VERSION_AT).expect("written");
}

#[test]
fn containers_that_take_turns_use_few_versions_up() {
    // A child that another test forks has the locks of this process until it runs its program, and whoever opens at that time
    // finds that somebody uses the file.
    let mut alone = child::start("containers::taking_turns", &[]);
    assert_eq!(child::lines(&mut alone, "took "), ["100 turns"]);
    assert!(alone.wait().expect("its end").success());
}

#[test]
#[ignore = "another test starts it"]
fn taking_turns() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    drop(open_as("other", &path, ""));
    let first = next_version(&path);
    for turn in 0..100 {
        let store = open_as(if turn % 2 == 0 { "one" } else { "other" }, &path, "");
        assert!(store.set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
    }
    let each = (next_version(&path) - first) / 100;
    assert!((1 << 16..1 << 17).contains(&each), "{each} versions are used up by opening");
    // At the end of them, opening uses no more up.
    let late = (1_u64 << 47) - 100;
    write_next_version(&path, late);
    for turn in 0..100 {
        drop(open_as(if turn % 2 == 0 { "one" } else { "other" }, &path, ""));
    }
    assert_eq!(next_version(&path), late);
    println!("\ntook 100 turns");
}

/// A loss of power can undo the count of versions, and not what they were given to.
#[test]
fn no_version_is_given_twice_to_a_key_after_a_loss_of_power() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open_as("one", &path, "");
    assert!(store.set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
    store.flush(Durability::Disk).expect("a flush");
    let before = next_version(&path);
    let version = |store: &dyn Store| {
        let hit = store.get_into(b"key", &mut Vec::new()).expect("a read").expect("it is there");
        hit.version.expect("a version").raw()
    };
    // As if twice as many versions had been drawn as opening skips.
    write_next_version(&path, before + (1 << 33));
    drop(store);
    let store = open_as("one", &path, "");
    assert!(store.set(b"key", b"late", &SetOptions::set()).expect("a write").is_stored());
    let late = version(&*store);
    drop(store);
    write_next_version(&path, before);
    let store = open_as("other", &path, "");
    assert_eq!(version(&*store), late, "the entry is what it was");
    assert!(store.set(b"key", b"later", &SetOptions::set()).expect("a write").is_stored());
    assert!(version(&*store) > late);
    assert!(next_version(&path) > late);
}

/// Writes as long as it takes until the index is swept, or too long.
/// Says how long the longest operation takes while doubt lasts: a measurement, of which a test has no
/// opinion. `scripts/test-full` runs it.
#[test]
#[ignore = "needs 5 GiB of memory, and an optimised build"]
fn four_gibibytes_after_a_reboot() {
    const ENTRIES: u64 = 6_000_000;
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = tempfile::tempdir_in(place).expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size=4GiB", path.display());
    let open = || Registry::new().open(&url).expect("a store");
    let value = |number| work::value(number, 160);
    let set = |store: &dyn Store, number: u64| {
        let written = store.set(&number.to_le_bytes(), &value(number), &SetOptions::set());
        assert!(written.expect("a write").is_stored());
    };
    set_boot_id(Some("before"));
    let store = open();
    (0..ENTRIES).for_each(|number| set(&*store, number));
    drop(store);
    set_boot_id(Some("after"));
    let begin = Instant::now();
    let store = open();
    println!("opened in {:?}", begin.elapsed());
    let (mut longest, mut writes) = (Duration::ZERO, 0);
    let is_swept = || haypile::file::FileStat::of(&path).expect("it").is_swept;
    for number in (0..ENTRIES).cycle() {
        let begin = Instant::now();
        set(&*store, number);
        longest = longest.max(begin.elapsed());
        writes += 1;
        let other = number.wrapping_mul(7_919) % ENTRIES;
        let begin = Instant::now();
        let found = store.get(&other.to_le_bytes()).expect("a read");
        longest = longest.max(begin.elapsed());
        assert!(found.is_none_or(|found| found == value(other)), "{other}");
        if writes % 100_000 == 0 && is_swept() {
            break;
        }
    }
    println!("the longest operation took {longest:?}; swept after at most {writes} writes");
}

#[test]
fn after_a_reboot_the_index_is_swept_while_entries_are_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open_as("one", &path, "&entry_size=64");
    let value = |key: u64| work::value(key, 700);
    let name = |key: u64| format!("key-{key}").into_bytes();
    for key in 0..2_000 {
        assert!(store.set(&name(key), &value(key), &SetOptions::set()).expect("it").is_stored());
    }
    drop(store);
    let store = open_as("other", &path, "");
    assert!(!is_swept(&path));
    let mut written = 0;
    while !is_swept(&path) {
        assert!(written < 20_000, "that is five times the file");
        for _ in 0..100 {
            let key = 1_500 + written % 500;
            let set = store.set(&name(key), &value(key), &SetOptions::set());
            assert!(set.expect("a write").is_stored());
            written += 1;
        }
    }
    for key in 0..2_000 {
        assert_eq!(store.get(&name(key)).expect("a read"), Some(value(key)), "{key}");
    }
    drop(store);
    let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a report");
    assert_eq!((check.entries, check.damaged), (2_000, 0), "{check:?}");
}

#[test]
fn opening_waits_for_another_that_opens_and_names_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path: PathBuf = directory.path().join("cache");
    drop(open(&path, ""));
    let reader = fs::File::open(&path).expect("a file");
    read_lock(&reader, (1 << 62) - 2);
    let url = format!("file://{}", path.display());
    let error = Registry::new().open(&url).expect_err("locked").to_string();
    assert!(error.contains("may only read"), "{error}");
    drop(reader);
    assert!(Registry::new().open(&url).is_ok());
}
