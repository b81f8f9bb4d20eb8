//! The servers that have a store's keys, and requests to them.

use std::error::Error;
use std::sync::Arc;

use redis::{Cmd, FromRedisValue, Pipeline, Value, cmd};

use super::cluster::Cluster;
use super::connection::{Connection, Reply, ask_all, value};
use super::settings::Redis;
use super::wire::lenient;
use crate::deadline::Lost;
use crate::fence::Fences;
use crate::server::{Repeat, Server, Unreachable};

/// A Redis server: its connections, and its state while it does not answer.
pub(super) type Node = Server<Redis>;

/// A batch of Redis commands for several keys, with the same number of commands for each key.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) pipeline: Pipeline,
}

impl Batch {
    /// Creates a batch without Redis commands.
    pub(super) fn new() -> Self {
        Self { keys: Vec::new(), pipeline: lenient() }
    }

    /// Adds the Redis commands for a key to the batch.
    pub(super) fn push(&mut self, key: Vec<u8>, commands: impl IntoIterator<Item = Cmd>) {
        for command in commands {
            self.pipeline.add_command(command);
        }
        self.keys.push(key);
    }

    /// Creates a batch with one Redis command for one key.
    pub(super) fn of(key: Vec<u8>, command: Cmd) -> Self {
        let mut batch = Self::new();
        batch.push(key, [command]);
        batch
    }

    /// Returns the batch of the keys at these positions.
    fn part(&self, places: &[usize]) -> Self {
        let keys = places.iter().map(|place| self.keys[*place].clone()).collect();
        Self { keys, pipeline: self.pipeline_of(places, false) }
    }

    /// Returns the Redis commands for the keys at these positions of the batch, each after `ASKING` if `with_asking`.
    pub(super) fn pipeline_of(&self, places: &[usize], with_asking: bool) -> Pipeline {
        let commands: Vec<&Cmd> = self.pipeline.cmd_iter().collect();
        let each = commands.len() / self.keys.len();
        let mut pipeline = lenient();
        for place in places {
            for command in &commands[place * each..][..each] {
                if with_asking {
                    pipeline.add_command(cmd("ASKING"));
                }
                pipeline.add_command((*command).clone());
            }
        }
        pipeline
    }

    /// Returns the keys of the batch, borrowed as bytes.
    pub(super) fn borrowed(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(Vec::as_slice)
    }
}

/// The purpose of a batch of Redis commands: to read entries, or to change them, so that their keys are deleted later
/// if no answer comes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The batch changes nothing, or nothing that would be wrong if it is done late or not at all.
    Read,
    /// The batch changes the entries of its keys.
    Change(Repeat),
}

impl Purpose {
    /// Returns whether a batch with this purpose can be repeated without harm.
    pub(super) fn repeat(self) -> Repeat {
        match self {
            Self::Read => Repeat::Harmless,
            Self::Change(repeat) => repeat,
        }
    }
}

/// The servers of a Redis store as they are at one moment, with a number that shows whether keys have moved since.
#[derive(Debug)]
pub(super) struct All {
    /// The Redis servers, each with the number by which a cursor over keys names it, in the order of the numbers.
    pub(super) nodes: Vec<(u64, Arc<Node>)>,
    /// A number that changes whenever keys may have moved between Redis servers.
    pub(super) generation: u64,
}

/// The servers of a Redis store: one, or the nodes of a cluster.
#[derive(Debug)]
pub(super) enum Nodes {
    /// One server that has all keys.
    One(Arc<Node>),
    /// A cluster, in which each key is on the node that has its slot.
    Cluster(Box<Cluster>),
}

impl Nodes {
    /// Sends a batch of commands to the Redis servers that have the keys. `read` converts the replies for one key into
    /// an answer, which is missing if the server did not answer. A key that may have been changed is then deleted once
    /// the server answers again. No server is asked about keys that wait for a lost connection.
    pub(super) fn ask<R>(
        &self,
        purpose: Purpose,
        batch: &Batch,
        read: impl Fn(Vec<Reply<Value>>) -> Result<R, Lost>,
    ) -> Vec<Option<R>> {
        self.settle();
        let Some(apart) = self.fences().apart(batch.borrowed()) else {
            return self.ask_about_all(purpose, batch, read);
        };
        let is_unheard =
            |place: &usize| apart[*place] && self.fences().is_unheard(&batch.keys[*place]);
        if let Some(place) = (0..apart.len()).find(is_unheard) {
            self.probe(&batch.keys[place]);
        }
        let places: Vec<_> = (0..apart.len()).filter(|place| !apart[*place]).collect();
        let mut answers: Vec<_> = apart.iter().map(|_| None).collect();
        for (place, answer) in
            places.iter().zip(self.ask_about_all(purpose, &batch.part(&places), read))
        {
            answers[*place] = answer;
        }
        answers
    }

