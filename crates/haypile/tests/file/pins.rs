//! Values that are read in place stay what they are, whatever else is done concurrently.

#![expect(unsafe_code, reason = "forks as programs in C and Python do")]

use std::path::Path;
use std::sync::Arc;

use haypile::{Durability, Error, Pinned, Registry, SetOptions, Store};

use crate::work::LARGE;
use crate::{child, work};

/// The length of values that take about a segment of a large file each.
const LARGE_VALUE_BYTES: usize = 60_000;

const LONG_BYTES: usize = 70 << 10;

fn open(path: &Path) -> Arc<dyn Store> {
    let url = format!("file://{}?size=4MiB&entry_size=4KiB", path.display());
    Registry::new().open(&url).expect("a store")
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).expect("a write").is_stored());
}

fn is_in_place(pinned: &Pinned<'_>) -> bool {
    format!("{pinned:?}").contains("copied: false")
}

fn pin<'a>(store: &'a dyn Store, key: &[u8]) -> Pinned<'a> {
    let pinned = store.get_pinned(key).expect("a read").expect("it is there");
    assert!(is_in_place(&pinned), "it is not copied: {pinned:?}");
    pinned
}

/// Writes more than the file holds, short and long values.
fn write_over_everything(store: &dyn Store) {
    for number in 0..4_000_u64 {
        set(store, &number.to_le_bytes(), &[1; 1_500]);
        if number % 100 == 0 {
            set(store, b"another long one", &vec![2; LONG_BYTES]);
        }
    }
}

#[test]
fn a_value_that_is_read_in_place_stays_though_all_room_is_wanted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (reader, writer) = (open(&path), open(&path));
    for round in 0..8_u64 {
        let value = work::value(round, LONG_BYTES);
        set(&*writer, b"long", &value);
        let pinned = pin(&*reader, b"long");
        match round % 3 {
            0 => assert!(writer.delete(b"long").expect("a deletion")),
            1 => writer.clear().expect("a clearing"),
            _ => {}
        }
        // The reader's own writes recycle as much as another process' do.
        write_over_everything(if round % 2 == 0 { &*writer } else { &*reader });
        assert!(*pinned == value, "it has changed in round {round}");
    }
    // Nothing is kept for readers that have gone.
    let value = work::value(100, 500 << 10);
    set(&*writer, b"as long as it may be", &value);
    assert_eq!(reader.get(b"as long as it may be").expect("a read"), Some(value));
}

/// The locks of all processes on segments of a file, as the kernel lists them.
fn locks(path: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let inode = std::fs::metadata(path).expect("a file").ino();
    let locks = std::fs::read_to_string("/proc/locks").expect("the kernel's list");
    // number: OFDLCK ADVISORY WRITE pid major:minor:inode first last
    let is_of_segment = |line: &&str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let first = fields.get(6).and_then(|first| first.parse::<u64>().ok());
        fields.get(5).is_some_and(|id| id.ends_with(&format!(":{inode}")))
            && fields.get(3) == Some(&"WRITE")
            && first.is_some_and(|first| first >= (1 << 62) + (1 << 32))
    };
    locks.lines().filter(is_of_segment).count()
}

#[test]
fn hundreds_of_short_values_are_read_in_place_under_a_few_locks() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (reader, writer) = (open(&path), open(&path));
    let value = |number: u64| work::value(number, 1_000 + 10 * number as usize);
    for number in 0..60_u64 {
        set(&*writer, &number.to_le_bytes(), &value(number));
    }
    let read = |number: u64| {
        reader.get_in_place(&number.to_le_bytes()).expect("a read").expect("it is there")
    };
    let mut pinned: Vec<Pinned<'_>> = (0..60).map(read).collect();
    assert!(pinned.iter().all(is_in_place), "{pinned:?}");
    let held = locks(&path);
    assert!((1..=3).contains(&held), "{held} locks for 80 KB of values");
    // Short values are copied where nobody asked for more: that is faster.
    assert!(!is_in_place(
        &reader.get_pinned(&0_u64.to_le_bytes()).expect("a read").expect("a value")
    ));
    write_over_everything(&*writer);
    for (number, pinned) in pinned.iter().enumerate() {
        assert!(**pinned == value(number as u64), "value {number} has changed");
    }
    // One of them keeps the lock for itself, and the last lets it go.
    let last = pinned.swap_remove(59);
    drop(pinned);
    write_over_everything(&*writer);
    assert!(*last == value(59));
    drop(last);
    assert_eq!(locks(&path), 0);
}

