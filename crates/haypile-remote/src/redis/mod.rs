//! Redis and Valkey; 6.0 or later.
//!
//! The client is the crate `redis`, of which the blocking connection, the commands and the
//! pipelines are used. Its connections have a read and a write timeout, so that `timeout=` bounds
//! each wait for the server; an operation that takes several waits, as connecting anew, can take
//! as many times longer.
//!
//! # What Redis has and has not
//!
//! | | |
//! |---|---|
//! | keys | any, up to 65,535 bytes with the namespace |
//! | values | up to 512 MiB, the server's default bound (`proto-max-bulk-len`) |
//! | TTL | milliseconds, rounded up |
//! | versions | none, and `cas` is unsupported: see below |
//! | counters | as everywhere: from 0 to 2^64 - 1, read and written back if unchanged; Redis' own are signed, and make an entry where there is none |
//! | `clear` | `FLUSHDB`: the whole database, whoever wrote it; with `namespace=`, its entries one by one |
//! | `len` | `DBSIZE`; with `namespace=`, its entries are counted one by one |
//! | `keys` | `SCAN` |
//! | `bytes` | unsupported: the server counts itself, and not a database |
//!
//! # Why there are no versions
//!
//! Redis gives none. A version in front of each value would make the values unreadable to other
//! programs, and theirs to us. One derived from the value, which is how Redis 8 and Valkey compare
//! (`IFEQ`, `IFDEQ`), does not see that a value was changed and changed back. `WATCH` ties a version
//! to one connection. None of these is what [`Store`](haypile::Store) promises, so that it is said
//! not to be there.

mod cluster;
mod connection;
mod login;
mod many;
mod nodes;
mod opener;
mod store;
mod wire;

pub use cluster::RedisClusterOpener;
pub use opener::RedisOpener;
pub use store::RedisStore;
