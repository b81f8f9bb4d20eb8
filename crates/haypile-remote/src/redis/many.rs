//! Many changes in one round trip, and what goes through all keys.

use haypile::{Error, Result};
use redis::{Cmd, cmd};

use super::connection::{Reply, ask_all, value};
use super::store::RedisStore;
use super::wire::{lenient, pattern};
use crate::deadline::Lost;
use crate::server::Repeat;

/// How many keys a `SCAN` for all of a namespace looks at before it answers.
const SCANNED_AT_ONCE: usize = 1_000;

impl RedisStore {
    /// Does many changes in one round trip that each stand for themselves: those that `prepare`
    /// refuses are not sent.
    pub(super) fn change_many<T, R>(
        &self,
        items: &[T],
        repeat: Repeat,
        prepare: impl Fn(&T) -> Result<(Vec<u8>, Cmd)>,
        finish: impl Fn(&T, Option<Reply<bool>>) -> Result<R>,
    ) -> Vec<Result<R>> {
        let mut pipeline = lenient();
        let mut keys = Vec::new();
        let mut refused = Vec::new();
        for item in items {
            match prepare(item) {
                Ok((key, command)) => {
                    pipeline.add_command(command);
                    keys.push(key);
                    refused.push(None);
                }
                Err(error) => refused.push(Some(error)),
            }
        }
        let answer = if keys.is_empty() {
            Ok(Vec::new())
        } else {
            let keys = keys.iter().map(Vec::as_slice);
            self.server.change(repeat, keys, |connection, deadline| {
                let replies = ask_all(&pipeline, connection, deadline)?;
                replies.into_iter().map(value).collect::<Result<Vec<_>, Lost>>()
            })
        };
        let mut replies = answer.ok().map(Vec::into_iter);
        let result = |(item, refused): (&T, Option<Error>)| {
            if let Some(error) = refused {
                return Err(error);
            }
            let reply = replies.as_mut().and_then(Iterator::next);
            if reply.is_none() {
                self.counts.unreachable();
            }
            finish(item, reply)
        };
        items.iter().zip(refused).map(result).collect()
    }

    /// Some keys of this store as the server knows them, and where to go on; zero at the end.
    pub(super) fn scan(
        &self,
        operation: &'static str,
        from: u64,
        limit: usize,
    ) -> Result<(u64, Vec<Vec<u8>>)> {
        let mut command = cmd("SCAN");
        command.arg(from);
        if !self.common.is_whole() {
            command.arg("MATCH").arg(pattern(&self.common.prefix));
        }
        command.arg("COUNT").arg(limit.max(1));
        self.whole(operation, &command)
    }

    /// Calls `each` with all keys of this store, some at a time, as the server knows them. A key
    /// can come twice.
    pub(super) fn scan_all(
        &self,
        operation: &'static str,
        mut each: impl FnMut(Vec<Vec<u8>>) -> Result<()>,
    ) -> Result<()> {
        let mut place = 0;
        loop {
            let (next, keys) = self.scan(operation, place, SCANNED_AT_ONCE)?;
            each(keys)?;
            if next == 0 {
                return Ok(());
            }
            place = next;
        }
    }
}