#[test]
fn a_process_pins_an_eighth_of_the_segments_and_copies_other_values() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path);
    for number in 0..1_000_u64 {
        set(&*store, &number.to_le_bytes(), &[number as u8; 3_000]);
    }
    let read = |number: u64| store.get_in_place(&number.to_le_bytes()).expect("a read");
    let all: Vec<Pinned<'_>> = (0..1_000).filter_map(read).collect();
    let in_place = all.iter().filter(|pinned| is_in_place(pinned)).count();
    assert!(in_place > 50 && in_place < all.len(), "{in_place} of {}", all.len());
    assert!(all.iter().all(|value| value.iter().all(|byte| *byte == value[0])));
    assert!(all.iter().all(|value| value.is_out_of_pins() != is_in_place(value)));
    // Of a reader without an owner slot, storing a value again would make no difference.
    let reader = format!("file://{}?mode=ro", path.display());
    let reader = Registry::new().open(&reader).expect("a store");
    assert!(read_in_place(&*reader, 0..1_000).all(|it| !is_in_place(&it) && !it.is_out_of_pins()));
    // Writers go on.
    write_over_everything(&*store);
    drop(all);
    assert_eq!(locks(&path), 0);
}

/// A file of 118 segments.
fn open_roomy(path: &Path) -> Arc<dyn Store> {
    Registry::new().open(&format!("file://{}?size=8MiB", path.display())).expect("a store")
}

/// The values of these numbers, of which some may have left.
fn read_in_place(
    store: &dyn Store,
    numbers: std::ops::Range<u64>,
) -> impl Iterator<Item = Pinned<'_>> {
    numbers.filter_map(|number| store.get_in_place(&number.to_le_bytes()).expect("a read"))
}

fn set_numbers(store: &dyn Store, numbers: std::ops::Range<u64>, bytes: usize) {
    for number in numbers {
        set(store, &number.to_le_bytes(), &work::value(number, bytes));
    }
}

#[test]
fn handles_of_one_process_share_its_part_and_a_run_counts_all_its_segments() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let handles = [(); 3].map(|()| open_roomy(&path));
    let segments = haypile::file::FileStat::of(&path).expect("a file").segments;
    // Each takes five segments.
    set_numbers(&*handles[0], 0..15, 300_000);
    let pinned: Vec<Pinned<'_>> =
        handles.iter().flat_map(|handle| read_in_place(&**handle, 0..15)).collect();
    let in_place = pinned.iter().filter(|pinned| is_in_place(pinned)).count();
    assert_eq!((pinned.len(), in_place), (45, segments as usize / 8 / 5));
    // What is let go of can be pinned again, by another handle as well.
    drop(pinned);
    assert!(is_in_place(&read_in_place(&*handles[2], 3..4).next().expect("it is there")));
}

/// Pins what it may, says so, and keeps it until its parent ends or kills it.
#[test]
#[ignore = "another test starts it"]
fn holder() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let first = child::variable("HAYPILE_TEST_FIRST").expect("one").parse().expect("a number");
    let store = open_roomy(Path::new(&path));
    let pinned: Vec<Pinned<'_>> = read_in_place(&*store, first..first + 1_500).collect();
    println!("\npinned {}", pinned.iter().filter(|pinned| is_in_place(pinned)).count());
    let _ = std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new());
}

