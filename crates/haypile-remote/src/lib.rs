//! Caches on servers: memcached, and Redis or Valkey, alone or as a cluster, over TCP and Unix
//! sockets.
//!
//! ```no_run
//! let mut registry = haypile::Registry::new();
//! haypile_remote::register(&mut registry);
//! let store = registry.open("memcached://127.0.0.1:11211")?;
//! # Ok::<(), haypile::OpenError>(())
//! ```
//!
//! | URL | store |
//! |---|---|
//! | `memcached://127.0.0.1:11211`, `memcached:///run/memcached.sock` | one memcached |
//! | `memcached://a:11211,b:11211` | several; each key belongs to one of them |
//! | `redis://USER:PASSWORD@127.0.0.1:6379/0` | a database of Redis or Valkey |
//! | `redis+unix:///run/redis.sock?db=0` | the same over a Unix socket |
//! | `redis+cluster://USER:PASSWORD@a:6379,b:6379` | a Redis or Valkey Cluster; the URL names some of its nodes |
//!
//! Options: `timeout=` (how long an operation waits for the server; 250ms by default), `ttl=`,
//! `namespace=NAME` (the keys have the prefix `NAME:` on the server), `compute_wait=`, `leases=no` (no placeholders under keys that are
//! being computed), `record=`, `compress=`.
//!
//! # When the server does not answer
//!
//! A cache may forget, and here it does: **when a server does not answer in time, the operation is
//! answered as by an empty cache that retains nothing**, as `none://` does. Reads miss, `set` and
//! `add` succeed without effect, `replace` and `cas` find nothing, `incr` finds no counter.
//! [`Stats::unreachable`](haypile::Stats::unreachable) counts these operations, [`Store::warnings`]
//! names the server and the failure, and the log records it. Operations on all entries (`clear`,
//! `keys`, `len`, `bytes`) return an error instead, and so does opening a store when no server
//! answers.
//!
//! The server may have done an operation that failed: only its answer is missing. So that nobody
//! reads a value that was overwritten or deleted, this store deletes every key that it wanted to
//! change when the server is back, before it asks the server anything else about entries.
//!
//! The server may also do that operation later, from its receive buffer, after newer ones. The
//! connection is therefore half closed and kept, and later operations poll it, without waiting.
//! When the server has ended it, it has read all of it. Until then the operation's keys are **set
//! apart**: they miss and writes to them have no effect, as without a server, and
//! [`Stats::unreachable`](haypile::Stats::unreachable) counts that. Then they are deleted, and free
//! again. All other keys go on. If the server answers other requests for a second and still has
//! not ended the connection, the store resets it and frees the keys;
//! [`Stats::unfenced`](haypile::Stats::unfenced) counts these connections, and a warning names the
//! last server. At most 64 connections are kept; the keys of others are set apart for that second.
//!
//! An older value can still be read in these cases:
//!
//! - Other processes, and other stores of this process, may read it until this store reaches the
//!   server again.
//! - This store is closed, or its process ends, before the server has ended a lost connection. Both
//!   reset it, and what the server has received by then, it may do.
//! - `unfenced` has counted.
//! - A proxy between this store and the server pools connections, so that the end of one says
//!   nothing about the requests that were sent on it.
//! - There are more keys to remember than 4 MiB of those to delete, or 4 MiB of those set apart. A
//!   warning counts those left out.
//!
//! A `clear` that failed may be done late: it forgets newer values, and brings none back.
//!
//! A connection is not used again after any failure, so that a late answer is never taken for the
//! answer to another question. After a failure, operations do not wait for the server at all for a
//! while: 100 ms after the first, twice as long after each further one, at most 5 s; then one of
//! them tries again, and asks for a sign of life before it changes anything. A forked process opens
//! its own connections, and leaves the lost ones to its parent; it sets the same keys apart for a
//! second of answers.
//!
//! Several servers are independent: while one is down, its keys miss and the others stay in use.
//!
//! # Limits
//!
//! Single flight ([`Cache::get_or_compute`](haypile::Cache::get_or_compute)) is per process. TLS,
//! Redis Sentinel, and passwords over Unix sockets are not supported. Host names of memcached
//! servers are resolved once, when the store is opened; those of Redis are resolved for each
//! connection, and `timeout=` does not bound that.
//!
//! [`Store::warnings`]: haypile::Store::warnings

mod address;
mod counts;
mod deadline;
mod fence;
mod invalidations;
mod lease;
pub mod memcached;
mod options;
pub mod redis;
mod reservation;
mod server;

use std::sync::Arc;

use haypile::Registry;

/// Adds the URL schemes of remote stores to a registry: `memcached`, `redis`, `redis+unix` and `redis+cluster`.
pub fn register(registry: &mut Registry) {
    registry.register(Arc::new(memcached::MemcachedOpener));
    registry.register(Arc::new(redis::RedisOpener::tcp()));
    registry.register(Arc::new(redis::RedisOpener::unix()));
    registry.register(Arc::new(redis::RedisClusterOpener));
}
