//! Stores that fail or do not answer: responses come all the same.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use haypile::url::{CacheUrl, Level};
use haypile::{
    Cache, Cursor, Durability, Error, Hit, Limits, Page, Reservation, Result, SetOptions, Stats,
    Store, Ttl, Written,
};
use haypile_http::{HttpCache, Purge, PurgeError};
use parking_lot::{Condvar, Mutex};

use super::origin::{Script, response};
use super::{Bench, URL};

/// The state of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Well,
    Fails,
    /// Its calls wait until it is well or fails.
    Hangs,
    /// It seems empty, and to take every write, as a server that cannot be reached does.
    Away,
}

type Interruption = Box<dyn FnOnce() + Send>;

/// A store that is as a test wants it. It is not one of those that are called without a bound.
struct Troubled {
    inner: Arc<dyn Store>,
    away: Arc<dyn Store>,
    state: Mutex<State>,
    changed: Condvar,
    /// The calls until something else happens.
    interruption: Mutex<Option<(usize, Interruption)>>,
}

impl fmt::Debug for Troubled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Troubled").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Troubled {
    fn new() -> Arc<Self> {
        let inner = Cache::open("memory:size=16MiB").expect("it opens").store().clone();
        let away = Cache::open("none:").expect("it opens").store().clone();
        let (state, changed) = (Mutex::new(State::Well), Condvar::new());
        Arc::new(Self { inner, away, state, changed, interruption: Mutex::default() })
    }

    /// Has something happen before this call, counted from 0.
    fn interrupt(&self, call: usize, interruption: impl FnOnce() + Send + 'static) {
        *self.interruption.lock() = Some((call, Box::new(interruption)));
    }

    /// Returns whether something that should happen never came to it.
    fn was_not_interrupted(&self) -> bool {
        self.interruption.lock().take().is_some()
    }

    fn set_state(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }

    fn well(&self) -> Result<&dyn Store> {
        let mut interruption = self.interruption.lock();
        match &mut *interruption {
            Some((0, _)) => {
                let (_, happen) = interruption.take().expect("it is there");
                drop(interruption);
                happen();
            }
            Some((calls, _)) => *calls -= 1,
            None => {}
        }
        let mut state = self.state.lock();
        while *state == State::Hangs {
            self.changed.wait(&mut state);
        }
        match *state {
            State::Well => Ok(&*self.inner),
            State::Away => Ok(&*self.away),
            _ => Err(Error::Unsupported { operation: "anything", store: self.describe() }),
        }
    }
}

impl Store for Troubled {
    fn url(&self) -> CacheUrl {
        CacheUrl::new(vec![Level::new("troubled").expect("a name")]).expect("one level")
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.well()?.get_into(key, buffer)
    }

