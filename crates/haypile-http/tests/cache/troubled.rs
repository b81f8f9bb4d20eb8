//! Stores that fail or do not answer: responses come all the same.

use std::sync::Arc;
use std::time::Duration;

use haypile::url::{CacheUrl, Level};
use haypile::{
    Cache, Cursor, Durability, Error, Hit, Limits, Page, Reservation, Result, SetOptions, Stats,
    Store, Ttl, Written,
};
use haypile_http::{Purge, PurgeError};
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

/// A store that is as a test wants it. It is not one of those that are called without a bound.
#[derive(Debug)]
struct Troubled {
    inner: Arc<dyn Store>,
    away: Arc<dyn Store>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Troubled {
    fn new() -> Arc<Self> {
        let inner = Cache::open("memory:size=16MiB").expect("it opens").store().clone();
        let away = Cache::open("none:").expect("it opens").store().clone();
        Arc::new(Self { inner, away, state: Mutex::new(State::Well), changed: Condvar::new() })
    }

    fn set_state(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }

    fn well(&self) -> Result<&dyn Store> {
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
            assert!(answer.cache_status().contains("the store does not answer"), "{answer:?}");
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
