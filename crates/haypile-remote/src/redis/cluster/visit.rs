//! Visits to the nodes of all slots, while slots move between them.

use std::collections::BTreeMap;
use std::error::Error;
use std::mem;
use std::sync::Arc;

use redis::cmd;

use super::Cluster;
use super::topology::{SLOTS, Topology};
use crate::address::Address;
use crate::deadline::Deadline;
use crate::redis::connection::ask;
use crate::redis::nodes::Node;
use crate::server::{Repeat, Unreachable};

/// Visits to all nodes, per node, until a cluster counts as one that never settles.
const MAX_VISITS: usize = 8;

/// The error that hash slots of a cluster moved during each attempt to visit all its nodes.
#[derive(Debug, thiserror::Error)]
#[error(
    "hash slots of the cluster moved between nodes during each of {visits} attempts to visit all \
     entries, so that some may be missing; \
     repeat the call when the cluster has settled"
)]
pub(in crate::redis) struct Unsettled {
    visits: usize,
}

/// Slots whose nodes have still to be visited.
struct Unvisited {
    /// Whether the node that has the slot has to be visited, indexed by slot.
    by_owner: Vec<bool>,
    /// Slots that are moving, with the nodes that they move to. The visit to a slot's own node has
    /// missed the keys that were there already.
    by_target: BTreeMap<u16, Address>,
}

impl Cluster {
    /// Calls `visit` with every cluster node that has hash slots. If a slot moves to another node during a visit, that
    /// node is visited too. `failed` converts errors of the cluster.
    pub(in crate::redis) fn visit_all<E>(
        &self,
        mut visit: impl FnMut(&Node) -> Result<(), E>,
        failed: impl Fn(Box<dyn Error + Send + Sync>) -> E,
    ) -> Result<(), E> {
        let late = |error: Unreachable| failed(error.into());
        self.renew(Deadline::after(self.timeout)).map_err(late)?;
        let mut topology = self.covered().map_err(late)?;
        let mut unvisited = Unvisited { by_owner: vec![true; SLOTS], by_target: BTreeMap::new() };
        let mut visits = 0;
        while let Some(address) = unvisited.next(&topology) {
            if visits == MAX_VISITS * topology.members.len() {
                return Err(failed(Unsettled { visits }.into()));
            }
            visits += 1;
            let node = self.node_at(&address);
            unvisited.by_target.retain(|_, target| *target != address);
            visit(&node)?;
            // In this order: a slot that has moved when the slots are read is still due.
            let moving = moving(&node, &address).map_err(late)?;
            // A node knows best which slots it has lost, and to whom.
            self.renew_from(&address, &node)
                .or_else(|_| self.renew(Deadline::after(self.timeout)))
                .map_err(late)?;
            let before = mem::replace(&mut topology, self.covered().map_err(late)?);
            unvisited.visited(&address, &before, &topology, &moving);
        }
        Ok(())
    }

    /// Returns the known topology (nodes and hash slots) of the cluster; an error if a hash slot has no node.
    pub(super) fn covered(&self) -> Result<Arc<Topology>, Unreachable> {
        let topology = self.topology();
        let uncovered = topology.uncovered();
        if uncovered > 0 {
            let why = format!("no node has {uncovered} of its {SLOTS} slots");
            return Err(Unreachable::new(self.name(), why));
        }
        Ok(topology)
    }
}

impl Unvisited {
    /// Returns the address of a node to visit.
    fn next(&self, topology: &Topology) -> Option<Address> {
        let of_slot = || topology.owner_of(self.by_owner.iter().position(|is_due| *is_due)?);
        // After the nodes that have the slots: those may be visited for others as well.
        of_slot().or_else(|| self.by_target.values().next()).cloned()
    }

    /// Notes a visit to a node that had the slots of `before`. `moving` are those that it was
    /// moving to others at the end.
    fn visited(
        &mut self,
        address: &Address,
        before: &Topology,
        after: &Topology,
        moving: &BTreeMap<u16, Address>,
    ) {
        let mut has_after = vec![false; SLOTS];
        for slot in after.slots_of(address) {
            has_after[usize::from(slot)] = true;
        }
        for slot in before.slots_of(address) {
            let at = usize::from(slot);
            if has_after[at]
                && mem::take(&mut self.by_owner[at])
                && let Some(target) = moving.get(&slot)
            {
                self.by_target.insert(slot, target.clone());
            }
        }
    }
}

/// Returns the slots that the node at this address is moving to others; none if it does not say.
fn moving(node: &Node, asked: &Address) -> Result<BTreeMap<u16, Address>, Unreachable> {
    let mut command = cmd("CLUSTER");
    command.arg("NODES");
    let reply = node.ask(Repeat::Harmless, &[], |connection, deadline| {
        ask::<String>(&command, connection, deadline)
    })?;
    Ok(reply.map_or_else(|_| BTreeMap::new(), |text| moving_slots(&text, asked)))
}

/// Parses the answer to `CLUSTER NODES` of the node at `asked`.
fn moving_slots(text: &str, asked: &Address) -> BTreeMap<u16, Address> {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let address_of = |id: &str| {
        let line = lines.iter().find(|line| line[0] == id)?;
        let (host, port) = line.get(1)?.split('@').next()?.rsplit_once(':')?;
        Address::named_by(asked, host, port.parse().ok()?)
    };
    let is_own = |line: &&Vec<&str>| line.get(2).is_some_and(|flags| flags.contains("myself"));
    let own = lines.iter().find(is_own).map_or(&[][..], Vec::as_slice);
    let moving = own.iter().filter_map(|word| {
        let (slot, id) = word.strip_prefix('[')?.strip_suffix(']')?.split_once("->-")?;
        Some((slot.parse().ok()?, address_of(id)?))
    });
    moving.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_move_away_are_read() {
        let text = "07c3 10.0.0.1:7000@17000,host-1 myself,master - 0 0 1 connected 0-5460 \
                    [93-<-292f] [77->-e7d1] [5->-292f] [6->-gone]\n\
                    292f 10.0.0.2:7001@17001 master - 0 1 2 connected 5461-10922 [9->-e7d1]\n\
                    e7d1 ::1:7002@17002 master - 0 1 3 connected\n\
                    0000 :0@0 master,noaddr - 1 1 4 disconnected\n";
        let asked = Address::parse("asked", 1).unwrap();
        let moving = moving_slots(text, &asked);
        let named = |text| Address::parse(text, 1).unwrap();
        assert_eq!(
            moving.into_iter().collect::<Vec<_>>(),
            [(5, named("10.0.0.2:7001")), (77, named("[::1]:7002"))]
        );
        for text in ["", "\n", "x", "a b myself [1->-", "a b myself [1->-a] [->-] [x->-a]"] {
            assert_eq!(moving_slots(text, &asked), BTreeMap::new(), "{text}");
        }
    }
}
