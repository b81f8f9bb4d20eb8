//! Which node of a cluster has which slots.

use std::collections::HashMap;
use std::sync::Arc;

use redis::Value;
use redis::cluster_routing::Slot;
use xxhash_rust::xxh3::xxh3_64;

use crate::address::Address;
use crate::deadline::Lost;
use crate::redis::nodes::Node;

/// The slots that a cluster has.
pub(super) const SLOTS: usize = 16_384;
/// More nodes than any cluster has: its authors recommend at most about a thousand.
const MAX_NODES: usize = 4_096;

/// Slots that follow each other, and the node that has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    first: u16,
    last: u16,
    address: Address,
}

/// Reads the answer to `CLUSTER SLOTS` of the node at `asked`; in the order of the slots.
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
        return Err(Lost::because("it knows no node that has slots"));
    }
    ranges.sort_by_key(|range| (range.first, range.last));
    Ok(ranges)
}

/// Where a node is; `None` if the one that was asked does not know.
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
    Address::beside(asked, host, port).map(Some).ok_or_else(nonsense)
}

fn nonsense() -> Lost {
    Lost::because("it did not answer 'CLUSTER SLOTS' as a node of a Redis Cluster does")
}

/// A node that has slots.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) address: Address,
    /// What a cursor names it by. It follows from the address, so that it stays the same while
    /// others come and go.
    pub(super) number: u64,
    pub(super) node: Arc<Node>,
}

/// The nodes and their slots, as one of them knew them.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// In the order of their numbers.
    pub(super) members: Vec<Member>,
    /// What it was made of.
    ranges: Vec<Range>,
    /// Where in `members` each slot's node is.
    slots: HashMap<Slot, u16>,
}

impl Topology {
    /// Of these ranges. `node_at` gives the nodes.
    pub(super) fn new(
        ranges: Vec<Range>,
        mut node_at: impl FnMut(&Address) -> Result<Arc<Node>, Lost>,
    ) -> Result<Self, Lost> {
        let number = |address: &Address| xxh3_64(address.to_string().as_bytes());
        let mut addresses: Vec<_> =
            ranges.iter().map(|range| (number(&range.address), &range.address)).collect();
        addresses.sort_by(|(a, one), (b, other)| {
            a.cmp(b).then_with(|| one.to_string().cmp(&other.to_string()))
        });
        addresses.dedup();
        if addresses.len() > MAX_NODES {
            return Err(Lost::because(format!("it names more than {MAX_NODES} nodes")));
        }
        let mut slots = HashMap::new();
        for range in &ranges {
            let at = addresses.iter().position(|(_, address)| *address == &range.address);
            let at =
                at.and_then(|at| u16::try_from(at).ok()).expect("each is among a few thousand");
            let those = (range.first..=range.last).filter_map(Slot::new);
            slots.extend(those.map(|slot| (slot, at)));
        }
        let member = |(number, address): (u64, &Address)| {
            Ok(Member { address: address.clone(), number, node: node_at(address)? })
        };
        let members = addresses.into_iter().map(member).collect::<Result<_, _>>()?;
        Ok(Self { members, ranges, slots })
    }

    /// The node that has the slot of a key.
    pub(super) fn member_of(&self, key: &[u8]) -> Option<&Member> {
        self.slots.get(&Slot::for_key(key)).map(|at| &self.members[usize::from(*at)])
    }

    /// The node there.
    pub(super) fn node_at(&self, address: &Address) -> Option<&Arc<Node>> {
        self.members.iter().find(|member| member.address == *address).map(|member| &member.node)
    }

    /// Whether it is the node of this key's slot.
    pub(super) fn has(&self, node: &Arc<Node>, key: &[u8]) -> bool {
        self.member_of(key).is_some_and(|member| Arc::ptr_eq(&member.node, node))
    }

    /// How many slots no node has.
    pub(super) fn uncovered(&self) -> usize {
        SLOTS - self.slots.len()
    }

    /// Whether it is made of these.
    pub(super) fn is_of(&self, ranges: &[Range]) -> bool {
        self.ranges == ranges
    }
}
