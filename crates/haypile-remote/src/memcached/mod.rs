//! memcached, 1.6.10 or later.
//!
//! The client is the crate `memcache`, of which the meta protocol's commands, answers and connection
//! are used. Its own pool and its clients are not: they connect over TCP only, ask a server that is
//! down again with each operation, and hash keys to servers by the standard library's hasher, which
//! may change with the compiler. The module is called experimental, so that its minor version is
//! pinned. Of the old text protocol, `stats` and `flush_all` are asked by hand, for no client
//! crate asks for settings.
//!
//! # What memcached has and has not
//!
//! | | |
//! |---|---|
//! | keys | 1 to 250 bytes with the namespace; 186 if one of them is a blank or a control character, for then the key is sent as base64 |
//! | values | what the server's `item_size_max` (1 MiB by default) leaves beside the key and its own 50 bytes |
//! | TTL | whole seconds, rounded up; by the ticks of its clock an entry can leave up to a second early |
//! | versions | its CAS numbers, which `delete_version` compares as well; none where the server runs without (`-C`) |
//! | counters | its own: it also takes a number for one that has blanks or a sign before it, or a blank or a zero byte and anything behind it; and one of 2^63 or more it sometimes takes for none, for it looks for a minus sign beyond its end (1.6.18) |
//! | `clear` | `flush_all`: everything that the servers hold, whoever wrote it; not with `namespace=` |
//! | `len`, `bytes` | the servers' `curr_items` and `bytes`, whoever wrote them, with entries that expired or were cleared and have not been met since; not with `namespace=` |
//! | `keys` | unsupported |
//!
//! memcached subtracts in place and leaves blanks behind a number that became shorter. Values that are
//! counters are marked by the client flags `0x4859_0000` when they are written, so that the blanks can
//! be told from such that were written.
//!
//! Several servers share the keys by rendezvous hashing: without one of them, only its own keys
//! are on others. A server that is down is not replaced by others: its keys miss.

mod admin;
mod connection;
mod many;
mod opener;
mod ring;
mod store;
mod wire;

pub use opener::MemcachedOpener;
pub use store::MemcachedStore;
