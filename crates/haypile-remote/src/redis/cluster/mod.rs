//! The Redis Cluster protocol: which node has a key, and how that is kept up to date.
//!
//! Each node is a [server](crate::server) of its own, with its connections, its pauses and its
//! pending invalidations. Of the client crate we use the connections, the slots of keys and the
//! parsing of redirections, and not its `ClusterConnection` (1.8): if it follows redirections, it
//! also repeats commands whose answer was lost, so that a counter could count twice; in a pipeline
//! it follows none, and waits the full timeout for each late reply; and one command to all nodes
//! can panic while they change roles.

mod ask;
mod opener;
pub(super) mod redirect;
mod renew;
mod topology;
pub(super) mod visit;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haypile::Clock;
use parking_lot::{Mutex, RwLock};

pub use opener::RedisClusterOpener;

use self::renew::{Asking, slots};
use self::topology::{Member, Topology};
use super::login::Login;
use super::nodes::{All, Node};
use super::settings::Redis;
use crate::address::Address;
use crate::deadline::Deadline;
use crate::fence::Fences;
use crate::invalidations::Invalidations;
use crate::server::{Connect, Server, Unreachable};

/// Nodes that are tried when a store is opened. The others are tried when they are needed.
const MAX_TRIED: usize = 16;

/// A Redis Cluster: its nodes (servers), and which of the 16,384 hash slots, and so which keys, each of them has.
pub(super) struct Cluster {
    login: Login,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    pub(super) fences: Arc<Fences>,
    /// The nodes that the URL names.
    seeds: Vec<(Address, Arc<Node>)>,
    topology: RwLock<Arc<Topology>>,
    /// Held while the slots are read, so that one caller at a time does so.
    asking: Mutex<Asking>,
    /// Whether the slots may have moved.
    is_stale: AtomicBool,
    /// Invalidations of keys in slots that no node has.
    unrouted: Mutex<Invalidations>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Creates a Redis Cluster with the nodes at these addresses. Its map of hash slots is not read yet.
    pub(super) fn new(
        login: Login,
        addresses: &[Address],
        timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let mut cluster = Self {
            login,
            timeout,
            fences: Arc::new(Fences::new(Arc::clone(&clock))),
            clock,
            seeds: Vec::new(),
            topology: RwLock::default(),
            asking: Mutex::default(),
            is_stale: AtomicBool::new(true),
            unrouted: Mutex::default(),
        };
        for address in addresses {
            let node = cluster.node_at(address);
            cluster.seeds.push((address.clone(), node));
        }
        cluster
    }

    /// Checks the cluster when a store is opened: one of the known nodes has to return the slots,
    /// and one that has slots has to answer. Otherwise returns the reason.
    fn try_out(&self) -> Result<(), String> {
        let known = self.seeds.iter().any(|(address, node)| {
            let learned = node.try_out(|redis, deadline| {
                self.learn(slots(&mut redis.connect(deadline)?, address, deadline)?);
                Ok(())
            });
            learned.is_some()
        });
        let topology = self.topology();
        let answer = |member: &&Member| member.node.try_out(Redis::check).is_some();
        // More than one, so that there is a warning for each that does not answer.
        if known && topology.members.iter().take(MAX_TRIED).filter(answer).count() > 0 {
            return Ok(());
        }
        let why = |(_, node): &(Address, Arc<Node>)| {
            Some(format!("{}: {}", node.name(), node.last_failure()?))
        };
        Err(self.nodes().iter().filter_map(why).collect::<Vec<_>>().join("; "))
    }

    /// Returns the name for messages.
    fn name(&self) -> String {
        let names: Vec<_> = self.seeds.iter().map(|(_, node)| &**node.name()).collect();
        names.join(",")
    }

    /// Returns all cluster nodes that have hash slots; reads the slot map again if `is_fresh`.
    pub(super) fn all(&self, is_fresh: bool) -> Result<All, Unreachable> {
        if is_fresh {
            self.renew(Deadline::after(self.timeout))?;
        } else {
            self.renew_if_due();
        }
        let topology = self.covered()?;
        let nodes = topology.members.iter().map(|member| (member.number, Arc::clone(&member.node)));
        Ok(All { nodes: nodes.collect(), generation: topology.generation })
    }

    /// Returns warnings about all failures of the cluster so far.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = self.nodes().iter().flat_map(|node| node.1.warnings()).collect();
        warnings.extend(self.unrouted.lock().warning(&self.name()));
        warnings.extend(self.fences.warnings());
        warnings
    }

    /// Deletes the keys whose invalidation is pending from all cluster nodes that answer, and closes all connections.
    pub(super) fn end(&self) {
        self.nodes().iter().for_each(|(_, node)| node.end());
    }

    /// Polls whether nodes have ended the lost connections. Keys that no longer wait for one become pending
    /// invalidations of the nodes that have their hash slots.
    pub(super) fn settle(&self) {
        self.fences.settle(|key| self.enqueue([key]));
    }

    fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.topology.read())
    }

    /// Returns the nodes that have slots, and those of the URL.
    fn nodes(&self) -> Vec<(Address, Arc<Node>)> {
        let topology = self.topology();
        let mut nodes: Vec<_> = topology
            .members
            .iter()
            .map(|member| (member.address.clone(), Arc::clone(&member.node)))
            .collect();
        for (address, node) in &self.seeds {
            if topology.node_at(address).is_none() {
                nodes.push((address.clone(), Arc::clone(node)));
            }
        }
        nodes
    }

    fn seed_at(&self, address: &Address) -> Option<&(Address, Arc<Node>)> {
        self.seeds.iter().find(|(seed, _)| seed == address)
    }

    /// Returns the node at an address; creates it if it is unknown.
    fn node_at(&self, address: &Address) -> Arc<Node> {
        if let Some(node) = self.topology().node_at(address) {
            return Arc::clone(node);
        }
        if let Some((_, node)) = self.seed_at(address) {
            return Arc::clone(node);
        }
        let redis = Redis::of_cluster(self.login.clone(), address.clone());
        let (clock, fences) = (Arc::clone(&self.clock), Arc::clone(&self.fences));
        Arc::new(Server::new(redis, address.to_string(), self.timeout, clock, fences))
    }

    /// Enqueues these keys for deletion by the nodes that have their slots.
    fn enqueue<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        // Held, so that the slots do not move during the loop.
        let topology = self.topology.read();
        for key in keys {
            match topology.member_of(key) {
                Some(member) => member.node.enqueue([key]),
                None => self.unrouted.lock().add(key),
            }
        }
    }

    /// Asks the cluster node that has the hash slot of a key for a sign of life.
    pub(super) fn probe(&self, key: &[u8]) {
        self.renew_if_due();
        if let Some(member) = self.topology().member_of(key) {
            member.node.probe();
            if member.node.is_down() {
                // Another node may have taken over the slot.
                self.is_stale.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Lets the answers of the nodes that have the slots now count for the lost connections.
    fn assign_fences(&self) {
        let topology = self.topology();
        let node_of = |key: &[u8]| Some(Arc::clone(topology.member_of(key)?.node.name()));
        self.fences.assign(node_of);
    }
}
