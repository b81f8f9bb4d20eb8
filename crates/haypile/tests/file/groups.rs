//! Groups among processes, boots and handles.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haypile::file::hooks;
use haypile::{Cache, Durability, ManualClock, Registry, SetOptions, Written};

use crate::child;
use crate::places::Places;

fn open_with(path: &Path, options: &str) -> Cache {
    Cache::open(&format!("file://{}?size=1MiB{options}", path.display())).expect("a cache")
}

fn open(path: &Path) -> Cache {
    open_with(path, "")
}

fn set(cache: &Cache, key: &str, group: &str) {
    cache.in_groups([group]).expect("a name").set(key, "value").expect("a write");
}

fn is_there(cache: &Cache, key: &str) -> bool {
    let value = cache.get(key).expect("a read");
    assert!(value.as_deref().is_none_or(|value| value == b"value"), "{value:?}");
    assert_eq!(cache.contains(key).expect("a look"), value.is_some());
    value.is_some()
}

#[test]
fn an_invalidation_by_another_process_is_seen_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let cache = open(&path);
    set(&cache, "one", "group");
    set(&cache, "two", "other");
    let lease = cache.lease("three").expect("a lease");
    let variables = [("HAYPILE_TEST_PATH", path.display().to_string())];
    let mut child = child::start("groups::invalidator", &variables);
    assert!(child.wait().expect("its end").success());
    assert!(!is_there(&cache, "one") && is_there(&cache, "two"));
    let grouped = cache.in_groups(["group"]).expect("a name");
    let written = grouped.write("three", "value", SetOptions::leased(lease)).expect("an outcome");
    assert_eq!(written, Written::Revoked);
}

#[test]
#[ignore = "another test starts it"]
fn invalidator() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    open(Path::new(&path)).invalidate("group").expect("an invalidation");
}

/// Of those that only read, and of those that copy.
#[test]
fn who_only_reads_sees_invalidations_and_makes_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let cache = open(&path);
    set(&cache, "key", "group");
    for mode in ["ro", "copy"] {
        let reader = Cache::open(&format!("file://{}?mode={mode}", path.display()));
        let reader = reader.expect("a cache");
        assert!(is_there(&reader, "key"), "{mode}");
        let error = reader.invalidate("group").expect_err("it writes nothing").to_string();
        assert!(error.contains("invalidate") || error.contains("groups"), "{error}");
        cache.invalidate("group").expect("an invalidation");
        // Its copy of the file may be a second old.
        let is_old = mode == "copy";
        assert!(is_old || !is_there(&reader, "key"), "{mode}");
        drop(reader);
        let reader = Cache::open(&format!("file://{}?mode={mode}", path.display()));
        assert!(!is_there(&reader.expect("a cache"), "key"), "{mode}");
        set(&cache, "key", "group");
    }
}

#[test]
fn groups_of_one_name_in_two_namespaces_are_two() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let [one, other, none] =
        ["&namespace=one", "&namespace=other", ""].map(|options| open_with(&path, options));
    for cache in [&one, &other, &none] {
        set(cache, "key", "group");
    }
    one.invalidate("group").expect("an invalidation");
    assert_eq!([&one, &other, &none].map(|cache| is_there(cache, "key")), [false, true, true]);
    none.invalidate("group").expect("an invalidation");
    assert_eq!([&one, &other, &none].map(|cache| is_there(cache, "key")), [false, true, false]);
}

/// With eight words for thirty groups, an invalidation makes entries of other groups a miss as well, and leaves none of its own.
#[test]
fn groups_that_share_a_word_are_invalidated_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = open_with(&directory.path().join("cache"), "&groups=8");
    let name = |number: usize| format!("group {number}");
    let fill = || (0..30).for_each(|number| set(&cache, &name(number), &name(number)));
    for number in 0..30 {
        fill();
        cache.invalidate(name(number)).expect("an invalidation");
        assert!(!is_there(&cache, &name(number)));
        let left = (0..30).filter(|other| is_there(&cache, &name(*other))).count();
        assert!(left > 15 && left < 30, "{left} are left of 30: an eighth should go");
    }
}

#[test]
fn a_number_of_words_that_cannot_be_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    for groups in ["7", "16777217", "many"] {
        let url = format!("file://{}?size=1MiB&groups={groups}", path.display());
        let error = Cache::open(&url).expect_err("it is refused").to_string();
        assert!(error.contains("groups"), "{error}");
    }
    // As many as there is room for.
    set(&open_with(&path, "&groups=16777216"), "key", "group");
}

/// After a reboot, all is as it was when it was flushed, and the clock goes on from there.
#[test]
fn groups_outlive_a_reboot() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    hooks::set_boot_id(Some("before"));
    let cache = open(&path);
    for number in 0..5 {
        cache.invalidate(format!("group {number}")).expect("an invalidation");
    }
    set(&cache, "kept", "kept");
    set(&cache, "gone", "gone");
    cache.invalidate("gone").expect("an invalidation");
    cache.flush(Durability::Disk).expect("a flush");
    drop(cache);
    for boot in ["second", "third"] {
        hooks::set_boot_id(Some(boot));
        let reader = open_with(&path, "&mode=ro");
        assert!(is_there(&reader, "kept") && !is_there(&reader, "gone"), "{boot}, read-only");
        drop(reader);
        let cache = open(&path);
        assert!(is_there(&cache, "kept") && !is_there(&cache, "gone"), "{boot}");
        set(&cache, boot, boot);
        assert!(is_there(&cache, boot));
        cache.invalidate(boot).expect("an invalidation");
        assert!(!is_there(&cache, boot));
        set(&cache, boot, boot);
    }
    let cache = open(&path);
    assert!(is_there(&cache, "second") && is_there(&cache, "third"));
    cache.invalidate("kept").expect("an invalidation");
    assert!(!is_there(&cache, "kept") && is_there(&cache, "second"));
    hooks::set_boot_id(None);
}

