//! A value is computed once, however many threads ask for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use crate::without_leases::WithoutLeases;
use haypile::{Cache, ComputeError, Error, Freshness, ManualClock, Registry, SetOptions, Version};

const THREADS: usize = 16;

/// Caches of this URL, with leases and without.
fn with_and_without_leases(registry: &Registry, url: &str) -> [Cache; 2] {
    let open = || registry.open(url).unwrap();
    [Cache::new(open()), Cache::new(Arc::new(WithoutLeases(open())))]
}

#[test]
fn many_threads_compute_once() {
    let cache = Cache::open("memory:").unwrap();
    let (runs, start) = (AtomicUsize::new(0), Barrier::new(THREADS));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                let value = cache.get_or_compute("key", None, || {
                    runs.fetch_add(1, Ordering::Relaxed);
                    b"value".to_vec()
                });
                assert_eq!(value.unwrap(), b"value");
            });
        }
    });
    assert_eq!(runs.into_inner(), 1);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"value");
}

/// Starts a computation that continues until it is told to end, and how.
fn hold(
    cache: &Cache,
    scope_end: mpsc::Receiver<bool>,
) -> (thread::JoinHandle<bool>, mpsc::Receiver<()>) {
    let (started, has_started) = mpsc::channel();
    let cache = cache.clone();
    let thread = thread::spawn(move || {
        let compute = || {
            started.send(()).unwrap();
            assert!(scope_end.recv().unwrap(), "told to panic");
            b"first".to_vec()
        };
        catch_unwind(AssertUnwindSafe(|| cache.get_or_compute("key", None, compute))).is_ok()
    });
    (thread, has_started)
}

#[test]
fn a_panic_goes_on_in_its_thread_and_releases_the_others() {
    let cache = Cache::open("memory:").unwrap();
    let (end, ended) = mpsc::channel();
    let (first, has_started) = hold(&cache, ended);
    has_started.recv().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let others: Vec<_> = (0..THREADS)
        .map(|_| {
            let (cache, runs) = (cache.clone(), Arc::clone(&runs));
            thread::spawn(move || {
                cache.get_or_compute("key", None, || {
                    runs.fetch_add(1, Ordering::Relaxed);
                    b"second".to_vec()
                })
            })
        })
        .collect();
    end.send(false).unwrap();
    assert!(!first.join().unwrap());
    for other in others {
        assert_eq!(other.join().unwrap().unwrap(), b"second");
    }
    assert!(runs.load(Ordering::Relaxed) >= 1);
}

#[test]
fn a_failure_is_the_callers_and_the_next_one_computes() {
    let cache = Cache::open("memory:").unwrap();
    let error = cache.get_or_try_compute("key", None, || Err("no")).unwrap_err();
    assert!(matches!(error, ComputeError::Compute("no")));
    assert_eq!(cache.get_or_compute("key", None, || b"yes".to_vec()).unwrap(), b"yes");
}

#[test]
fn a_value_that_is_not_retained_is_still_returned() {
    let none = Cache::open("none:").unwrap();
    assert_eq!(none.get_or_compute("key", None, || b"value".to_vec()).unwrap(), b"value");
    let small = Cache::open("memory:size=1KiB").unwrap();
    assert_eq!(small.get_or_compute("key", None, || vec![1; 4_096]).unwrap(), [1; 4_096]);
    let refused = |cache: &Cache| cache.compute_stats().refused_values;
    assert_eq!((refused(&none), refused(&small.clone())), (0, 1));
}

#[test]
fn a_value_that_is_computed_at_each_call_is_told_of() {
    let cache = Cache::open("memory:size=1KiB").unwrap();
    assert_eq!((cache.warnings(), cache.stats().unwrap().refused_values), (vec![], 0));
    for times in 1..=2 {
        assert_eq!(cache.get_or_compute("key", None, || vec![1; 4_096]).unwrap(), [1; 4_096]);
        let [warning] = &cache.warnings()[..] else { panic!("{:?}", cache.warnings()) };
        for part in [
            &format!("{times} computed values were not stored"),
            "computed again at each call",
            "4096 bytes is too large",
        ] {
            assert!(warning.contains(part), "{warning}");
        }
        assert_eq!(cache.stats().unwrap().refused_values, times);
        let text = cache.prometheus().unwrap();
        assert!(text.contains("haypile_refused_values_total{level=\"0\""), "{text}");
    }
    assert_eq!(cache.store().stats().unwrap().refused_values, 0);
}

#[test]
fn a_value_that_is_offered_and_refused_is_counted_and_the_old_one_is_gone() {
    let cache = Cache::open("memory:size=1KiB").unwrap();
    assert!(cache.offer("key", "value", SetOptions::set()).unwrap());
    assert!(!cache.offer("key", vec![1; 4_096], SetOptions::set()).unwrap());
    assert_eq!(cache.get("key").unwrap(), None);
    assert_eq!(cache.stats().unwrap().refused_values, 1);
    assert!(matches!(
        cache.offer("key", "value", SetOptions::set().with_ttl(Duration::ZERO)),
        Err(Error::ZeroTtl)
    ));
    cache.close().unwrap();
    assert!(matches!(cache.offer("key", "value", SetOptions::set()), Err(Error::Closed { .. })));
}

