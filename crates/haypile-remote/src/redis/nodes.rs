//! The servers that a store's keys are on, and asking them.

use std::sync::Arc;

use redis::{Cmd, Connection, FromRedisValue, Pipeline, Value};

use super::cluster::Cluster;
use super::connection::{Redis, Reply, ask_all, value};
use super::wire::lenient;
use crate::deadline::Lost;
use crate::server::{Repeat, Server, Unreachable};

/// One Redis: its connections, and what happens while it does not answer.
pub(super) type Node = Server<Redis>;

/// Commands about keys, equally many about each.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) pipeline: Pipeline,
}

impl Batch {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { keys: Vec::new(), pipeline: lenient() }
    }

    /// Adds a key, and what is asked about it.
    pub(super) fn push(&mut self, key: Vec<u8>, commands: impl IntoIterator<Item = Cmd>) {
        for command in commands {
            self.pipeline.add_command(command);
        }
        self.keys.push(key);
    }

    /// One command about one key.
    pub(super) fn of(key: Vec<u8>, command: Cmd) -> Self {
        let mut batch = Self::new();
        batch.push(key, [command]);
        batch
    }

    /// The keys as a server's debts take them.
    pub(super) fn borrowed(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(Vec::as_slice)
    }
}

/// What a batch is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// It changes nothing.
    Read,
    /// It changes the entries of its keys.
    Change(Repeat),
}

impl Purpose {
    /// Whether all of it can be done twice.
    pub(super) fn repeat(self) -> Repeat {
        match self {
            Self::Read => Repeat::Harmless,
            Self::Change(repeat) => repeat,
        }
    }
}

/// All servers of a store at one time.
#[derive(Debug)]
pub(super) struct All {
    /// Each with the number that a cursor names it by, in the order of the numbers.
    pub(super) nodes: Vec<(u64, Arc<Node>)>,
    /// Another one if which of them has which keys may be another as well.
    pub(super) generation: u64,
}

/// Where a store's keys are.
#[derive(Debug)]
pub(super) enum Nodes {
    /// All on one server.
    One(Arc<Node>),
    /// Each on the node that has its slot.
    Cluster(Box<Cluster>),
}

impl Nodes {
    /// Asks the servers that have these keys. `read` makes an answer of the replies to one key's
    /// commands; there is none where the server did not answer, and the key is deleted when it is
    /// back if it may have been changed.
    pub(super) fn ask<R>(
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
                    Purpose::Read => node.ask(Repeat::Harmless, question),
                    Purpose::Change(repeat) => node.change(repeat, batch.borrowed(), question),
                };
                match answer {
                    Ok(answers) => answers.into_iter().map(Some).collect(),
                    Err(_) => batch.keys.iter().map(|_| None).collect(),
                }
            }
            Self::Cluster(cluster) => cluster.ask(purpose, batch, read),
        }
    }

    /// All servers. Which they are is asked anew if `is_fresh` says so, or if it may have changed.
    pub(super) fn all(&self, is_fresh: bool) -> Result<All, Unreachable> {
        match self {
            Self::One(node) => Ok(All { nodes: vec![(0, Arc::clone(node))], generation: 0 }),
            Self::Cluster(cluster) => cluster.all(is_fresh),
        }
    }

    /// What went wrong ever, for people.
    pub(super) fn warnings(&self) -> Vec<String> {
        match self {
            Self::One(node) => node.warnings(),
            Self::Cluster(cluster) => cluster.warnings(),
        }
    }

    /// Pays what is owed, where the servers can be reached, and ends all connections.
    pub(super) fn end(&self) {
        match self {
            Self::One(node) => node.end(),
            Self::Cluster(cluster) => cluster.end(),
        }
    }
}

/// The replies to each key's commands.
pub(super) fn by_key(
    replies: Vec<Reply<Value>>,
    keys: usize,
) -> impl Iterator<Item = Vec<Reply<Value>>> {
    let each = replies.len().checked_div(keys).unwrap_or(0);
    let mut replies = replies.into_iter();
    (0..keys).map(move |_| replies.by_ref().take(each).collect())
}

/// Reads the reply to the only command about a key.
pub(super) fn single<T: FromRedisValue>(replies: Vec<Reply<Value>>) -> Result<Reply<T>, Lost> {
    value(replies.into_iter().next().unwrap_or(Ok(Value::Nil)))
}
