//! Batches of changes, and scans of all keys.

use std::iter;

use haypile::{Cursor, Error, Result};
use redis::{Cmd, FromRedisValue, Value, cmd};

use super::connection::{Reply, ask};
use super::lease::{head, is_of_placeholder};
use super::nodes::{Batch, Node, Purpose, single};
use super::store::RedisStore;
use super::wire::{pattern, unlink};
use crate::deadline::Lost;
use crate::server::Repeat;

/// Keys that one `SCAN` of a namespace visits before it answers.
const SCANNED_AT_ONCE: usize = 1_000;
/// Attempts at counting the entries of all servers while keys move between them.
const MAX_PASSES: usize = 4;

/// A `clear` that may have left entries of a namespace.
#[derive(Debug, thiserror::Error)]
#[error(
    "clear left entries, because a Redis server did not answer: {why}; repeat the call when it \
     does"
)]
struct NotAllDeleted {
    why: String,
}

/// A cursor of a node that is not part of the cluster.
#[derive(Debug, thiserror::Error)]
#[error(
    "the cursor of a listing names a Redis server that has none of the keys, or no longer has any; \
     start from the first page"
)]
struct UnknownNode;

/// Slots that moved during each count of all entries.
#[derive(Debug, thiserror::Error)]
#[error(
    "hash slots of the cluster moved between nodes during each of {MAX_PASSES} counts of all \
     entries; repeat the call when \
     the cluster has settled"
)]
struct Unsettled;

impl RedisStore {
    /// Performs several independent changes together, each of which consists of `COMMANDS` Redis commands; a change
    /// that `prepare` refuses is not sent.
    pub(super) fn change_many<T, A, R, const COMMANDS: usize>(
        &self,
        items: &[T],
        repeat: Repeat,
        prepare: impl Fn(&T) -> Result<(Vec<u8>, [Cmd; COMMANDS])>,
        read: impl Fn(Vec<Reply<Value>>) -> Result<A, Lost>,
        finish: impl Fn(&T, Option<A>) -> Result<R>,
    ) -> Vec<Result<R>> {
        let mut batch = Batch::new();
        let mut refused = Vec::new();
        for item in items {
            match prepare(item) {
                Ok((key, commands)) => {
                    batch.push(key, commands);
                    refused.push(None);
                }
                Err(error) => refused.push(Some(error)),
            }
        }
        let mut replies = self.ask_about(Purpose::Change(repeat), &batch, read).into_iter();
        let result = |(item, refused): (&T, Option<Error>)| match refused {
            Some(error) => Err(error),
            None => finish(item, replies.next().flatten()),
        };
        items.iter().zip(refused).map(result).collect()
    }

    /// Returns one page of the store's keys, in the form in which the server stores them, and the cursor of the next
    /// page.
    pub(super) fn scan(
        &self,
        operation: &'static str,
        from: Cursor,
        limit: usize,
    ) -> Result<(Option<Cursor>, Vec<Vec<u8>>)> {
        let nodes = self.nodes.all(from == Cursor::default());
        let nodes = nodes.map_err(|error| self.backend(operation, error))?.nodes;
        let is_there = |(number, _): &(u64, _)| *number == from.server();
        let at = match nodes.iter().position(is_there) {
            Some(at) => at,
            None if from == Cursor::default() => 0,
            // Other nodes may have taken over keys that earlier pages returned.
            None => return Err(self.backend(operation, UnknownNode)),
        };
        let Some((number, node)) = nodes.get(at) else { return Ok((None, Vec::new())) };
        let (next, keys) = self.scan_node(operation, node, from.position(), limit)?;
        let next = match next {
            0 => nodes.get(at + 1).map(|(number, _)| Cursor::new(*number, 0)),
            next => Some(Cursor::new(*number, next)),
        };
        Ok((next, keys))
    }

