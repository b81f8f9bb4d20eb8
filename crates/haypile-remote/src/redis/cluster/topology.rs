//! The nodes of a cluster and their slots.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use redis::Value;
use redis::cluster_routing::Slot;
use xxhash_rust::xxh3::xxh3_64;

use crate::address::Address;
use crate::deadline::Lost;
use crate::redis::nodes::Node;

/// The number of hash slots of a Redis Cluster.
pub(super) const SLOTS: usize = 16_384;

/// A range of consecutive hash slots, with the address of the node that has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    first: u16,
    last: u16,
    address: Address,
}

/// Parses the reply of the node at address `asked` to `CLUSTER SLOTS`; returns the ranges of hash slots in ascending
/// order.
pub(super) fn ranges(reply: Value, asked: &Address) -> Result<Vec<Range>, Lost> {
    let Value::Array(items) = reply else { return Err(nonsense()) };
    let mut ranges = Vec::new();
    for item in items {
        let Value::Array(parts) = item else { return Err(nonsense()) };
        let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice()
        else {
            return Err(nonsense());
        };
        let slot =
            |number: &i64| u16::try_from(*number).ok().filter(|slot| usize::from(*slot) < SLOTS);
        let (Some(first), Some(last)) = (slot(first), slot(last)) else { return Err(nonsense()) };
        if first > last {
            return Err(nonsense());
        }
        if let Some(address) = place(primary, asked)? {
            ranges.push(Range { first, last, address });
        }
    }
    if ranges.is_empty() {
        return Err(Lost::because("it knows of no node with slots"));
    }
    ranges.sort_by_key(|range| range.first);
    let is_apart = ranges.is_sorted_by(|range, next| range.last < next.first);
    if is_apart { Ok(ranges) } else { Err(nonsense()) }
}

/// Returns the address of a node; `None` if the asked node does not know it.
fn place(node: &[Value], asked: &Address) -> Result<Option<Address>, Lost> {
    let [host, Value::Int(port), ..] = node else { return Err(nonsense()) };
    let host = match host {
        Value::Nil => "",
        Value::BulkString(host) => str::from_utf8(host).map_err(|_| nonsense())?,
        Value::SimpleString(host) => host,
        _ => return Err(nonsense()),
    };
    if host == "?" {
        return Ok(None);
    }
    let port = u16::try_from(*port).map_err(|_| nonsense())?;
    Address::named_by(asked, host, port).map(Some).ok_or_else(nonsense)
}

fn nonsense() -> Lost {
    Lost::because("its answer to 'CLUSTER SLOTS' is not that of a Redis Cluster node")
}

/// A cluster node that has hash slots.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) address: Address,
    /// The number by which a cursor over keys names the node. It is derived from the address, so that it stays the same
    /// when other nodes change.
    pub(super) number: u64,
    pub(super) node: Arc<Node>,
}

/// The nodes of a cluster and their hash slots (topology), as one of the nodes reported them.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// The number of topologies of the cluster that were known before this one.
    pub(super) generation: u64,
    /// The cluster nodes that have hash slots, in the order of their numbers.
    pub(super) members: Vec<Member>,
    /// The ranges that the topology was built from.
    ranges: Vec<Range>,
    /// The node of each slot, as an index into `members`.
    slots: HashMap<Slot, u16>,
}

impl Topology {
    /// Creates the topology of a cluster from ranges of hash slots. `node_at` returns the node at an address.
    pub(super) fn new(ranges: Vec<Range>, mut node_at: impl FnMut(&Address) -> Arc<Node>) -> Self {
        let number = |address: &Address| xxh3_64(address.to_string().as_bytes());
        let addresses: HashSet<_> = ranges.iter().map(|range| &range.address).collect();
        let mut numbered: Vec<_> =
            addresses.into_iter().map(|address| (number(address), address)).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        let places: HashMap<_, _> = numbered.iter().map(|(_, address)| *address).zip(0..).collect();
        let slots = ranges
            .iter()
            .flat_map(|range| (range.first..=range.last).map(|slot| (slot, &range.address)))
            .filter_map(|(slot, address)| Some((Slot::new(slot)?, places[address])))
            .collect();
        let member = |(number, address): (u64, &Address)| Member {
            address: address.clone(),
            number,
            node: node_at(address),
        };
        let members = numbered.into_iter().map(member).collect();
        Self { generation: 0, members, ranges, slots }
    }

    /// Returns the cluster node that has the hash slot of a key; `None` if no node has it.
    pub(super) fn member_of(&self, key: &[u8]) -> Option<&Member> {
        self.slots.get(&Slot::for_key(key)).map(|at| &self.members[usize::from(*at)])
    }

    /// Returns the address of the cluster node that has the hash slot with this number; `None` if no node has it.
    pub(super) fn owner_of(&self, slot: usize) -> Option<&Address> {
        let has =
            |range: &&Range| (usize::from(range.first)..=usize::from(range.last)).contains(&slot);
        self.ranges.iter().find(has).map(|range| &range.address)
    }

