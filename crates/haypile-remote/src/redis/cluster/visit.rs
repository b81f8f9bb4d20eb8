//! Visits to the nodes of all slots, while slots move between them.

use std::collections::BTreeMap;
use std::error::Error;
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

/// Slots that moved during each visit to their node.
#[derive(Debug, thiserror::Error)]
#[error(
    "slots moved between nodes during each of {visits} visits, so that entries may be missing; \
     repeat the call when the cluster has settled"
)]
pub(in crate::redis) struct Unsettled {
    visits: usize,
}

/// The node that has to be visited for a slot.
#[derive(Clone, Debug, PartialEq)]
enum Due {
    /// The one that has it.
    Owner,
    /// The one that it moves to: the visit to its owner has missed keys that were there already.
    Target(Address),
}

impl Cluster {
    /// Calls `visit` with the node of each slot. If a slot moves to another node during a visit,
    /// that other node is visited too. `failed` converts errors of the cluster.
    pub(in crate::redis) fn visit_all<E>(
        &self,
        mut visit: impl FnMut(&Node) -> Result<(), E>,
        failed: impl Fn(Box<dyn Error + Send + Sync>) -> E,
    ) -> Result<(), E> {
        let read = || self.covered(true).map_err(|error| failed(error.into()));
        let mut topology = read()?;
        let slots = u16::try_from(SLOTS).expect("16 bits number the slots");
        let mut due: BTreeMap<u16, Due> = (0..slots).map(|slot| (slot, Due::Owner)).collect();
        let mut visits = 0;
        while let Some((address, node, own)) = self.next_visit(&topology, &due) {
            if visits == MAX_VISITS * topology.members.len() {
                return Err(failed(Unsettled { visits }.into()));
            }
            visits += 1;
            visit(&node)?;
            let moving = moving(&node, &address).map_err(|error| failed(error.into()))?;
            topology = read()?;
            for slot in own {
                match due[&slot] {
                    Due::Owner if topology.owner_of(slot) != Some(&address) => {}
                    Due::Owner if moving.contains_key(&slot) => {
                        due.insert(slot, Due::Target(moving[&slot].clone()));
                    }
                    _ => drop(due.remove(&slot)),
                }
            }
        }
        Ok(())
    }

    /// Returns the node of the first slot that is due, and all slots that are due at that node.
    fn next_visit(
        &self,
        topology: &Topology,
        due: &BTreeMap<u16, Due>,
    ) -> Option<(Address, Arc<Node>, Vec<u16>)> {
        let place = |(slot, due): (&u16, &Due)| match due {
            Due::Owner => topology.owner_of(*slot).cloned(),
            Due::Target(address) => Some(address.clone()),
        };
        let address = due.iter().find_map(place)?;
        let is_there = |entry: &(&u16, &Due)| place(*entry).as_ref() == Some(&address);
        let own = due.iter().filter(is_there).map(|(slot, _)| *slot).collect();
        let node = self.node_at(&address);
        Some((address, node, own))
    }

    /// Returns the slots and their nodes; an error if a slot has no node.
    pub(super) fn covered(&self, is_fresh: bool) -> Result<Arc<Topology>, Unreachable> {
        if is_fresh {
            self.renew(Deadline::after(self.timeout))?;
        } else {
            self.renew_if_due();
        }
        let topology = self.topology();
        let uncovered = topology.uncovered();
        if uncovered > 0 {
            let why = format!("no node has {uncovered} of its {SLOTS} slots");
            return Err(Unreachable::new(self.name(), why));
        }
        Ok(topology)
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