#[test]
fn all_processes_together_pin_a_quarter_and_the_dead_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open_roomy(&path);
    let segments = haypile::file::FileStat::of(&path).expect("a file").segments as usize;
    set_numbers(&*store, 0..6_000, 1_000);
    let mut holders: Vec<_> = (0..4)
        .map(|number| {
            let variables = [
                ("HAYPILE_TEST_PATH", path.display().to_string()),
                ("HAYPILE_TEST_FIRST", (number * 1_500).to_string()),
            ];
            let mut holder = child::start_with_input("pins::holder", &variables);
            let output = std::io::BufReader::new(holder.stdout.as_mut().expect("a pipe"));
            let mut lines = std::io::BufRead::lines(output).map_while(Result::ok);
            let pinned = lines.find_map(|line| Some(line.strip_prefix("pinned ")?.to_owned()));
            let pinned: usize = pinned.expect("it says so").parse().expect("a number");
            (holder, pinned)
        })
        .collect();
    // The first two have an eighth each, and the others nothing.
    assert_eq!(locks(&path), segments / 4);
    assert!(holders[0].1 > 100 && holders[1].1 > 100 && holders[3].1 == 0);
    // Each of these writes finds room, and what is pinned stays.
    set_numbers(&*store, 6_000..30_000, 1_000);
    let own = |numbers| read_in_place(&*store, numbers).filter(is_in_place).count();
    assert_eq!(own(29_000..30_000), 0, "others have all of it");
    assert!(read_in_place(&*store, 29_000..30_000).all(|value| value.is_out_of_pins()));
    holders[0].0.kill().expect("it is there");
    holders[0].0.wait().expect("its end");
    let mut pinned = Vec::new();
    while pinned.is_empty() {
        // For a moment values are copied without asking.
        pinned = read_in_place(&*store, 29_000..30_000).filter(is_in_place).collect();
    }
    set_numbers(&*store, 30_000..40_000, 1_000);
    for (holder, _) in &mut holders[1..] {
        drop(holder.stdin.take());
        assert!(holder.wait().expect("its end").success());
    }
}

/// As the icon cache of a desktop is used, whose programs keep what they show.
#[test]
fn no_write_fails_and_what_fits_stays_while_values_are_pinned() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size=63MiB", path.display());
    let store = Registry::new().open(&url).expect("a store");
    // 90 of 930 segments: as many as refused a write of any file before, and more.
    set_numbers(&*store, 0..6_000, 1_000);
    let pinned: Vec<Pinned<'_>> = read_in_place(&*store, 0..6_000).collect();
    assert!(pinned.iter().filter(|pinned| is_in_place(pinned)).count() > 5_000);
    for number in 0..6_000_u64 {
        assert!(store.delete(&number.to_le_bytes()).expect("a deletion"));
    }
    // A third of the file stays, while the rest is overwritten again and again.
    set_numbers(&*store, 10_000..30_000, 1_000);
    for round in 0..4 {
        set_numbers(&*store, 50_000..60_000, 1_000 + round);
        for number in 10_000..30_000_u64 {
            let found = store.get(&number.to_le_bytes()).expect("a read");
            assert!(found == Some(work::value(number, 1_000)), "{number} has left in {round}");
        }
    }
    assert!(
        pinned
            .iter()
            .enumerate()
            .all(|(number, value)| { **value == work::value(number as u64, 1_000) })
    );
}

/// A process that may only read the file takes all the locks that it can.
#[test]
fn a_process_that_only_reads_keeps_nobody_from_making_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open_roomy(&path);
    let reader = std::fs::File::open(&path).expect("a file");
    let lock = libc::flock {
        l_type: libc::F_RDLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: (1 << 62) + (1 << 32),
        l_len: 1 << 32,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the lock a valid structure.
    let locked = unsafe {
        libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&reader), libc::F_OFD_SETLK, &raw const lock)
    };
    assert_eq!(locked, 0);
    set_numbers(&*store, 0..20_000, 1_000);
    drop(reader);
}

#[test]
fn a_value_is_verified_when_it_is_first_read_in_place_where_that_is_wanted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (plain, value) = (open(&path), work::value(1, 1_000));
    let url = format!("file://{}?verify=first", path.display());
    let verifying = Registry::new().open(&url).expect("a store");
    let copying = Registry::new().open(&format!("{url}&mode=ro")).expect("a store");
    set(&*plain, b"read before", &value);
    let before = verifying.get_in_place(b"read before").expect("a read").expect("it is whole");
    assert!(is_in_place(&before) && *before == value);
    let other = work::value(2, 1_000);
    set(&*plain, b"read after", &other);
    work::flip_in(&path, &value);
    work::flip_in(&path, &other);
    // It was verified, and is not again.
    let again = verifying.get_in_place(b"read before").expect("a read").expect("a value");
    assert!(*again != value);
    assert!(verifying.get_in_place(b"read after").expect("a read").is_none());
    assert_eq!(verifying.stats().expect("counts").corrupt, 1);
    assert!(copying.get_in_place(b"read after").expect("a read").is_none());
    let read = plain.get_in_place(b"read after").expect("a read").expect("nobody asked");
    assert!(*read != other);
    assert!(plain.get_in_place_verified(b"read after").expect("a read").is_none());
    // A new value is whole again.
    set(&*plain, b"read after", &other);
    let read = verifying.get_in_place(b"read after").expect("a read").expect("it is whole");
    assert!(is_in_place(&read) && *read == other);
}

