//! Stores on real servers, which the tests start and end, and on simulated ones.
//!
//! A test whose server is not installed prints a message and passes; with
//! `HAYPILE_REQUIRE_RIVALS=1` it fails.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod cluster;
mod cluster_failure;
mod commands;
mod daemon;
#[path = "../../../haypile/tests/example/mod.rs"]
mod example;
mod failure;
mod false_cluster;
mod false_node;
mod fence;
mod fence_cluster;
mod garbage;
mod late;
mod lease;
mod memcached;
mod model;
mod nodes;
mod proxy;
mod redis;
mod signals;

use std::sync::Arc;

use haypile::{Clock, ManualClock, OpenError, Registry, SetOptions, Store, Ttl, Written};

/// Opens a store on the system's clock.
fn open(url: &str) -> Result<Arc<dyn Store>, OpenError> {
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    registry.open(url)
}

/// Opens a store on a clock that only the test moves.
fn open_by(clock: &Arc<ManualClock>, url: &str) -> Arc<dyn Store> {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    let mut registry = Registry::new().with_clock(clock);
    haypile_remote::register(&mut registry);
    registry.open(url).unwrap()
}

/// Writes an entry, which must be accepted.
fn put(store: &dyn Store, key: &[u8], value: &[u8]) {
    put_for(store, key, value, Ttl::Default);
}

/// Writes an entry with a TTL, which must be accepted.
fn put_for(store: &dyn Store, key: &[u8], value: &[u8], ttl: impl Into<Ttl>) {
    let written = store.set(key, value, &SetOptions::set().with_ttl(ttl)).unwrap();
    assert_eq!(written, Written::Stored);
}