    /// Returns the keys that have a value, without those that have only a placeholder of a lease; all in the form in
    /// which the server stores them.
    pub(super) fn of_entries(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let mut batch = Batch::new();
        for key in &keys {
            batch.push(key.clone(), [head(key)]);
        }
        let heads = self.ask_about(Purpose::Read, &batch, single::<Vec<u8>>);
        let mut entries = Vec::new();
        for (key, head) in keys.into_iter().zip(heads) {
            let head =
                head.map(|head| self.accepted("keys", is_of_placeholder(head))).transpose()?;
            // A server that does not answer any more has said which keys there were.
            if head != Some(true) {
                entries.push(key);
            }
        }
        Ok(entries)
    }

    /// Returns some keys that a server has, and the position to go on at; zero if there are no
    /// more.
    fn scan_node(
        &self,
        operation: &'static str,
        node: &Node,
        position: u64,
        limit: usize,
    ) -> Result<(u64, Vec<Vec<u8>>)> {
        let mut command = cmd("SCAN");
        command.arg(position);
        if !self.common.is_whole() {
            command.arg("MATCH").arg(pattern(&self.common.prefix));
        }
        command.arg("COUNT").arg(limit.max(1));
        self.ask_node(operation, node, &command)
    }

    /// Calls `each` with all keys of the store, in the form in which the server stores them, one page at a time. A key
    /// can occur twice.
    pub(super) fn scan_all(
        &self,
        operation: &'static str,
        mut each: impl FnMut(Vec<Vec<u8>>) -> Result<()>,
    ) -> Result<()> {
        self.visit_all(operation, |node| {
            let mut position = 0;
            loop {
                let (next, keys) = self.scan_node(operation, node, position, SCANNED_AT_ONCE)?;
                each(keys)?;
                if next == 0 {
                    return Ok(());
                }
                position = next;
            }
        })
    }

    fn visit_all(
        &self,
        operation: &'static str,
        visit: impl FnMut(&Node) -> Result<()>,
    ) -> Result<()> {
        self.nodes.visit_all(visit, |source| self.backend(operation, source))
    }

    /// Deletes the entries of these keys, which are in the form in which the server stores them. Keys that wait for a
    /// lost connection are deleted later.
    pub(super) fn delete_all(&self, operation: &'static str, keys: Vec<Vec<u8>>) -> Result<()> {
        let mut batch = Batch::new();
        let apart = self.nodes.fences().apart(keys.iter().map(Vec::as_slice));
        let mut apart = apart.unwrap_or_default().into_iter().chain(iter::repeat(false));
        for key in keys {
            if apart.next() == Some(true) {
                continue;
            }
            let command = unlink(&key);
            batch.push(key, [command]);
        }
        for reply in self.nodes.ask(Purpose::Change(Repeat::Harmless), &batch, single::<u64>) {
            let Some(reply) = reply else {
                let why = self.nodes.warnings().join("; ");
                return Err(self.backend(operation, NotAllDeleted { why }));
            };
            self.accepted(operation, reply)?;
        }
        Ok(())
    }

    /// Deletes all entries of the Redis servers, including those of other clients.
    pub(super) fn flush_all(&self, operation: &'static str) -> Result<()> {
        self.visit_all(operation, |node| self.ask_node(operation, node, &cmd("FLUSHDB")))
    }

    /// Returns the number of all entries on the Redis servers; counts again if hash slots move in the meantime.
    pub(super) fn count_all(&self, operation: &'static str) -> Result<u64> {
        let all = || self.nodes.all(true).map_err(|error| self.backend(operation, error));
        let mut before = all()?;
        for _ in 0..MAX_PASSES {
            let mut entries = 0_u64;
            for (_, node) in &before.nodes {
                let own = self.ask_node::<u64>(operation, node, &cmd("DBSIZE"))?;
                entries = entries.saturating_add(own);
            }
            let after = all()?;
            if after.generation == before.generation {
                return Ok(entries);
            }
            before = after;
        }
        Err(self.backend(operation, Unsettled))
    }

    fn ask_node<T: FromRedisValue>(
        &self,
        operation: &'static str,
        node: &Node,
        command: &Cmd,
    ) -> Result<T> {
        let answer = node
            .ask(Repeat::Harmless, &[], |connection, deadline| ask(command, connection, deadline));
        let reply = answer.map_err(|error| self.backend(operation, error))?;
        self.accepted(operation, reply)
    }
}
