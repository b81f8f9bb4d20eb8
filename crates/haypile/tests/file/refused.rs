//! Refusals by the kernel, call by call and limit by limit: no file is left behind, and errors name the
//! call or the limit.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haypile::{OpenError, Registry, SetOptions, Store};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::child;
use crate::seccomp::{Refusal, refuse};

fn open(path: &Path, options: &str) -> Result<Arc<dyn Store>, OpenError> {
    Registry::new().open(&format!("file://{}?{options}", path.display()))
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).expect("a write").is_stored());
}

/// Runs something in a thread to which a system call is refused. `None`, with a line that says so:
/// there are no filters here.
fn refusing<R: Send>(
    call: libc::c_long,
    argument: Option<(u32, i32)>,
    errno: i32,
    run: impl FnOnce() -> R + Send,
) -> Option<R> {
    let argument = argument.map(|(number, value)| (number, value.cast_unsigned()));
    let refusal = Refusal { call, argument, errno: errno.cast_unsigned() };
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || match refuse(&[refusal]) {
            Ok(()) => Some(run()),
            Err(error) => {
                println!("skipped: no filter of system calls can be installed ({error})");
                None
            }
        });
        thread.join().expect("no panic")
    })
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder");
    names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
}

/// Calls that a file cannot be made without, and their arguments.
const NEEDED: [(&str, libc::c_long, Option<(u32, i32)>); 7] = [
    ("fcntl(F_OFD_SETLK)", libc::SYS_fcntl, Some((1, libc::F_OFD_SETLK))),
    ("fcntl(F_OFD_GETLK)", libc::SYS_fcntl, Some((1, libc::F_OFD_GETLK))),
    ("mmap", libc::SYS_mmap, Some((3, libc::MAP_SHARED))),
    ("madvise(MADV_DONTFORK)", libc::SYS_madvise, Some((2, libc::MADV_DONTFORK))),
    ("madvise(MADV_WIPEONFORK)", libc::SYS_madvise, Some((2, libc::MADV_WIPEONFORK))),
    ("fchmod", libc::SYS_fchmod, None),
    ("fsync", libc::SYS_fsync, None),
];

#[test]
fn a_file_that_is_refused_is_not_left_behind_and_the_error_names_the_call() {
    for (name, call, argument) in NEEDED {
        for errno in [libc::EPERM, libc::ENOSYS, libc::EINVAL] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("cache");
            let opened = refusing(call, argument, errno, || open(&path, "size=8MiB").map(drop));
            let Some(opened) = opened else { return };
            let error = opened.expect_err(name).to_string();
            let parts =
                [path.to_str().expect("a path"), name, "failed", &format!("(os error {errno})")];
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}: {error}");
            assert_eq!(error.contains("seccomp"), errno != libc::EINVAL, "{error}");
            assert_eq!(names(directory.path()), [""; 0], "{name}");
        }
    }
}

#[test]
fn a_cache_stays_where_the_file_that_should_replace_it_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    set(&*open(&path, "size=1MiB").expect("a store"), b"key", b"value");
    for (name, call, argument) in NEEDED {
        let recreate = || open(&path, "size=1MiB&recreate=yes").map(drop);
        let Some(opened) = refusing(call, argument, libc::EPERM, recreate) else { return };
        assert!(opened.is_err(), "{name}");
        assert_eq!(names(directory.path()), ["cache"], "{name}");
        let store = open(&path, "").expect("a store");
        assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]), "{name}");
    }
}

#[test]
fn an_existing_file_says_which_call_was_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    set(&*open(&path, "size=1MiB").expect("a store"), b"key", b"value");
    for (name, call, argument) in &NEEDED[..5] {
        let opened = refusing(*call, *argument, libc::EPERM, || open(&path, "").map(drop));
        let Some(opened) = opened else { return };
        let error = opened.expect_err(name).to_string();
        assert!(error.contains(name) && error.contains("failed"), "{error}");
        assert!(!error.contains("places for processes"), "{error}");
    }
    // A process that only reads needs to ask about nobody.
    let getlk = Some((1, libc::F_OFD_GETLK));
    let read = || open(&path, "mode=ro").expect("a store").get(b"key").expect("a read");
    let Some(found) = refusing(libc::SYS_fcntl, getlk, libc::EPERM, read) else { return };
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
}