    fn ask_about_all<R>(
        &self,
        purpose: Purpose,
        batch: &Batch,
        read: impl Fn(Vec<Reply<Value>>) -> Result<R, Lost>,
    ) -> Vec<Option<R>> {
        if batch.keys.is_empty() {
            return Vec::new();
        }
        match self {
            Self::One(node) => {
                let question = |connection: &mut Connection, deadline| {
                    let replies = ask_all(&batch.pipeline, connection, deadline)?;
                    by_key(replies, batch.keys.len()).map(&read).collect::<Result<Vec<_>, _>>()
                };
                let answer = match purpose {
                    Purpose::Read => node.ask(Repeat::Harmless, &[], question),
                    Purpose::Change(repeat) => {
                        node.change(repeat, &batch.borrowed().collect::<Vec<_>>(), question)
                    }
                };
                match answer {
                    Ok(answers) => answers.into_iter().map(Some).collect(),
                    Err(_) => batch.keys.iter().map(|_| None).collect(),
                }
            }
            Self::Cluster(cluster) => cluster.ask(purpose, batch, read),
        }
    }

    /// Returns the fences of the store: lost connections over which a Redis server may still change entries.
    pub(super) fn fences(&self) -> &Fences {
        match self {
            Self::One(node) => node.fences(),
            Self::Cluster(cluster) => &cluster.fences,
        }
    }

    /// Asks the server that has a key for a sign of life.
    fn probe(&self, key: &[u8]) {
        match self {
            Self::One(node) => node.probe(),
            Self::Cluster(cluster) => cluster.probe(key),
        }
    }

    fn settle(&self) {
        match self {
            Self::One(node) => node.fences().settle(|key| node.enqueue([key])),
            Self::Cluster(cluster) => cluster.settle(),
        }
    }

    /// Returns all servers of the Redis store; reads a cluster's slot map again if `is_fresh`, or if slots may have
    /// moved.
    pub(super) fn all(&self, is_fresh: bool) -> Result<All, Unreachable> {
        match self {
            Self::One(node) => Ok(All { nodes: vec![(0, Arc::clone(node))], generation: 0 }),
            Self::Cluster(cluster) => cluster.all(is_fresh),
        }
    }

    /// Calls `visit` with every Redis server that has keys, even while keys move between servers. `failed` converts
    /// errors of a cluster.
    pub(super) fn visit_all<E>(
        &self,
        mut visit: impl FnMut(&Node) -> Result<(), E>,
        failed: impl Fn(Box<dyn Error + Send + Sync>) -> E,
    ) -> Result<(), E> {
        match self {
            Self::One(node) => visit(node),
            Self::Cluster(cluster) => cluster.visit_all(visit, failed),
        }
    }

    /// Returns warnings about all failures of the Redis servers so far.
    pub(super) fn warnings(&self) -> Vec<String> {
        match self {
            Self::One(node) => [node.warnings(), node.fences().warnings()].concat(),
            Self::Cluster(cluster) => cluster.warnings(),
        }
    }

    /// Deletes the keys whose invalidation is pending from all Redis servers that answer, and closes all connections.
    pub(super) fn end(&self) {
        self.settle();
        match self {
            Self::One(node) => node.end(),
            Self::Cluster(cluster) => cluster.end(),
        }
        self.fences().end();
    }
}

/// Groups the replies to a batch of Redis commands by key.
pub(super) fn by_key(
    replies: Vec<Reply<Value>>,
    keys: usize,
) -> impl Iterator<Item = Vec<Reply<Value>>> {
    let each = replies.len().checked_div(keys).unwrap_or(0);
    let mut replies = replies.into_iter();
    (0..keys).map(move |_| replies.by_ref().take(each).collect())
}

/// Returns the reply to the only Redis command for a key.
pub(super) fn single<T: FromRedisValue>(replies: Vec<Reply<Value>>) -> Result<Reply<T>, Lost> {
    value(replies.into_iter().next().unwrap_or(Ok(Value::Nil)))
}
