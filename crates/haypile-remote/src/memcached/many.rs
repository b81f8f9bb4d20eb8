//! Batches: many operations in one round trip.

use haypile::{Error, Result};
use memcache::exp::MetaCommand;

use super::connection::{Connection, Reply};
use super::store::{MemcachedStore, ServerKey};
use crate::deadline::{Deadline, Lost};
use crate::server::Repeat;

/// Commands that are sent before their answers are read. The server stops reading while it cannot
/// write; this number of commands fits the sockets' buffers.
const COMMANDS_AT_ONCE: usize = 256;

impl MemcachedStore {
    /// Sends each memcached server the commands for its keys, and returns the replies in the order of the commands.
    /// Each operation consists of `each` commands; a reply is `None` if the server did not answer.
    pub(super) fn ask_many(
        &self,
        commands: &[(ServerKey, MetaCommand)],
        each: usize,
        changes: bool,
        repeat: Repeat,
    ) -> Vec<Option<Reply>> {
        let mut replies: Vec<Option<Reply>> = commands.iter().map(|_| None).collect();
        let keys: Vec<_> = commands.iter().map(|(key, _)| key).collect();
        let apart = self.apart(&keys).unwrap_or_default();
        let is_apart = |at: usize| apart.get(at).is_some_and(|is_apart| *is_apart);
        // An operation of several commands counts once.
        let count = |places: &mut dyn Iterator<Item = usize>| {
            places.filter(|at| at.is_multiple_of(each)).for_each(|_| self.counts.unreachable());
        };
        count(&mut (0..commands.len()).filter(|at| is_apart(*at)));
        for (number, server) in self.servers.iter().enumerate() {
            let own = |at: &usize| commands[*at].0.server == number && !is_apart(*at);
            let places: Vec<usize> = (0..commands.len()).filter(own).collect();
            for places in places.chunks(COMMANDS_AT_ONCE) {
                let question =
                    |connection: &mut Connection, deadline: Deadline| -> Result<Vec<Reply>, Lost> {
                        let commands = places.iter().map(|at| commands[*at].1.clone()).collect();
                        connection.ask_all(commands, deadline)
                    };
                let answer = if changes {
                    let keys: Vec<_> =
                        places.iter().map(|at| commands[*at].0.bytes.as_slice()).collect();
                    server.change(repeat, &keys, question)
                } else {
                    server.ask(repeat, &[], question)
                };
                match answer {
                    Ok(some) => {
                        for (at, reply) in places.iter().zip(some) {
                            replies[*at] = Some(reply);
                        }
                    }
                    Err(_) => count(&mut places.iter().copied()),
                }
            }
        }
        replies
    }

    /// Performs several independent changes (such as writes or deletions) on memcached, each of which consists of
    /// `COMMANDS` commands; one that `prepare` refuses is not sent.
    pub(super) fn change_many<T, R, const COMMANDS: usize>(
        &self,
        items: &[T],
        repeat: Repeat,
        prepare: impl Fn(&T) -> Result<(ServerKey, [MetaCommand; COMMANDS])>,
        finish: impl Fn(&T, [Option<Reply>; COMMANDS]) -> Result<R>,
    ) -> Vec<Result<R>> {
        let mut refused = Vec::new();
        let mut commands = Vec::new();
        for item in items {
            match prepare(item) {
                Ok((key, some)) => {
                    commands.extend(some.map(|command| (key.clone(), command)));
                    refused.push(None);
                }
                Err(error) => refused.push(Some(error)),
            }
        }
        let mut replies = self.ask_many(&commands, COMMANDS, true, repeat).into_iter();
        let result = |(item, refused): (&T, Option<Error>)| match refused {
            Some(error) => Err(error),
            None => finish(item, std::array::from_fn(|_| replies.next().flatten())),
        };
        items.iter().zip(refused).map(result).collect()
    }
}