#[test]
fn refused_advice_prevents_nothing() {
    for advice in [libc::MADV_HUGEPAGE, libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        let use_it = || {
            for options in ["size=1MiB&prefault=yes", "prefault=yes"] {
                set(&*open(&path, options).expect("a store"), b"key", b"value");
            }
        };
        if refusing(libc::SYS_madvise, Some((2, advice)), libc::EPERM, use_it).is_none() {
            return;
        }
    }
}

#[test]
fn a_file_is_made_where_renaming_without_replacing_is_refused() {
    for errno in [libc::EPERM, libc::ENOSYS, libc::EINVAL] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        let make = || {
            let store = open(&path, "size=1MiB").expect("a link serves as well");
            set(&*store, b"key", b"value");
        };
        if refusing(libc::SYS_renameat2, None, errno, make).is_none() {
            return;
        }
        assert_eq!(names(directory.path()), ["cache"]);
    }
}

fn allocated_bytes(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").blocks() * 512
}

#[test]
fn room_is_reserved_where_the_file_system_cannot_allocate() {
    for errno in [libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL, libc::EPERM] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache");
        let make = || set(&*open(&path, "size=3MiB").expect("a store"), b"key", b"value");
        if refusing(libc::SYS_fallocate, None, errno, make).is_none() {
            return;
        }
        assert!(allocated_bytes(&path) >= 3 << 20, "{errno}");
        let store = open(&path, "").expect("a store");
        assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    }
}

/// A copy of a file in which something has been set, with a page of zeros.
fn copy_of(path: &Path) -> (PathBuf, u64) {
    set(&*open(path, "size=2MiB").expect("a store"), b"key", b"value");
    let copy = path.with_file_name("copy");
    fs::copy(path, &copy).expect("copied");
    let bytes = fs::read(&copy).expect("its bytes");
    let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
    // At the end: nobody writes there soon.
    let page = bytes.chunks(4096).rposition(is_zero).expect("a page that was never written");
    (copy, page as u64 * 4096)
}

/// Makes a hole; says whether the file system can.
fn punch(file: &fs::File, at: u64) -> bool {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let punched = rustix::fs::fallocate(file, flags, at, 4096);
    if let Err(error) = punched {
        println!("skipped: this file system does not make holes ({error})");
    }
    punched.is_ok()
}

#[test]
fn a_hole_is_filled_though_the_file_system_counts_more_than_the_size() {
    let directory = tempfile::tempdir().expect("a directory");
    let (copy, page) = copy_of(&directory.path().join("cache"));
    let file = fs::OpenOptions::new().write(true).open(&copy).expect("a file");
    let size_bytes = file.metadata().expect("a file").len();
    // What lies behind the end of a file, and what describes it, counts as well.
    let keeps_size = FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, keeps_size, size_bytes, 1 << 20).expect("room");
    if !punch(&file, page) {
        return;
    }
    let before = allocated_bytes(&copy);
    assert!(before >= size_bytes, "{before}");
    let store = open(&copy, "").expect("a store");
    assert!(allocated_bytes(&copy) >= before + 4096);
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
}

#[test]
fn holes_are_filled_with_zeros_where_the_file_system_cannot_allocate_and_nobody_uses_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let (copy, page) = copy_of(&directory.path().join("cache"));
    let file = fs::OpenOptions::new().write(true).open(&copy).expect("a file");
    if !punch(&file, page) {
        return;
    }
    let is_hole = || rustix::fs::seek(&file, SeekFrom::Hole(page)) == Ok(page);
    assert!(is_hole());
    let open_copy = || {
        let open = || open(&copy, "").expect("a store");
        refusing(libc::SYS_fallocate, None, libc::EOPNOTSUPP, open)
    };
    let Some(store) = open_copy() else { return };
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    assert!(!is_hole());
    // Now it is in use: zeros could be written over what its users write.
    assert!(punch(&file, page));
    drop(open_copy());
    assert!(is_hole());
}

#[test]
#[ignore = "another test starts it"]
fn opener() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    if let Some(bytes) = child::variable("HAYPILE_TEST_FILE_SIZE") {
        let most = Some(bytes.parse().expect("a number"));
        setrlimit(Resource::Fsize, Rlimit { current: most, maximum: None }).expect("a limit");
    }
    if let Some(group) = child::variable("HAYPILE_TEST_GROUP") {
        fs::write(group, std::process::id().to_string()).expect("a member");
    }
    let options = child::variable("HAYPILE_TEST_OPTIONS").expect("options");
    match open(Path::new(&path), &options) {
        Ok(store) => {
            set(&*store, b"key", b"value");
            println!("\ntold opened");
        }
        Err(error) => println!("\ntold {error}"),
    }
}

