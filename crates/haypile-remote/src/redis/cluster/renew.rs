//! Reading which node has which slots.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Value, cmd};

use super::Cluster;
use super::topology::{Member, Range, Topology, ranges};
use crate::address::Address;
use crate::deadline::{Deadline, Lost};
use crate::redis::connection::{Connection, ask};
use crate::redis::nodes::Node;
use crate::server::Unreachable;

/// The shortest time between two reads of the slots after nodes that did not answer. Redirections,
/// and operations on all entries, read them at once.
const PAUSE: Duration = Duration::from_secs(1);

/// The schedule for reading again which node has which hash slots (the slot map): the attempts so far, and the time of
/// the next.
#[derive(Default)]
pub(super) struct Asking {
    due_at_ns: u64,
    /// The count of attempts, which rotates the nodes: one that left the cluster would return an
    /// outdated answer each time.
    times: usize,
}

impl Cluster {
    /// Reads the cluster's slot map again if it may be outdated, because a node did not answer or redirected a command,
    /// but not too often.
    pub(super) fn renew_if_due(&self) {
        if !self.is_stale.load(Ordering::Relaxed) {
            return;
        }
        let is_due =
            self.asking.try_lock().is_some_and(|asking| self.clock.now_ns() >= asking.due_at_ns);
        if is_due {
            // The known nodes may still be right; each reports its own failure.
            let _ = self.renew(Deadline::after(self.timeout));
        }
    }

    /// Reads the cluster's slot map again from the first node that answers.
    pub(super) fn renew(&self, deadline: Deadline) -> Result<(), Unreachable> {
        let late = |lost: &Lost| Unreachable::new(self.name(), lost.to_string());
        let left = deadline.left().map_err(|lost| late(&lost))?;
        let mut asking = self.asking.try_lock_for(left).ok_or_else(|| late(&deadline.missed()))?;
        let pause_ns = u64::try_from(PAUSE.as_nanos()).expect("a second is few nanoseconds");
        asking.due_at_ns = self.clock.now_ns().saturating_add(pause_ns);
        asking.times = asking.times.wrapping_add(1);
        let mut nodes = self.nodes();
        let first = asking.times % nodes.len().max(1);
        nodes.rotate_left(first);
        // Nodes that are down come last.
        nodes.sort_by_key(|(_, node)| node.is_down());
        let mut failed = None;
        for (address, node) in nodes {
            if failed.is_some() && deadline.left().is_err() {
                break;
            }
            match self.renew_from(&address, &node) {
                Ok(()) => return Ok(()),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| late(&deadline.missed())))
    }

    /// Reads the cluster's slot map again from this node.
    pub(super) fn renew_from(&self, address: &Address, node: &Node) -> Result<(), Unreachable> {
        node.ask_freely(|connection, deadline| {
            self.learn(slots(connection, address, deadline)?);
            Ok(())
        })
    }

    /// Replaces the cluster's slot map. The new node of a slot takes over the pending invalidations of the previous one
    /// before any request reaches it.
    pub(super) fn learn(&self, ranges: Vec<Range>) {
        let known = self.topology();
        if known.is_of(&ranges) {
            self.is_stale.store(known.uncovered() > 0, Ordering::Relaxed);
            return;
        }
        let mut new = Topology::new(ranges, |address| self.node_at(address));
        new.generation = known.generation + 1;
        self.is_stale.store(new.uncovered() > 0, Ordering::Relaxed);
        let mut current = self.topology.write();
        let mut unrouted = self.unrouted.lock();
        let mut keys = unrouted.take();
        for Member { address, node, .. } in &current.members {
            if new.node_at(address).is_none() && self.seed_at(address).is_none() {
                // The node is gone, and its warnings with it.
                unrouted.left_out += node.left_out();
            }
            keys.extend(node.pass_on(|key| !new.has(node, key)));
        }
        for key in keys {
            match new.member_of(&key) {
                Some(member) => member.node.enqueue([&*key]),
                None => unrouted.add(&key),
            }
        }
        drop(unrouted);
        *current = Arc::new(new);
        drop(current);
        self.assign_fences();
    }
}

/// Reads a cluster's slot map from a node, and returns it as ranges of hash slots.
pub(super) fn slots(
    connection: &mut Connection,
    address: &Address,
    deadline: Deadline,
) -> Result<Vec<Range>, Lost> {
    let reply = ask::<Value>(cmd("CLUSTER").arg("SLOTS"), connection, deadline)?;
    let useless = |error| Lost::new(&error).by_answer();
    ranges(reply.map_err(useless)?, address).map_err(Lost::by_answer)
}
