//! memcached, 1.6.10 or later.
//!
//! The client is the crate `memcache`, of which we use the meta protocol's commands, answers and
//! connection. We do not use its pool and its clients: they connect over TCP only, ask a server
//! that is down again with each operation, and hash keys to servers by the standard library's
//! hasher, which may change with the compiler. The module is marked experimental, so its minor
//! version is pinned. We implement `stats` and `flush_all` of the old text protocol ourselves,
//! because no client crate reads settings.
//!
//! # Properties of memcached
//!
//! | | |
//! |---|---|
//! | keys | 1 to 250 bytes with the namespace; 186 if one of them is a blank or a control character, because the key is then sent as base64 |
//! | values | the server's `item_size_max` (1 MiB by default) less the key and its own 50 bytes |
//! | TTL | whole seconds, rounded up; because of the ticks of its clock an entry can expire up to a second early |
//! | versions | its CAS numbers, which `delete_version` compares as well; none if the server runs without them (`-C`) |
//! | `compare_and_delete` | compares, and deletes by CAS number; unsupported if the server runs without them (`-C`) |
//! | leases | the CAS number of the entry, or of a placeholder of ten minutes where there is none, which other programs read as an empty value; unsupported without CAS numbers (`-C`) and with `leases=no` |
//! | counters | its own: it also accepts a number with blanks or a sign before it, or a blank or a zero byte and anything behind it; and sometimes it refuses one of 2^63 or more, because it looks for a minus sign beyond its end (1.6.18) |
//! | `clear` | `flush_all`: everything that the servers hold, including entries of other clients; not with `namespace=` |
//! | `len`, `bytes` | the servers' `curr_items` and `bytes`, including entries of other clients and those that expired or were cleared but are not yet removed, and placeholders; not with `namespace=` |
//! | `keys` | unsupported |
//!
//! memcached subtracts in place and leaves blanks behind a number that became shorter. Writes mark
//! values that are counters by the client flags `0x4859_0000`, so that reads can tell these blanks
//! from blanks that were written.
//!
//! Several servers share the keys by rendezvous hashing: without one of them, only its own keys
//! move to others. Other servers do not replace one that is down: its keys miss.

mod admin;
mod connection;
mod lease;
mod many;
mod opener;
mod rendezvous;
mod store;
mod wire;

pub use opener::MemcachedOpener;
pub use store::MemcachedStore;