#[test]
fn what_the_cache_refuses_is_not_computed() {
    let cache = Cache::open("memory:").unwrap();
    let compute = || -> Vec<u8> { panic!("computed") };
    let key = vec![0; 65_536];
    assert!(matches!(cache.get_or_compute(key, None, compute), Err(Error::KeyTooLong { .. })));
    let zero = cache.get_or_compute("key", Duration::ZERO, compute);
    assert!(matches!(zero, Err(Error::ZeroTtl)));
}

#[test]
fn a_computation_that_asks_for_itself_is_an_error() {
    let cache = Cache::open("memory:").unwrap();
    let value = cache.get_or_try_compute("key", None, || {
        cache.get_or_compute("key", None, || b"inner".to_vec())
    });
    assert!(matches!(value, Err(ComputeError::Compute(Error::RecursiveCompute))));
    assert_eq!(cache.get("key").unwrap(), None);
}

/// A caller that waits longer than the bound computes for itself, and its value is stored.
#[test]
fn a_computation_that_takes_longer_than_the_bound_is_overtaken() {
    let cache = Cache::open("memory:compute_wait=1ms").unwrap();
    let slow = cache.get_or_compute("key", None, || {
        let overtakes = || {
            let poll = || Err("it waits on");
            cache.get_or_try_compute_until("key", None, || Ok(b"own".to_vec()), poll)
        };
        let own = thread::scope(|scope| scope.spawn(overtakes).join().unwrap());
        assert_eq!(own.unwrap(), b"own");
        b"slow".to_vec()
    });
    assert_eq!(slow.unwrap(), b"slow");
    assert_eq!(cache.get("key").unwrap().unwrap(), b"own");
}

/// Lets another thread overtake a computation, do `then`, and the computation end.
fn overtaken(cache: &Cache, ttl: Duration, then: impl FnOnce() + Send) {
    let slow = cache.get_or_compute("key", ttl, || {
        thread::scope(|scope| {
            let next = scope.spawn(|| {
                assert_eq!(cache.get_or_compute("key", ttl, || b"next".to_vec()).unwrap(), b"next");
                then();
            });
            next.join().unwrap();
        });
        b"slow".to_vec()
    });
    assert_eq!(slow.unwrap(), b"slow");
}

#[test]
fn an_overtaken_computation_does_not_bring_back_what_was_removed() {
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(clock.clone());
    for cache in with_and_without_leases(&registry, "memory:compute_wait=1ms") {
        overtaken_and_removed(&cache, &clock);
    }
}

fn overtaken_and_removed(cache: &Cache, clock: &ManualClock) {
    let ttl = Duration::from_mins(1);
    let expire = || clock.advance(Duration::from_secs(2));
    let delete = || assert!(cache.delete("key").unwrap());
    let delete_many = || assert!(cache.delete_many(&["other", "key"])[1].as_ref().unwrap());
    let clear = || cache.clone().clear().unwrap();
    let set = || {
        cache.set_with_ttl("key", b"newer", Duration::from_secs(1)).unwrap();
        expire();
    };
    let commit = || {
        let options = SetOptions::set().with_ttl(Duration::from_secs(1));
        assert!(cache.reserve_owned("key", 0, options).unwrap().commit().unwrap().is_stored());
        expire();
    };
    let removals: [&(dyn Fn() + Sync); 5] = [&delete, &delete_many, &clear, &set, &commit];
    for (number, remove) in removals.into_iter().enumerate() {
        overtaken(cache, ttl, remove);
        assert_eq!(cache.get("key").unwrap(), None, "removal {number}");
    }
    // Of the values that were computed, an older one does not follow a newer one either.
    overtaken(cache, Duration::from_secs(1), expire);
    assert_eq!(cache.get("key").unwrap(), None);
    overtaken(cache, ttl, || {});
    assert_eq!(cache.get("key").unwrap().unwrap(), b"next");
}

#[test]
fn the_stale_value_is_served_while_one_thread_refreshes() {
    let clock = Arc::new(ManualClock::new());
    let cache = Cache::new(Registry::new().with_clock(clock.clone()).open("memory:").unwrap());
    let (fresh, stale) = (Duration::from_secs(10), Duration::from_secs(5));
    let freshness = Freshness::new(fresh).with_stale(stale);
    let get = |value: &'static [u8]| cache.get_or_refresh("key", freshness, || value.to_vec());
    assert_eq!(get(b"1").unwrap(), b"1");
    clock.advance(Duration::from_nanos(9_999_999_999));
    assert_eq!(get(b"2").unwrap(), b"1");
    clock.advance(Duration::from_nanos(1));
    let refreshed = cache.get_or_refresh("key", freshness, || {
        let others = thread::scope(|scope| scope.spawn(|| get(b"3").unwrap()).join().unwrap());
        assert_eq!(others, b"1");
        b"2".to_vec()
    });
    assert_eq!(refreshed.unwrap(), b"2");
    assert_eq!(get(b"4").unwrap(), b"2");
    clock.advance(fresh + stale);
    assert_eq!(cache.get("key").unwrap(), None);
}

