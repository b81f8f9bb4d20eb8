//! Caches on servers: memcached, and Redis or Valkey, alone or as a cluster, over TCP and Unix sockets.
//!
//! ```no_run
//! let mut registry = haypile::Registry::new();
//! haypile_remote::register(&mut registry);
//! let store = registry.open("memcached://127.0.0.1:11211")?;
//! # Ok::<(), haypile::OpenError>(())
//! ```
//!
//! | URL | what it is |
//! |---|---|
//! | `memcached://127.0.0.1:11211`, `memcached:///run/memcached.sock` | one memcached |
//! | `memcached://a:11211,b:11211` | several; each key is on one of them |
//! | `redis://USER:PASSWORD@127.0.0.1:6379/0` | a database of Redis or Valkey |
//! | `redis+unix:///run/redis.sock?db=0` | the same over a socket |
//! | `redis+cluster://USER:PASSWORD@a:6379,b:6379` | a Redis or Valkey Cluster, by some of its nodes |
//!
//! Options: `timeout=` (how long an operation waits for the server; 250ms by default), `ttl=`,
//! `namespace=NAME` (the keys have the prefix `NAME:` on the server), `compute_wait=`, `record=`,
//! `compress=`.
//!
//! # When the server does not answer
//!
//! A cache may forget, and here it does: **what a server does not answer in time is answered as by
//! an empty cache that retains nothing**, as `none://` does. Reads miss, `set` and `add` are
//! accepted and not retained, `replace` and `cas` find nothing, `incr` finds no counter.
//! [`Stats::unreachable`](haypile::Stats::unreachable) counts these, [`Store::warnings`] names the
//! server and what happened, and it is logged. What concerns all entries (`clear`, `keys`, `len`,
//! `bytes`) is an error then. That nothing answers when a store is opened is an error as well.
//!
//! An operation that failed may still have been done: only its answer is missing. So that nobody
//! reads a value that was overwritten or deleted, each key that was to be changed is deleted when the
//! server is back, before anything else is asked of it. Three gaps remain: other processes may read
//! the old value until this one comes back to the server; this one keeps keys of up to 4 MiB for it,
//! and warns when there are more; and it does not outlive the process.
//!
//! A connection on which anything went wrong is closed, so that a late answer is never taken for that
//! of another question. After a failure, operations do not wait for the server at all for a while:
//! 100 ms after the first, twice as long after each further one, at most 5 s; then one of them
//! tries again. A forked process makes its own connections.
//!
//! Of several servers, each stands for itself: without one, its keys miss, and the others are used on.
//!
//! # What is not here
//!
//! Single flight ([`Cache::get_or_compute`](haypile::Cache::get_or_compute)) is per process. TLS,
//! Redis Sentinel, and passwords over Unix sockets are not supported. Names of memcached's hosts are
//! looked up once, when the store is opened; those of Redis with each connection, for which
//! `timeout=` does not count.
//!
//! [`Store::warnings`]: haypile::Store::warnings

mod address;
mod counts;
mod deadline;
mod debts;
pub mod memcached;
mod options;
pub mod redis;
mod reservation;
mod server;

use std::sync::Arc;

use haypile::Registry;

/// Adds `memcached`, `redis`, `redis+unix` and `redis+cluster` to the schemes of a registry.
pub fn register(registry: &mut Registry) {
    registry.register(Arc::new(memcached::MemcachedOpener));
    registry.register(Arc::new(redis::RedisOpener::tcp()));
    registry.register(Arc::new(redis::RedisOpener::unix()));
    registry.register(Arc::new(redis::RedisClusterOpener));
}
