//! A Redis Cluster: which of its nodes has a key, and finding that out again.
//!
//! Each node is a [server](crate::server) of its own, with its connections, its pauses and what it is
//! owed. Of the client crate, the connections, the slots of keys and the reading of redirections are
//! used, and not its `ClusterConnection` (1.8): told to follow redirections, it also repeats commands
//! whose answer was lost, so that a counter could count twice; in a pipeline it follows none, and waits
//! for each late reply anew; and one command to all nodes can panic while they change roles.

mod opener;
pub(super) mod redirect;
mod topology;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haypile::Clock;
use parking_lot::{Mutex, RwLock};
use redis::{Cmd, Connection, Pipeline, Value, cmd};

pub use opener::RedisClusterOpener;

use self::redirect::redirect;
use self::topology::{Member, Range, SLOTS, Topology, ranges};
use super::connection::{Redis, Reply, ask, ask_all};
use super::login::Login;
use super::nodes::{Batch, Node, Purpose, by_key};
use super::wire::lenient;
use crate::address::Address;
use crate::deadline::{Deadline, Lost};
use crate::debts::Debts;
use crate::server::{Connect, Repeat, Server, Unreachable};

/// How often one operation is sent on to another node.
const MAX_REDIRECTIONS: usize = 4;
/// How long it is at least from one question for the slots to the next, where a node did not answer.
/// Redirections, and what concerns all entries, ask at once.
const PAUSE: Duration = Duration::from_secs(1);

/// A Redis Cluster.
pub(super) struct Cluster {
    login: Login,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// The nodes that the URL names.
    seeds: Vec<(Address, Arc<Node>)>,
    topology: RwLock<Arc<Topology>>,
    /// One asks for the slots at a time.
    asking: Mutex<Asking>,
    /// Whether the slots may be elsewhere by now.
    is_stale: AtomicBool,
    /// Keys that are owed in slots that no node has.
    strays: Mutex<Debts>,
}