/// The power fails, and takes the words with it but not the records: what has a number that is not known any more is a miss, for no later
/// invalidation could be told from earlier ones.
#[test]
fn numbers_that_were_lost_with_the_power_are_not_believed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    hooks::set_boot_id(Some("before"));
    let cache = open(&path);
    set(&cache, "early", "group");
    cache.invalidate("another").expect("an invalidation");
    cache.flush(Durability::Disk).expect("a flush");
    let flushed = fs::read(&path).expect("its bytes");
    for number in 0..100 {
        cache.invalidate(format!("group {number}")).expect("an invalidation");
    }
    set(&cache, "late", "group");
    drop(cache);
    // Everything but these words has come to the disk.
    let mut bytes = fs::read(&path).expect("its bytes");
    // The clock, and the numbers of groups.
    for range in [1024..1032, Places::of(&flushed).groups] {
        bytes[range.clone()].copy_from_slice(&flushed[range]);
    }
    fs::write(&path, &bytes).expect("it is written");

    hooks::set_boot_id(Some("after"));
    let cache = open(&path);
    assert!(is_there(&cache, "early"), "its number is known");
    assert!(!is_there(&cache, "late"), "its number is beyond the clock");
    // As many as it takes to come to the number of what was lost.
    for _ in 0..200 {
        cache.invalidate("unrelated").expect("an invalidation");
    }
    assert!(!is_there(&cache, "late"), "the clock begins beyond it");
    set(&cache, "new", "group");
    assert!(is_there(&cache, "new"));
    cache.invalidate("group").expect("an invalidation");
    assert!(!["early", "late", "new"].iter().any(|key| is_there(&cache, key)));
    hooks::set_boot_id(None);
}

/// The clock is lost, the words are not, and the wall clock was set back: what is written and computed is valid all the same.
#[test]
fn a_clock_that_was_lost_goes_on_above_all_words() {
    const YEARS: Duration = Duration::from_hours(24 * 365 * 50);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let open_at = |boot: &str, wall: Duration| {
        hooks::set_boot_id(Some(boot));
        let clock = Arc::new(ManualClock::new());
        clock.advance(wall);
        let url = format!("file://{}?size=1MiB&namespace=spaced", path.display());
        Cache::new(Registry::new().with_clock(clock).open(&url).expect("a store"))
    };
    drop(open_at("first", YEARS));
    // From here on, numbers go by the wall clock.
    let cache = open_at("second", YEARS);
    cache.clear().expect("a clearing");
    cache.invalidate("group").expect("an invalidation");
    drop(cache);
    let file = File::options().write(true).open(&path).expect("the file");
    file.write_all_at(&[0; 8], 1024).expect("the clock");
    let cache = open_at("third", Duration::from_secs(1));
    let grouped = cache.in_groups(["group"]).expect("a name");
    assert_eq!(grouped.get_or_compute("key", None, || b"value".to_vec()).expect("one"), b"value");
    assert!(is_there(&cache, "key"), "it was stored under a lease, in the group");
    cache.invalidate("group").expect("an invalidation");
    assert!(!is_there(&cache, "key"));
    hooks::set_boot_id(None);
}

#[cfg(feature = "crash-points")]
mod steps {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::stop::is_stopped;

    /// An invalidation that was killed has not returned: it is done or not, and harms no other.
    #[test]
    fn an_invalidator_that_is_killed_or_stopped_at_any_step_is_in_nobodys_way() {
        for step in ["invalidate.drawn", "invalidate.raised"] {
            for variable in ["HAYPILE_CRASH_AT", "HAYPILE_STOP_AT"] {
                let directory = tempfile::tempdir().expect("a directory");
                let path = directory.path().join("cache");
                let cache = open(&path);
                set(&cache, "before", "group");
                let lease = cache.lease("key").expect("a lease");
                let mut child = child::start(
                    "groups::invalidator",
                    &[
                        ("HAYPILE_TEST_PATH", path.display().to_string()),
                        (variable, step.to_owned()),
                    ],
                );
                let is_stop = variable == "HAYPILE_STOP_AT";
                if is_stop {
                    assert!(is_stopped(&child), "it comes to {step}");
                } else {
                    assert!(!child.wait().expect("its end").success(), "it comes to {step}");
                }
                let is_done = step == "invalidate.raised";
                assert_eq!(is_there(&cache, "before"), !is_done, "{variable} at {step}");
                // What was read since it drew its number is of after it.
                set(&cache, "since", "group");
                let grouped = cache.in_groups(["group"]).expect("a name");
                let written = grouped.write("key", "value", SetOptions::leased(lease));
                let written = written.expect("an outcome");
                assert_eq!(written.is_stored(), !is_done, "{variable} at {step}");
                if is_stop {
                    kill_process(Pid::from_child(&child), Signal::CONT).expect("it is there");
                    assert!(child.wait().expect("its end").success());
                    assert!(!is_there(&cache, "before") && !is_there(&cache, "key"), "{step}");
                }
                assert!(is_there(&cache, "since"), "{variable} at {step}");
                cache.invalidate("group").expect("an invalidation");
                let keys = ["before", "since", "key"];
                assert!(!keys.iter().any(|key| is_there(&cache, key)), "{variable} at {step}");
            }
        }
    }
}