#[test]
fn a_value_that_is_set_during_the_computation_stays() {
    let cache = Cache::open("memory:").unwrap();
    let on_the_store = |value: &[u8]| {
        let written = cache.store().set(b"key", value, &SetOptions::set()).unwrap();
        assert!(written.is_stored());
    };
    let on_the_cache = |value: &[u8]| cache.set("key", value).unwrap();
    for set in [&on_the_cache as &dyn Fn(&[u8]), &on_the_store] {
        cache.delete("key").unwrap();
        let value = cache.get_or_compute("key", None, || {
            set(b"newer");
            b"older".to_vec()
        });
        assert_eq!(value.unwrap(), b"older");
        assert_eq!(cache.get("key").unwrap().unwrap(), b"newer");
    }
}

#[test]
fn a_deletion_counts_if_its_condition_holds() {
    let [_, cache] = with_and_without_leases(&Registry::new(), "memory:");
    let [kept, refused] = [b"another value".as_slice(), b"old"].map(|expected| {
        let computed = cache.get_or_compute(expected, None, || {
            // On the store, so that only the deletion can count.
            let set = cache.store().set(expected, b"old", &SetOptions::set());
            assert!(set.unwrap().is_stored());
            let deleted = cache.compare_and_delete(expected, expected).unwrap();
            assert_eq!(deleted, expected == b"old");
            assert!(!cache.delete_version(expected, Version::from_raw(u64::MAX)).unwrap());
            if !deleted {
                assert!(cache.store().delete(expected).unwrap());
            }
            b"computed".to_vec()
        });
        assert_eq!(computed.unwrap(), b"computed");
        cache.get(expected).unwrap()
    });
    assert_eq!((kept.as_deref(), refused), (Some(b"computed".as_slice()), None));
}

#[test]
fn a_value_that_is_set_during_a_refresh_stays() {
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(clock.clone());
    for cache in with_and_without_leases(&registry, "memory:") {
        let (fresh, stale) = (Duration::from_secs(10), Duration::from_secs(5));
        let freshness = Freshness::new(fresh).with_stale(stale);
        cache.get_or_refresh("key", freshness, || b"1".to_vec()).unwrap();
        clock.advance(fresh);
        let value = cache.get_or_refresh("key", freshness, || {
            let _ = cache.store().set(b"key", b"3", &SetOptions::set()).unwrap();
            b"2".to_vec()
        });
        assert_eq!(value.unwrap(), b"2");
        assert_eq!(cache.get("key").unwrap().unwrap(), b"3");
    }
}

#[test]
fn a_value_that_was_deleted_during_the_computation_is_not_stored() {
    for cache in with_and_without_leases(&Registry::new(), "memory:") {
        deleted_during_a_computation(&cache);
    }
}

fn deleted_during_a_computation(cache: &Cache) {
    let delete = || assert!(!cache.delete("key").unwrap());
    let delete_many = || assert!(!cache.delete_many(&["other", "key"])[1].as_ref().unwrap());
    let clear = || cache.clone().clear().unwrap();
    // On the store, so that only the deletion can be noticed.
    let set = || assert!(cache.store().set(b"key", b"", &SetOptions::set()).unwrap().is_stored());
    let delete_version = || {
        set();
        let version = cache.get_versioned("key").unwrap().unwrap().1;
        assert!(cache.delete_version("key", version).unwrap());
    };
    // A deletion on the store itself is not noticed: it is the write before it that is.
    let write_many = || {
        let written = cache
            .write_many(&[(b"other", b"", SetOptions::set()), (b"key", b"", SetOptions::set())]);
        assert!(written.into_iter().all(|written| written.unwrap().is_stored()));
        assert!(cache.store().delete(b"key").unwrap());
    };
    let reserve = || {
        let mut reservation = cache.reserve_owned("key", 5, SetOptions::add()).unwrap();
        reservation.buffer().copy_from_slice(b"value");
        assert!(reservation.commit().unwrap().is_stored());
        assert!(cache.store().delete(b"key").unwrap());
    };
    let removals: [&dyn Fn(); 6] =
        [&delete, &delete_many, &clear, &delete_version, &write_many, &reserve];
    for remove in removals {
        let value = cache.get_or_compute("key", None, || {
            remove();
            b"older".to_vec()
        });
        assert_eq!(value.unwrap(), b"older");
        assert_eq!(cache.get("key").unwrap(), None);
    }
}
