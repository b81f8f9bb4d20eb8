//! Many changes in one round trip, and what goes through all keys.

use std::sync::Arc;

use haypile::{Cursor, Error, Result};
use redis::{Cmd, FromRedisValue, cmd};

use super::connection::{Reply, ask};
use super::nodes::{Batch, Node, Purpose, single};
use super::store::RedisStore;
use super::wire::{pattern, unlink};
use crate::server::Repeat;

/// How many keys a `SCAN` for all of a namespace looks at before it answers.
const SCANNED_AT_ONCE: usize = 1_000;
/// How often what goes through all servers is begun while keys move from one to another.
const MAX_PASSES: usize = 4;

/// Entries of a namespace that may still be there.
#[derive(Debug, thiserror::Error)]
#[error("a server did not answer, and entries are left: {why}; ask again when it does")]
struct NotAllDeleted {
    why: String,
}

/// A cursor within a node that is none of the cluster's.
#[derive(Debug, thiserror::Error)]
#[error(
    "the cursor is of a server that has no part of the keys, or no more; start from the first page"
)]
struct UnknownNode;

/// All servers were gone through, and by the end others had the keys.
#[derive(Debug, thiserror::Error)]
#[error(
    "which node has which slots has changed {MAX_PASSES} times while all were gone through, so that \
     entries may be left out; ask again when the cluster has settled"
)]
struct Unsettled;

impl RedisStore {
    /// Does many changes together that each stand for themselves: those that `prepare` refuses are
    /// not sent.
    pub(super) fn change_many<T, R>(
        &self,
        items: &[T],
        repeat: Repeat,
        prepare: impl Fn(&T) -> Result<(Vec<u8>, Cmd)>,
        finish: impl Fn(&T, Option<Reply<bool>>) -> Result<R>,
    ) -> Vec<Result<R>> {
        let mut batch = Batch::new();
        let mut refused = Vec::new();
        for item in items {
            match prepare(item) {
                Ok((key, command)) => {
                    batch.push(key, [command]);
                    refused.push(None);
                }
                Err(error) => refused.push(Some(error)),
            }
        }
        let mut replies = self.ask_about(Purpose::Change(repeat), &batch, single).into_iter();
        let result = |(item, refused): (&T, Option<Error>)| match refused {
            Some(error) => Err(error),
            None => finish(item, replies.next().flatten()),
        };
        items.iter().zip(refused).map(result).collect()
    }

    /// Some keys of this store as the server knows them, and where to go on.
    pub(super) fn scan(
        &self,
        operation: &'static str,
        from: Cursor,
        limit: usize,
    ) -> Result<(Option<Cursor>, Vec<Vec<u8>>)> {
        let all = self.nodes.all(from == Cursor::default());
        let all = all.map_err(|error| self.backend(operation, error))?;
        self.scan_of(&all.nodes, operation, from, limit)
    }

    /// The same of these servers.
    fn scan_of(
        &self,
        nodes: &[(u64, Arc<Node>)],
        operation: &'static str,
        from: Cursor,
        limit: usize,
    ) -> Result<(Option<Cursor>, Vec<Vec<u8>>)> {
        let is_there = |(number, _): &(u64, _)| *number == from.server();
        let at = match nodes.iter().position(is_there) {
            Some(at) => at,
            None if from == Cursor::default() => 0,
            // Others can have its keys that were gone through before.
            None => return Err(self.backend(operation, UnknownNode)),
        };
        let Some((number, node)) = nodes.get(at) else { return Ok((None, Vec::new())) };
        let mut command = cmd("SCAN");
        command.arg(from.position());
        if !self.common.is_whole() {
            command.arg("MATCH").arg(pattern(&self.common.prefix));
        }
        command.arg("COUNT").arg(limit.max(1));
        let (next, keys) = self.ask_node(operation, node, &command)?;
        let next = match next {
            0 => nodes.get(at + 1).map(|(number, _)| Cursor::new(*number, 0)),
            next => Some(Cursor::new(*number, next)),
        };
        Ok((next, keys))
    }

    /// Calls `each` with all keys of this store, some at a time, as the server knows them, and with
    /// what it has made of those before. A key can come twice.
    pub(super) fn scan_all<T: Default>(
        &self,
        operation: &'static str,
        each: impl Fn(&mut T, Vec<Vec<u8>>) -> Result<()>,
    ) -> Result<T> {
        self.through_all(operation, |nodes| {
            let mut made = T::default();
            let mut place = Some(Cursor::default());
            while let Some(from) = place {
                let (next, keys) = self.scan_of(nodes, operation, from, SCANNED_AT_ONCE)?;
                each(&mut made, keys)?;
                place = next;
            }
            Ok(made)
        })
    }

    /// Goes through all servers; anew if others have the keys by the end.
    fn through_all<T>(
        &self,
        operation: &'static str,
        pass: impl Fn(&[(u64, Arc<Node>)]) -> Result<T>,
    ) -> Result<T> {
        let all = || self.nodes.all(true).map_err(|error| self.backend(operation, error));
        let mut before = all()?;
        for _ in 0..MAX_PASSES {
            let made = pass(&before.nodes)?;
            let after = all()?;
            if after.generation == before.generation {
                return Ok(made);
            }
            before = after;
        }
        Err(self.backend(operation, Unsettled))
    }

    /// Deletes these entries, as the server knows them, or says that it could not.
    pub(super) fn delete_all(&self, operation: &'static str, keys: Vec<Vec<u8>>) -> Result<()> {
        let mut batch = Batch::new();
        for key in keys {
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

    /// Asks each server about all that it has.
    pub(super) fn whole<T: FromRedisValue>(
        &self,
        operation: &'static str,
        command: &Cmd,
    ) -> Result<Vec<T>> {
        self.through_all(operation, |nodes| {
            nodes.iter().map(|(_, node)| self.ask_node(operation, node, command)).collect()
        })
    }

    fn ask_node<T: FromRedisValue>(
        &self,
        operation: &'static str,
        node: &Node,
        command: &Cmd,
    ) -> Result<T> {
        let answer =
            node.ask(Repeat::Harmless, |connection, deadline| ask(command, connection, deadline));
        let reply = answer.map_err(|error| self.backend(operation, error))?;
        self.accepted(operation, reply)
    }
}
