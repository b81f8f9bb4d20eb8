//! A cache of two levels or three.

#![cfg(not(shuttle))]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod failing;
mod hooked;
mod model;
mod opened;
mod operations;
mod races;
mod staleness;
mod write_back;

use std::sync::Arc;
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::tier::{TierOptions, TieredStore};
use haypile::{ManualClock, SetOptions, Store, Written};

/// Longer than any test advances its clock.
const LONG: Duration = Duration::from_hours(1);

fn memory(size_bytes: u64, clock: &Arc<ManualClock>) -> Arc<dyn Store> {
    // One shard: a small store has room for few entries, and all of them may use it.
    let builder = MemoryBuilder::new(size_bytes).shards(Some(1));
    builder.clock(Arc::clone(clock) as Arc<_>).store().unwrap()
}

/// Returns options for a lower level without a TTL of its own.
fn options(stale: Duration) -> TierOptions {
    TierOptions::new().stale(stale).lower_ttl(None)
}

fn tier(
    upper: &Arc<dyn Store>,
    lower: &Arc<dyn Store>,
    options: TierOptions,
    clock: &Arc<ManualClock>,
) -> TieredStore {
    TieredStore::new(Arc::clone(upper), Arc::clone(lower), options, Arc::clone(clock) as Arc<_>)
}

fn set(store: &dyn Store, key: &str, value: &str) {
    let written = store.set(key.as_bytes(), value.as_bytes(), &SetOptions::set()).unwrap();
    assert_eq!(written, Written::Stored);
}

fn get(store: &dyn Store, key: &str) -> Option<String> {
    let value = store.get(key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

fn hits(store: &Arc<dyn Store>) -> u64 {
    store.stats().unwrap().hits
}
