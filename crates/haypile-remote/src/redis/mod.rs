//! Redis and Valkey; 6.0 or later.
//!
//! The client is the crate `redis`, of which we use the commands, the pipelines with their packing,
//! the parser of replies and the slots of keys. The sockets are ours, because the crate's connection
//! does not give its socket away, which a lost connection needs (see the
//! [crate's documentation](crate#when-the-server-does-not-answer)). `timeout=` bounds an
//! operation's wait for one server's replies, to within an eighth.
//!
//! `docs/engine.md` lists the commands that each operation needs, for users with ACLs.
//!
//! # Properties of Redis
//!
//! | | |
//! |---|---|
//! | keys | any, up to 65,535 bytes with the namespace |
//! | values | up to 512 MiB, the server's default bound (`proto-max-bulk-len`) |
//! | TTL | milliseconds, rounded up |
//! | versions | none, and `cas` is unsupported: see below |
//! | leases | the SHA-1 of the value, or a placeholder of 32 bytes and ten minutes where there is none, which other programs read as a value; scripts compare them; unsupported with `leases=no` |
//! | `add`, `replace`, `touch` | scripts, to which a placeholder is nothing |
//! | `compare_and_delete` | a script (`EVAL`) compares and deletes |
//! | counters | as in every store: from 0 to 2^64 - 1, read and written back if unchanged; Redis' own are signed, and create a missing entry |
//! | `clear` | `FLUSHDB`: the whole database, including entries of other clients; with `namespace=`, its entries one by one |
//! | `len` | `DBSIZE`; with `namespace=`, its entries are counted one by one; placeholders count |
//! | `keys` | `SCAN`, without the keys of placeholders |
//! | `bytes` | unsupported: the server counts its own memory, and not that of a database |
//!
//! # A cluster
//!
//! `redis+cluster://HOST:PORT,HOST:PORT` names some nodes of a cluster, which name the others. All
//! of the above holds, and:
//!
//! - Each key is on the master that has its slot; replicas are never asked. A batch asks each node
//!   about its own keys in one round trip, one node after the other, so that each of several that
//!   do not answer can take a `timeout=`.
//! - A redirection to another node is followed, at most four times and within `timeout=`. The slots
//!   are then read again; they are also read, at most once a second, after a node did not answer.
//! - `clear`, `len` and `keys` visit all masters, and are errors if one of them does not answer or
//!   some slots have no node. `clear`, and `len` of a namespace, go on while slots move: they visit
//!   the node that has each slot, and again those that got slots in the course of that, or are
//!   getting them; they fail after eight visits per node. `len` without a namespace counts again if
//!   slots have moved by the end, and fails after four counts. `keys` can miss keys whose slot
//!   moves in the meantime, and its cursor is an error if its node no longer has slots.
//! - If the cluster refuses a key (`CLUSTERDOWN`), its node counts as one that does not answer.
//! - The pending invalidations of a node that was away also become pending for the nodes that take
//!   over its slots: a replica that was promoted, or the new owner. Pending keys whose slot moves
//!   to a node that does not answer miss until it does; other keys of the previous node stay
//!   available. What the cluster itself loses is another matter: it replicates asynchronously, and
//!   a promoted replica can have values that its master had already overwritten or deleted.
//!
//! # Why there are no versions
//!
//! Redis has none. A version in front of each value would make the values unreadable to other
//! programs, and theirs to us. A version derived from the value, which is how Redis 8 and Valkey
//! compare (`IFEQ`, `IFDEQ`), does not detect that a value was changed and changed back. `WATCH`
//! ties a version to one connection. None of these keeps the promises of [`Store`](haypile::Store),
//! so versions are unsupported. [`compare_and_delete`](haypile::Store::compare_and_delete) needs none:
//! it promises to delete a certain value, whenever that was written.

mod cluster;
mod connection;
mod lease;
mod login;
mod many;
mod nodes;
mod opener;
mod refusal;
mod settings;
mod store;
mod wire;

pub use cluster::RedisClusterOpener;
pub use opener::RedisOpener;
pub use store::RedisStore;
