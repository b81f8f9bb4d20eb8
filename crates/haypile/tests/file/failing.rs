//! Many callers ask for a key whose computation fails, as that of a backend that is down: one of them computes
//! at a time, in one process and in several.

use std::ops::Range;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haypile::{Cache, ComputeError, Error, Registry, SetOptions, Store};

use crate::child;

const CALLERS: u64 = 40;
/// Longer than any machine needs.
const LONG: Duration = Duration::from_mins(1);

fn open(path: &Path, options: &str) -> Arc<dyn Store> {
    let url = format!("file://{}?size=1MiB{options}", path.display());
    Registry::new().open(&url).expect("a store")
}

/// Counters that the callers of all processes share, in a file of their own.
struct Shared(Arc<dyn Store>);

impl Shared {
    fn open(path: &Path) -> Self {
        Self(open(&path.with_extension("shared"), ""))
    }

    /// Sets all counters to zero.
    fn begin(&self) {
        let names = ["computing", "computed", "overlaps"].map(str::to_owned).into_iter();
        let of_callers = (0..CALLERS).flat_map(|caller| [polled(caller), ended(caller)]);
        for name in names.chain(of_callers) {
            let written = self.0.set(name.as_bytes(), b"0", &SetOptions::set());
            assert!(written.expect("a write").is_stored());
        }
    }

    fn change(&self, change: impl Fn(&dyn Store) -> haypile::Result<Option<u64>>) -> u64 {
        loop {
            match change(&*self.0) {
                Err(Error::Busy { .. }) => thread::yield_now(),
                count => return count.expect("a count").expect("a counter"),
            }
        }
    }

    fn add(&self, name: &str) -> u64 {
        self.change(|store| store.incr(name.as_bytes(), 1))
    }

    fn subtract(&self, name: &str) {
        self.change(|store| store.decr(name.as_bytes(), 1));
    }

    fn get(&self, name: &str) -> u64 {
        let text = self.0.get(name.as_bytes()).expect("a read").expect("a counter");
        String::from_utf8(text).expect("digits").parse().expect("digits")
    }
}

fn polled(caller: u64) -> String {
    format!("polled-{caller}")
}

fn ended(caller: u64) -> String {
    format!("ended-{caller}")
}

/// Fails when all the others have waited for it, or have ended; or when one of them computes.
fn compute(shared: &Shared, caller: u64) -> Result<Vec<u8>, u64> {
    if shared.add("computing") > 1 {
        shared.add("overlaps");
    }
    let others = (0..CALLERS).filter(|other| *other != caller);
    let before: Vec<(u64, u64)> = others.map(|other| (other, shared.get(&polled(other)))).collect();
    let begin = Instant::now();
    let is_awaited = |&(other, before): &(u64, u64)| {
        shared.get(&polled(other)) > before || shared.get(&ended(other)) > 0
    };
    while shared.get("overlaps") == 0 && !before.iter().all(is_awaited) {
        assert!(begin.elapsed() < LONG, "the others wait, or have ended");
        thread::yield_now();
    }
    shared.add("computed");
    shared.subtract("computing");
    Err(caller)
}

fn call(path: &Path, callers: Range<u64>) {
    let cache = Cache::new(open(path, "&compute_wait=1h"));
    let shared = Shared::open(path);
    thread::scope(|scope| {
        for caller in callers {
            let (cache, shared) = (&cache, &shared);
            scope.spawn(move || {
                let value = cache.get_or_try_compute_until(
                    "key",
                    None,
                    || compute(shared, caller),
                    || {
                        shared.add(&polled(caller));
                        Ok(())
                    },
                );
                shared.add(&ended(caller));
                let Err(ComputeError::Compute(failed)) = value else { panic!("{value:?}") };
                assert_eq!(failed, caller, "each gets its own error");
            });
        }
    });
}

#[test]
#[ignore = "another test starts it"]
fn caller() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let number = |name| child::variable(name).expect("a variable").parse().expect("a number");
    call(Path::new(&path), number("HAYPILE_TEST_FROM")..number("HAYPILE_TEST_TO"));
}

fn start(path: &Path, callers: &Range<u64>) -> Child {
    let variables = [
        ("HAYPILE_TEST_PATH", path.display().to_string()),
        ("HAYPILE_TEST_FROM", callers.start.to_string()),
        ("HAYPILE_TEST_TO", callers.end.to_string()),
    ];
    child::start("failing::caller", &variables)
}

/// Calls from `processes` processes, or from this one.
fn check(processes: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let shared = Shared::open(&path);
    shared.begin();
    if processes == 1 {
        call(&path, 0..CALLERS);
    } else {
        let each = CALLERS / processes;
        let callers = (0..processes).map(|number| number * each..(number + 1) * each);
        let children: Vec<Child> = callers.map(|callers| start(&path, &callers)).collect();
        for child in children {
            let output = child.wait_with_output().expect("its end");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}");
        }
    }
    assert_eq!(shared.get("overlaps"), 0, "two of them computed at once");
    assert_eq!(shared.get("computed"), CALLERS, "each of them computed");
}

#[test]
fn threads_that_waited_for_a_failure_compute_one_at_a_time() {
    check(1);
}

#[test]
fn processes_that_waited_for_a_failure_compute_one_at_a_time() {
    check(4);
}