/// Opens a file in another process under these conditions. Returns its words; an error is its end by
/// a signal.
fn told_by(path: &Path, options: &str, variables: &[(&str, String)]) -> Result<String, String> {
    let mut all = vec![
        ("HAYPILE_TEST_PATH", path.display().to_string()),
        ("HAYPILE_TEST_OPTIONS", options.to_owned()),
    ];
    all.extend_from_slice(variables);
    let mut child = child::start("refused::opener", &all);
    let told = child::lines(&mut child, "told ");
    let status = child.wait().expect("its end");
    if status.success() { Ok(told.concat()) } else { Err(status.to_string()) }
}

#[test]
fn a_file_above_the_limit_of_sizes_is_an_error_and_not_a_signal() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let limit = [("HAYPILE_TEST_FILE_SIZE", (2 << 20).to_string())];
    let error = told_by(&path, "size=3MiB", &limit).expect("no signal");
    assert!(error.contains("at most 2097152 (RLIMIT_FSIZE)"), "{error}");
    assert_eq!(names(directory.path()), [""; 0]);
    assert_eq!(told_by(&path, "size=2MiB", &limit).as_deref(), Ok("opened"));
    // A file that is there is not written beyond its end.
    let (copy, page) = copy_of(&directory.path().join("other"));
    let file = fs::OpenOptions::new().write(true).open(&copy).expect("a file");
    if punch(&file, page) {
        let limit = [("HAYPILE_TEST_FILE_SIZE", "4096".to_owned())];
        assert_eq!(told_by(&copy, "", &limit).as_deref(), Ok("opened"));
    }
}

/// A control group that lets its processes have some memory, with another one in it.
struct Groups {
    outer: PathBuf,
    inner: PathBuf,
}

impl Groups {
    /// `None`, with a line that says so, where this process cannot make one.
    fn new(limit_bytes: u64) -> Option<Self> {
        let name = format!("haypile-test-{}", std::process::id());
        let places =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        for (place, limit) in places {
            let outer = Path::new(place).join(&name);
            let groups = Self { inner: outer.join("inner"), outer };
            if fs::create_dir(&groups.outer).is_ok()
                && fs::write(groups.outer.join(limit), limit_bytes.to_string()).is_ok()
                && fs::create_dir(&groups.inner).is_ok()
            {
                return Some(groups);
            }
        }
        println!("skipped: no control group with a limit of memory can be made here");
        None
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for group in [&self.inner, &self.outer] {
            // A process that has just ended may still be in it.
            for _ in 0..10_000 {
                if fs::remove_dir(group).is_ok() || !group.exists() {
                    break;
                }
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn a_file_in_memory_above_the_limit_of_its_control_group_is_an_error_and_not_a_kill() {
    let memory = Path::new("/dev/shm");
    let directory = tempfile::tempdir_in(memory).expect("a directory");
    let Some(groups) = Groups::new(64 << 20) else { return };
    let path = directory.path().join("cache");
    let member = groups.inner.join("cgroup.procs").display().to_string();
    let variables = [("HAYPILE_TEST_GROUP", member)];
    let error = told_by(&path, "size=128MiB", &variables).expect("no kill");
    let limit = groups.outer.display().to_string();
    assert!(error.contains(&limit) && error.contains("allows 67108864 bytes"), "{error}");
    assert_eq!(names(directory.path()), [""; 0]);
    assert_eq!(told_by(&path, "size=8MiB", &variables).as_deref(), Ok("opened"));
    // Holes of a file that is there take memory as well.
    let (copy, _) = copy_of(&directory.path().join("other"));
    drop(open(&directory.path().join("large"), "size=128MiB").expect("a store"));
    let bytes = fs::read(directory.path().join("large")).expect("its bytes");
    let file = fs::File::create(&copy).expect("a file");
    file.set_len(bytes.len() as u64).expect("a hole");
    for (number, page) in (0_u64..).zip(bytes.chunks(4096)) {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, number * 4096).expect("written");
        }
    }
    let error = told_by(&copy, "", &variables).expect("no kill");
    assert!(error.contains(&limit), "{error}");
}
