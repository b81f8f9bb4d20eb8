//! Redis and Valkey; 6.0 or later.
//!
//! The client is the crate `redis`, of which the blocking connection, the commands, the pipelines and
//! the slots of keys are used. `timeout=` bounds an operation's wait for one server's replies, to within
//! an eighth. What is looked at only before and after is a single reply or a large question whose bytes
//! come and go one by one: each of these pieces can take that long.
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
//! # A cluster
//!
//! `redis+cluster://HOST:PORT,HOST:PORT` names some nodes of a cluster; the others are asked of them.
//! All that stands above holds, and:
//!
//! - Each key is on the master that has its slot; replicas are never asked. Of many keys, each node is
//!   asked about its own in one round trip, one node after the other, so that of several that do not
//!   answer each can take a `timeout=`.
//! - A node that sends to another is followed, at most four times and as long as `timeout=` allows. The
//!   slots are then asked for anew; also, at most once a second, after a node did not answer.
//! - `clear`, `len` and `keys` go through all masters, and are errors if one of them does not answer or
//!   slots are nobody's. If other nodes have slots by the end, `clear` and `len` begin anew, at most four
//!   times in all, and are errors then. `keys` can miss keys whose slot moves meanwhile, and its cursor is
//!   an error if its node has no slots any more. Of a slot that is on its way from one node to another,
//!   all three can miss keys.
//! - Where the cluster refuses a key (`CLUSTERDOWN`), its node counts as one that does not answer.
//! - What is owed to a node that was away is owed to whom its slots go as well, to a replica that took
//!   over or to the node that has them now. Keys whose slot moves to a node that does not answer, and
//!   that are owed, are not there meanwhile; others of the node that they come from are. What the cluster itself loses is another thing: it replicates later, and a
//!   replica that takes over can have values that its master had overwritten or deleted already.
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