    /// Returns the hash slots of the cluster node at an address.
    pub(super) fn slots_of(&self, address: &Address) -> impl Iterator<Item = u16> {
        let own = self.ranges.iter().filter(move |range| range.address == *address);
        own.flat_map(|range| range.first..=range.last)
    }

    /// Returns the cluster node at an address; `None` if none with hash slots is there.
    pub(super) fn node_at(&self, address: &Address) -> Option<&Arc<Node>> {
        self.members.iter().find(|member| member.address == *address).map(|member| &member.node)
    }

    /// Whether a cluster node has the hash slot of a key.
    pub(super) fn has(&self, node: &Arc<Node>, key: &[u8]) -> bool {
        self.member_of(key).is_some_and(|member| Arc::ptr_eq(&member.node, node))
    }

    /// Returns the number of the cluster's hash slots that no node has.
    pub(super) fn uncovered(&self) -> usize {
        SLOTS - self.slots.len()
    }

    /// Whether the cluster's topology was created from the same ranges of hash slots.
    pub(super) fn is_of(&self, ranges: &[Range]) -> bool {
        self.ranges == ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::Fences;
    use crate::redis::login::Login;
    use crate::redis::settings::Redis;
    use crate::server::Server;

    fn asked() -> Address {
        Address::parse("asked:7000", 1).unwrap()
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::SimpleString("id".to_owned())])
    }

    fn host(name: &str) -> Value {
        Value::BulkString(name.as_bytes().to_vec())
    }

    fn range(first: i64, last: i64, node: Value) -> Value {
        Value::Array(vec![Value::Int(first), Value::Int(last), node])
    }

    fn topology(items: Vec<Value>) -> Topology {
        let clock = std::sync::Arc::new(haypile::ManualClock::new());
        let node_at = |address: &Address| {
            let redis = Redis::of_cluster(Login::default(), address.clone());
            let timeout = std::time::Duration::from_secs(1);
            let clock = Arc::<haypile::ManualClock>::clone(&clock);
            let fences = Arc::new(Fences::new(Arc::<haypile::ManualClock>::clone(&clock)));
            Arc::new(Server::new(redis, address.to_string(), timeout, clock, fences))
        };
        Topology::new(ranges(Value::Array(items), &asked()).unwrap(), node_at)
    }

    #[test]
    fn each_key_is_on_the_node_of_its_slot() {
        let items = || {
            vec![
                range(10_923, 16_383, node(Value::Nil, 7001)),
                range(0, 5_460, node(host(""), 7000)),
                range(5_461, 10_922, node(host("::1"), 7002)),
            ]
        };
        let topology = topology(items());
        let name = |key: &[u8]| topology.member_of(key).unwrap().address.to_string();
        // The slots are 12182, 5061 and 9842 by the specification's CRC16.
        assert_eq!(name(b"foo"), "asked:7001");
        assert_eq!(name(b"bar"), "asked:7000");
        assert_eq!((name(b"{foo}a"), name(b"x{foo}}")), (name(b"foo"), name(b"foo")));
        assert_eq!(topology.uncovered(), 0);
        assert!(topology.members.is_sorted_by_key(|member| member.number));
        let mut turned = items();
        turned.reverse();
        assert!(topology.is_of(&ranges(Value::Array(turned), &asked()).unwrap()));
    }

    #[test]
    fn slots_of_nobody_are_counted() {
        let topology = topology(vec![
            range(0, 99, node(host("a"), 7000)),
            range(100, 199, node(host("?"), 7000)),
            range(200, 200, node(host("a"), 7000)),
        ]);
        assert_eq!((topology.uncovered(), topology.members.len()), (SLOTS - 101, 1));
        assert!(topology.member_of(b"foo").is_none());
    }

    #[test]
    fn nonsense_is_no_topology() {
        let good = || node(host("a"), 7000);
        for items in [
            vec![],
            vec![Value::Nil],
            vec![range(0, 99, node(host("?"), 7000))],
            vec![range(-1, 99, good())],
            vec![range(0, 16_384, good())],
            vec![range(9, 8, good())],
            vec![range(0, 9, node(host("a"), 0))],
            vec![range(0, 9, node(host("a"), 65_536))],
            vec![range(0, 9, node(host("a b"), 1))],
            vec![range(0, 9, node(Value::BulkString(vec![0xff]), 1))],
            vec![range(0, 9, node(Value::Int(1), 1))],
            vec![range(0, 9, Value::Array(vec![]))],
            vec![range(0, 9, good()), range(9, 10, good())],
            vec![Value::Array(vec![Value::Int(0), Value::Int(1)])],
        ] {
            let text = format!("{items:?}");
            assert!(ranges(Value::Array(items), &asked()).is_err(), "{text}");
        }
        assert!(ranges(Value::Okay, &asked()).is_err());
    }
}