#[test]
fn a_handle_that_only_reads_copies_all_values() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let writer = open(&path);
    let value = work::value(1, LONG_BYTES);
    set(&*writer, b"long", &value);
    let url = format!("file://{}?mode=ro", path.display());
    let reader = Registry::new().open(&url).expect("a store");
    let read = reader.get_in_place(b"long").expect("a read").expect("it is there");
    assert!(!is_in_place(&read) && *read == value);
    assert!(matches!(reader.delete(b"long"), Err(Error::Unsupported { .. })));
}

/// Fills a large file with values of about a segment each.
fn fill_large(store: &dyn Store, values: u64) {
    for number in 0..values {
        set(store, &number.to_le_bytes(), &work::value(number, LARGE_VALUE_BYTES));
    }
}

/// Writes values of about a segment each; returns the refusals.
fn refusals(store: &dyn Store, writes: u64) -> Vec<String> {
    let write = |number: u64| {
        let value = work::value(number, LARGE_VALUE_BYTES);
        store.set(&(1 << 40 | number).to_le_bytes(), &value, &SetOptions::set()).err()
    };
    (0..writes).filter_map(write).map(|error| error.to_string()).collect()
}

#[test]
fn the_pins_of_sixteen_users_of_930_segments_stop_no_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size={LARGE}", path.display());
    let writer = Registry::new().open(&url).expect("a store");
    fill_large(&*writer, 800);
    let readers: Vec<Arc<dyn Store>> =
        (0..16).map(|_| Registry::new().open(&url).expect("a store")).collect();
    let pinned: Vec<Vec<Pinned<'_>>> =
        readers.iter().map(|reader| read_in_place(&**reader, 0..800).collect()).collect();
    let refused = refusals(&*writer, 2_000);
    let pins = pinned.iter().flatten().filter(|value| is_in_place(value)).count();
    assert!(refused.is_empty(), "{} of 2000, {pins} pins: {}", refused.len(), refused[0]);
}

#[test]
fn a_value_is_copied_where_a_loss_of_power_leaves_its_segments_in_doubt() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let value = work::value(1, LONG_BYTES);
    let store = open(&path);
    set(&*store, b"long", &value);
    store.flush(Durability::Disk).expect("a flush");
    drop(store);
    // Another inode is, to this program, a file of another boot.
    let copied = directory.path().join("copied");
    std::fs::copy(&path, &copied).expect("copied");
    let store = open(&copied);
    let pinned = store.get_pinned(b"long").expect("a read").expect("it is there");
    assert!(!is_in_place(&pinned) && *pinned == value);
}

/// A process that reads in place and forks; its child lets go of what it has inherited.
#[test]
#[ignore = "another test starts it"]
fn forking() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let store = open(Path::new(&path));
    let value = work::value(1, LONG_BYTES);
    set(&*store, b"long", &value);
    let pinned = pin(&*store, b"long");
    // SAFETY: this process has one thread that does anything: it was started for this.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let was_readable = *pinned == value;
        drop(pinned);
        drop(store);
        // SAFETY: ends the child without the handlers of its parent.
        unsafe { libc::_exit(i32::from(!was_readable)) }
    }
    let mut status = 0;
    // SAFETY: the child is this process', and the status is a valid place.
    assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
    assert_eq!(status, 0, "the child reads what its parent pins");
    write_over_everything(&*store);
    assert!(*pinned == value, "the child has let go of it");
    println!("\nunchanged");
}

#[test]
fn a_forked_child_does_not_let_go_of_what_its_parent_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let variables = [("HAYPILE_TEST_PATH", path.display().to_string())];
    let mut child = child::start("pins::forking", &variables);
    let lines = child::lines(&mut child, "");
    assert!(child.wait().expect("its end").success(), "{lines:?}");
    assert!(lines.iter().any(|line| line == "unchanged"), "{lines:?}");
}