#[derive(Default)]
struct Asking {
    due_at_ns: u64,
    /// So that another node is asked each time: one that left the cluster does not know it.
    times: usize,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Keys of a batch that one node is asked about.
struct Part {
    address: Address,
    node: Arc<Node>,
    is_for_now: bool,
    /// Their places in the batch.
    places: Vec<usize>,
}

/// What a node says about a key.
enum Outcome<R> {
    Answer(R),
    Elsewhere(redirect::Redirect),
}

impl Cluster {
    /// The nodes at these addresses, of which nothing is known yet.
    pub(super) fn new(
        login: Login,
        addresses: &[Address],
        timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Lost> {
        let mut cluster = Self {
            login,
            timeout,
            clock,
            seeds: Vec::new(),
            topology: RwLock::default(),
            asking: Mutex::default(),
            is_stale: AtomicBool::new(true),
            strays: Mutex::default(),
        };
        for address in addresses {
            let node = cluster.node_at(address)?;
            cluster.seeds.push((address.clone(), node));
        }
        Ok(cluster)
    }

    /// Does what a store does when it is opened: one of the nodes that are known says where the slots
    /// are, and one that has slots answers. Otherwise it says why not.
    fn try_out(&self) -> Result<(), String> {
        let known = self.seeds.iter().any(|(address, node)| {
            let learned = node.try_out(|redis, deadline| {
                self.learn(slots(&mut redis.connect(deadline)?, address, deadline)?)
            });
            learned.is_some()
        });
        let topology = self.topology();
        let answer = |member: &&Member| member.node.try_out(Redis::check).is_some();
        // All are tried, so that there is a warning of each that does not answer.
        if known && topology.members.iter().filter(answer).count() > 0 {
            return Ok(());
        }
        let why = |(_, node): &(Address, Arc<Node>)| {
            Some(format!("{}: {}", node.name(), node.last_failure()?))
        };
        Err(self.nodes().iter().filter_map(why).collect::<Vec<_>>().join("; "))
    }

    /// What people know it as.
    fn name(&self) -> String {
        let names: Vec<_> = self.seeds.iter().map(|(_, node)| node.name()).collect();
        names.join(",")
    }

    /// Asks the nodes that have these keys, one after the other; see
    /// [`Nodes::ask`](super::nodes::Nodes::ask).
    pub(super) fn ask<R>(
        &self,
        purpose: Purpose,
        batch: &Batch,
        read: impl Fn(Vec<Reply<Value>>) -> Result<R, Lost>,
    ) -> Vec<Option<R>> {
        self.renew_if_due();
        let deadline = Deadline::after(self.timeout);
        let mut answers: Vec<Option<R>> = batch.keys.iter().map(|_| None).collect();
        let mut parts = self.parts(batch);
        for _ in 0..=MAX_REDIRECTIONS {
            let mut elsewhere = Vec::new();
            for part in parts {
                let Ok(outcomes) = part.ask(purpose.repeat(), batch, &read) else {
                    self.is_stale.store(true, Ordering::Relaxed);
                    continue;
                };
                for (place, outcome) in part.places.iter().zip(outcomes) {
                    match outcome {
                        Outcome::Answer(answer) => answers[*place] = Some(answer),
                        Outcome::Elsewhere(redirect) => elsewhere.push((*place, redirect)),
                    }
                }
            }
            if elsewhere.is_empty() || deadline.left().is_err() {
                break;
            }
            if elsewhere.iter().any(|(_, redirect)| !redirect.is_for_now) {
                self.is_stale.store(true, Ordering::Relaxed);
                // Where nobody knows, the node that was named is asked all the same.
                let _ = self.renew(deadline);
            }
            parts = self.parts_elsewhere(elsewhere);
        }
        if matches!(purpose, Purpose::Change(_)) {
            let open = answers.iter().zip(&batch.keys).filter(|(answer, _)| answer.is_none());
            self.owe(open.map(|(_, key)| key.as_slice()));
        }
        answers
    }

    /// The keys by the nodes that have their slots.
    fn parts(&self, batch: &Batch) -> Vec<Part> {
        let topology = self.topology();
        let mut parts: Vec<Part> = Vec::new();
        for (place, key) in batch.keys.iter().enumerate() {
            let Some(member) = topology.member_of(key) else {
                self.is_stale.store(true, Ordering::Relaxed);
                continue;
            };
            match parts.iter_mut().find(|part| Arc::ptr_eq(&part.node, &member.node)) {
                Some(part) => part.places.push(place),
                None => parts.push(Part {
                    address: member.address.clone(),
                    node: Arc::clone(&member.node),
                    is_for_now: false,
                    places: vec![place],
                }),
            }
        }
        parts
    }

    fn parts_elsewhere(&self, elsewhere: Vec<(usize, redirect::Redirect)>) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (place, redirect::Redirect { to, is_for_now }) in elsewhere {
            let same = |part: &&mut Part| part.address == to && part.is_for_now == is_for_now;
            if let Some(part) = parts.iter_mut().find(same) {
                part.places.push(place);
            } else if let Ok(node) = self.node_at(&to) {
                parts.push(Part { address: to, node, is_for_now, places: vec![place] });
            }
        }
        parts
    }

    /// All nodes that have slots, each with its number, in their order. The slots are asked for anew
    /// if `is_fresh` says so.
    pub(super) fn all(&self, is_fresh: bool) -> Result<Vec<(u64, Arc<Node>)>, Unreachable> {
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
        let all = topology.members.iter().map(|member| (member.number, Arc::clone(&member.node)));
        Ok(all.collect())
    }

    /// What went wrong ever, for people.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = self.nodes().iter().flat_map(|node| node.1.warnings()).collect();
        warnings.extend(self.strays.lock().warning(&self.name()));
        warnings
    }

    /// Pays what is owed, where the nodes can be reached, and ends all connections.
    pub(super) fn end(&self) {
        self.nodes().iter().for_each(|(_, node)| node.end());
    }

    fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.topology.read())
    }

    /// The nodes that have slots, and those of the URL.
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

    /// The node there; one of its own if it is not known.
    fn node_at(&self, address: &Address) -> Result<Arc<Node>, Lost> {
        if let Some(node) = self.topology().node_at(address) {
            return Ok(Arc::clone(node));
        }
        if let Some((_, node)) = self.seeds.iter().find(|(seed, _)| seed == address) {
            return Ok(Arc::clone(node));
        }
        let redis = Redis::of_cluster(&self.login, address).map_err(|error| Lost::new(&error))?;
        let clock = Arc::clone(&self.clock);
        Ok(Arc::new(Server::new(redis, address.to_string(), self.timeout, clock)))
    }

    /// Asks where the slots are, if a node did not answer lately.
    fn renew_if_due(&self) {
        if !self.is_stale.load(Ordering::Relaxed) {
            return;
        }
        let is_due =
            self.asking.try_lock().is_some_and(|asking| self.clock.now_ns() >= asking.due_at_ns);
        if is_due {
            // The nodes that are known may do; each says itself what is wrong.
            let _ = self.renew(Deadline::after(self.timeout));
        }
    }

    /// Asks where the slots are, one node after the other until one answers.
    fn renew(&self, deadline: Deadline) -> Result<(), Unreachable> {
        let late = |lost: &Lost| Unreachable::new(self.name(), lost.to_string());
        let left = deadline.left().map_err(|lost| late(&lost))?;
        let mut asking = self.asking.try_lock_for(left).ok_or_else(|| late(&deadline.missed()))?;
        let pause_ns = u64::try_from(PAUSE.as_nanos()).expect("a second is few nanoseconds");
        asking.due_at_ns = self.clock.now_ns().saturating_add(pause_ns);
        asking.times = asking.times.wrapping_add(1);
        let mut nodes = self.nodes();
        let first = asking.times % nodes.len().max(1);
        nodes.rotate_left(first);
        let mut failed = None;
        for (address, node) in nodes {
            if failed.is_some() && deadline.left().is_err() {
                break;
            }
            let question = |connection: &mut Connection, deadline| {
                self.learn(slots(connection, &address, deadline)?)
            };
            match node.ask_freely(Repeat::Harmless, question) {
                Ok(()) => return Ok(()),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| late(&deadline.missed())))
    }

    /// From now on the slots are there. What is owed goes with them, before anybody is asked.
    fn learn(&self, ranges: Vec<Range>) -> Result<(), Lost> {
        let known = self.topology();
        if known.is_of(&ranges) {
            self.is_stale.store(known.uncovered() > 0, Ordering::Relaxed);
            return Ok(());
        }
        let new = Topology::new(ranges, |address| self.node_at(address))?;
        self.is_stale.store(new.uncovered() > 0, Ordering::Relaxed);
        let mut current = self.topology.write();
        let mut strays = self.strays.lock();
        let mut keys = strays.take();
        for Member { node, .. } in &current.members {
            keys.extend(node.release(|key| !new.has(node, key)));
        }
        for key in keys {
            match new.member_of(&key) {
                Some(member) => member.node.owe([&*key]),
                None => strays.add(&key),
            }
        }
        drop(strays);
        *current = Arc::new(new);
        Ok(())
    }

    /// Has these keys deleted by the nodes that have their slots, when they can be reached.
    fn owe<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        // Held, so that the slots do not move meanwhile.
        let topology = self.topology.read();
        for key in keys {
            match topology.member_of(key) {
                Some(member) => member.node.owe([key]),
                None => self.strays.lock().add(key),
            }
        }
    }
}

impl Part {
    /// Asks the node about its keys, in one round trip.
    fn ask<R>(
        &self,
        repeat: Repeat,
        batch: &Batch,
        read: impl Fn(Vec<Reply<Value>>) -> Result<R, Lost>,
    ) -> Result<Vec<Outcome<R>>, Unreachable> {
        let own;
        let pipeline = if self.places.len() == batch.keys.len() && !self.is_for_now {
            &batch.pipeline
        } else {
            own = self.pipeline(batch);
            &own
        };
        let outcome = |replies: Vec<Reply<Value>>| {
            Ok(match redirect(&replies, &self.address)? {
                Some(redirect) => Outcome::Elsewhere(redirect),
                None => Outcome::Answer(read(replies)?),
            })
        };
        self.node.ask(repeat, |connection, deadline| {
            let mut replies = ask_all(pipeline, connection, deadline)?;
            if self.is_for_now {
                // What is said to `ASKING` itself tells nothing.
                replies = replies.into_iter().skip(1).step_by(2).collect();
            }
            by_key(replies, self.places.len()).map(outcome).collect()
        })
    }

    /// Its share of the batch's commands.
    fn pipeline(&self, batch: &Batch) -> Pipeline {
        let commands: Vec<&Cmd> = batch.pipeline.cmd_iter().collect();
        let each = commands.len() / batch.keys.len();
        let mut pipeline = lenient();
        for place in &self.places {
            for command in &commands[place * each..][..each] {
                if self.is_for_now {
                    pipeline.add_command(cmd("ASKING"));
                }
                pipeline.add_command((*command).clone());
            }
        }
        pipeline
    }
}

/// Asks a node which slots are where.
fn slots(
    connection: &mut Connection,
    address: &Address,
    deadline: Deadline,
) -> Result<Vec<Range>, Lost> {
    let reply = ask::<Value>(cmd("CLUSTER").arg("SLOTS"), connection, deadline)?;
    ranges(reply.map_err(|error| Lost::new(&error))?, address)
}