    fn get_versioned_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.well()?.get_versioned_into(key, buffer)
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.well()?.set(key, value, options)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.well()?.reserve(key, value_bytes, options)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.well()?.delete(key)
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        self.well()?.touch(key, ttl)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.well()?.incr(key, delta)
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.well()?.decr(key, delta)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.well()?.contains(key)
    }

    fn clear(&self) -> Result<()> {
        self.well()?.clear()
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.well()?.keys(from, limit)
    }

    fn len(&self) -> Result<u64> {
        self.well()?.len()
    }

    fn bytes(&self) -> Result<u64> {
        self.well()?.bytes()
    }

    fn stats(&self) -> Result<Stats> {
        self.inner.stats()
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        self.well()?.flush(durability)
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_or_hangs_is_a_miss_and_delays_no_response_for_long() {
    for trouble in [State::Fails, State::Hangs] {
        let store = Troubled::new();
        let fields = [("cache-control", "max-age=60")];
        let origin = Script::new(move |_, _| Ok(response(200, &fields, vec![7; 300_000])));
        let bench = Bench::on(Cache::new(store.clone()), origin, |builder| {
            builder.store_limit(Duration::from_millis(if trouble == State::Fails {
                60_000
            } else {
                20
            }))
        });
        bench.get(URL).await;
        store.set_state(trouble);
        for _ in 0..3 {
            let answer = bench.get(URL).await;
            assert!(!answer.is_hit() && answer.body.len() == 300_000, "{trouble:?}");
            assert!(
                answer.cache_status().contains("not stored: the store does not answer"),
                "{answer:?}"
            );
        }
        store.set_state(State::Well);
        assert_eq!(bench.get(URL).await.body.len(), 300_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stops_in_the_middle_of_a_body_breaks_nothing() {
    for trouble in [State::Fails, State::Hangs] {
        let store = Troubled::new();
        let fields = [("cache-control", "max-age=60")];
        let troubled = store.clone();
        let origin = Script::new(move |_, _| {
            // The entry has been read, and the request is on its way.
            troubled.set_state(trouble);
            Ok(response(200, &fields, vec![7; 3_000_000]))
        });
        let bench = Bench::on(Cache::new(store.clone()), origin, |builder| {
            builder.store_limit(Duration::from_millis(20))
        });
        let answer = bench.get(URL).await;
        assert!(!answer.is_hit() && answer.body.len() == 3_000_000, "{trouble:?}");
        store.set_state(State::Well);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_takes_no_note_of_purges() {
    let store = Troubled::new();
    let origin = Script::fields(&[&[("cache-control", "max-age=60")]]);
    let bench = Bench::on(Cache::new(store.clone()), origin, |builder| builder);
    bench.get(URL).await;
    store.set_state(State::Away);
    for _ in 0..4 {
        assert_eq!(bench.cache.purge(Purge::url(URL)).await, Err(PurgeError::Store));
        for purge in [Purge::prefix(URL), Purge::group("g"), Purge::all(), Purge::all().soft()] {
            assert_eq!(bench.cache.purge(purge).await, Err(PurgeError::Store), "{purge:?}");
        }
        let soft = bench.cache.purge(Purge::url(URL).soft()).await;
        assert_eq!(soft, Err(PurgeError::Store));
    }
    store.set_state(State::Well);
    assert!(bench.get(URL).await.is_hit());
    assert_eq!(bench.cache.purge(Purge::url(URL)).await, Ok(true));
    assert_eq!(bench.cache.purge(Purge::prefix(URL)).await, Ok(true));
    assert!(!bench.get(URL).await.is_hit());
}

/// A change and its purge, by another process, before any call of the store that a request makes: nobody
/// gets later what was before it, also if the store evicts what it knew of the purge.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_before_any_call_of_the_store_is_about_what_is_on_its_way() {
    for (purge, evicted) in [
        (Purge::group("g"), ""),
        (Purge::group("g"), "http-group/"),
        (Purge::group("g"), "http-purges"),
        (Purge::group("g").soft(), ""),
        (Purge::group("g").soft(), "http-group/"),
        (Purge::prefix(URL), ""),
        (Purge::prefix(URL), "http-purges"),
        (Purge::prefix(URL).soft(), ""),
        (Purge::url(URL), ""),
        (Purge::url(URL).soft(), ""),
        (Purge::all(), ""),
    ] {
        for is_warm in [false, true] {
            for call in 0.. {
                let was_interrupted = purge_before(call, purge, evicted, is_warm).await;
                if !was_interrupted {
                    assert!(call > 3, "{call} calls: {purge:?}");
                    break;
                }
            }
        }
    }
}

/// Returns whether the request came to this call.
async fn purge_before(
    call: usize,
    purge: Purge<'static>,
    evicted: &'static str,
    is_warm: bool,
) -> bool {
    let store = Troubled::new();
    let now = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&now);
    let origin = Script::new(move |_, _| {
        let fields = [("cache-control", "max-age=60"), ("cache-groups", "\"g\"")];
        Ok(response(200, &fields, current.load(Ordering::SeqCst).to_string()))
    });
    let bench = Bench::on(Cache::new(store.clone()), origin, |builder| builder);
    if is_warm {
        bench.get(URL).await;
        bench.wait(60);
    }
    // As another process has it.
    let other = Cache::new(Arc::clone(&store.inner));
    let others = HttpCache::builder(other.clone()).build();
    store.interrupt(call, move || {
        now.store(1, Ordering::SeqCst);
        // A store in memory lets nobody wait.
        let purged = others.purge(purge).now_or_never().expect("it is done");
        purged.expect("it takes note");
        for key in other.keys().map(|key| key.expect("a key")) {
            if !evicted.is_empty() && key.starts_with(evicted.as_bytes()) {
                other.delete(&key).expect("it is there");
            }
        }
    });
    bench.get(URL).await;
    if store.was_not_interrupted() {
        return false;
    }
    let after = bench.get(URL).await;
    // Of what a soft purge has found in the store, it says so.
    let is_stale =
        after.cache_status() == "hit; ttl=-1" && format!("{purge:?}").contains("soft: true");
    assert!(after.text() == "1" || is_stale, "before call {call}, {purge:?} {evicted}: {after:?}");
    true
}
