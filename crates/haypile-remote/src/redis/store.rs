//! Redis as a [`Store`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haypile::url::CacheUrl;
use haypile::{
    Cursor, Durability, Error, Found, Hit, Lease, Limits, Page, Reservation, Result, SetOptions,
    Stats, Store, Ttl, WriteMode, Written,
};
use haypile_policy::rules::counter;
use redis::{Cmd, FromRedisValue, Value, cmd};

use super::connection::{Reply, value};
use super::lease::{and_head, head, is_placeholder, set_if, set_leased, touch};
use super::nodes::{Batch, Nodes, Purpose, single};
use super::refusal::Refusal;
use super::wire::{unlink, wire_ttl, with_key};
use crate::counts::{ServerCounts, written_nowhere};
use crate::deadline::Lost;
use crate::options::Common;
use crate::reservation::Buffered;
use crate::server::Repeat;

/// The server's default bound on a value.
const MAX_VALUE_BYTES: u64 = 512 << 20;
/// Attempts at changing a counter while others change it at the same time.
const COUNT_ATTEMPTS: u32 = 10_000;
/// Writes a value in the place of the one that was read, and keeps the TTL; returns whether that
/// one was still there.
const REPLACE_IF_SAME: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                               redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL') return 1 end return 0";
/// Deletes an entry that has this value; returns whether it did.
const DELETE_IF_SAME: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                              return redis.call('UNLINK', KEYS[1]) end return 0";

/// A store in a database of Redis or Valkey, or in a cluster; see the [module documentation](super).
///
/// [`Stats`] count the operations of this process. `entries` comes from the server; with a namespace, or
/// if the server does not answer, it is zero. `bytes` is always zero.
#[derive(Debug)]
pub struct RedisStore {
    pub(super) nodes: Nodes,
    pub(super) common: Common,
    counts: ServerCounts,
    is_closed: AtomicBool,
}

impl RedisStore {
    pub(super) fn new(nodes: Nodes, common: Common) -> Self {
        Self { nodes, common, counts: ServerCounts::default(), is_closed: AtomicBool::new(false) }
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(Error::Closed { store: self.describe() });
        }
        Ok(())
    }

    /// Returns a key in the form in which the Redis server stores it, with the store's prefix; an error if it is too
    /// long or the store is closed.
    pub(super) fn key(&self, key: &[u8]) -> Result<Vec<u8>> {
        self.check_open()?;
        let limit_bytes = Limits::MAX_KEY_BYTES - self.common.prefix.len();
        if key.len() > limit_bytes {
            return Err(Error::KeyTooLong {
                key_bytes: key.len(),
                limit_bytes,
                store: self.describe(),
            });
        }
        Ok(self.common.key(key))
    }

    fn check_value(&self, value_bytes: usize) -> Result<()> {
        if value_bytes as u64 <= MAX_VALUE_BYTES {
            return Ok(());
        }
        Err(Error::ValueTooLarge {
            value_bytes: value_bytes as u64,
            limit_bytes: MAX_VALUE_BYTES,
            store: self.describe(),
        })
    }

    pub(super) fn unsupported(&self, operation: &'static str) -> Error {
        Error::Unsupported { operation, store: self.describe() }
    }

    pub(super) fn backend(
        &self,
        operation: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::Backend { operation, store: self.describe(), source: source.into() }
    }

    pub(super) fn accepted<T>(&self, operation: &'static str, reply: Reply<T>) -> Result<T> {
        let is_in_cluster = matches!(self.nodes, Nodes::Cluster(_));
        reply.map_err(|error| self.backend(operation, Refusal::new(error, is_in_cluster)))
    }

    /// Sends a batch of commands to the Redis servers that have the keys, and counts the keys for which no server
    /// answered.
    pub(super) fn ask_about<R>(
        &self,
        purpose: Purpose,
        batch: &Batch,
        read: impl Fn(Vec<Reply<Value>>) -> Result<R, Lost>,
    ) -> Vec<Option<R>> {
        let answers = self.nodes.ask(purpose, batch, read);
        answers.iter().filter(|answer| answer.is_none()).for_each(|_| self.counts.unreachable());
        answers
    }

    /// Sends one Redis command for a key, and returns the reply; `None` if its server did not answer.
    pub(super) fn ask<T: FromRedisValue>(
        &self,
        purpose: Purpose,
        key: Vec<u8>,
        command: Cmd,
    ) -> Option<Reply<T>> {
        self.ask_about(purpose, &Batch::of(key, command), single).pop().flatten()
    }

    /// Reads the values of these keys, named as the server knows them.
    fn values(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Found>> {
        let mut batch = Batch::new();
        for key in keys {
            let commands = [with_key("PTTL", &key), with_key("GET", &key)];
            batch.push(key, commands);
        }
        let pair = |replies: Vec<Reply<Value>>| {
            let mut replies = replies.into_iter();
            let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
            Ok((value::<i64>(next())?, value::<Option<Vec<u8>>>(next())?))
        };
        let found = |(left, stored): (Reply<i64>, Reply<Option<Vec<u8>>>)| {
            let (left_ms, stored) = (self.accepted("get", left)?, self.accepted("get", stored)?);
            // Negative if there is no TTL, or if there was no entry yet.
            let left = u64::try_from(left_ms).ok().map(Duration::from_millis);
            let stored = stored.filter(|stored| !is_placeholder(stored));
            Ok(stored.map(|stored| (stored, Hit::new(None, left))))
        };
        let answers = self.ask_about(Purpose::Read, &batch, pair).into_iter();
        answers.map(|answer| answer.map_or(Ok(None), found)).collect()
    }

    fn set_command(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Cmd> {
        let ttl = options.ttl.resolve(self.common.ttl)?;
        let mut command = cmd("SET");
        command.arg(key).arg(value);
        match options.mode {
            WriteMode::Set => {}
            // A placeholder is not an entry, but the server takes it for one.
            WriteMode::Add => return Ok(set_if(key, value, false, ttl)),
            WriteMode::Replace => return Ok(set_if(key, value, true, ttl)),
            WriteMode::Leased(lease) => return Ok(set_leased(key, value, lease, ttl)),
            _ => return Err(self.unsupported("compare-and-swap")),
        }
        if let Some(ttl) = wire_ttl(ttl) {
            command.arg("PX").arg(ttl);
        }
        Ok(command)
    }

    fn written(&self, mode: WriteMode, reply: Option<Reply<bool>>) -> Result<Written> {
        let reply = reply.map(|reply| self.accepted("set", reply)).transpose()?;
        let written = match reply {
            None => written_nowhere(mode),
            Some(true) => Written::Stored,
            Some(false) if mode == WriteMode::Add => Written::Exists,
            Some(false) if matches!(mode, WriteMode::Leased(_)) => Written::Revoked,
            Some(false) => Written::Absent,
        };
        self.counts.written(written);
        Ok(written)
    }

    /// Returns the outcome of a deletion, which may have deleted a placeholder.
    fn deleted(&self, answer: Option<(Reply<bool>, bool)>) -> Result<bool> {
        let was_there = match answer {
            None => false,
            Some((reply, was_placeholder)) => self.accepted("delete", reply)? && !was_placeholder,
        };
        self.counts.deleted(was_there);
        Ok(was_there)
    }

    fn count(
        &self,
        operation: &'static str,
        key: &[u8],
        change: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        let key = self.key(key)?;
        for _ in 0..COUNT_ATTEMPTS {
            let seen: Option<Vec<u8>> =
                match self.ask(Purpose::Read, key.clone(), with_key("GET", &key)) {
                    Some(reply) => self.accepted(operation, reply)?,
                    None => None,
                };
            let Some(seen) = seen.filter(|seen| !is_placeholder(seen)) else {
                self.counts.counted(false);
                return Ok(None);
            };
            let number = counter::parse(&seen)
                .ok_or_else(|| Error::NotACounter { operation, store: self.describe() })?;
            let number = change(number);
            let mut command = cmd("EVAL");
            command.arg(REPLACE_IF_SAME).arg(1).arg(&key).arg(&seen).arg(number);
            let purpose = Purpose::Change(Repeat::Never);
            let reply = self.ask::<bool>(purpose, key.clone(), command);
            match reply.map(|reply| self.accepted(operation, reply)).transpose()? {
                // Another client changed it in the meantime.
                Some(false) => {}
                Some(true) => {
                    self.counts.counted(true);
                    return Ok(Some(number));
                }
                None => {
                    self.counts.counted(false);
                    return Ok(None);
                }
            }
        }
        Err(Error::Busy { store: self.describe(), process: None })
    }
}

impl Store for RedisStore {
    fn url(&self) -> CacheUrl {
        self.common.url.clone()
    }

    fn compute_wait(&self) -> Duration {
        self.common.compute_wait
    }

    fn limits(&self) -> Limits {
        Limits::new(Limits::MAX_KEY_BYTES - self.common.prefix.len(), MAX_VALUE_BYTES, None)
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        let key = self.key(key)?;
        let found = self.values(vec![key])?.pop().flatten();
        self.counts.read(found.is_some());
        Ok(found.map(|(value, hit)| {
            *buffer = value;
            hit
        }))
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        let key = self.key(key)?;
        self.check_value(value.len())?;
        let command = self.set_command(&key, value, options)?;
        let purpose = Purpose::Change(Repeat::of_writes([options.mode]));
        self.written(options.mode, self.ask(purpose, key, command))
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        options.ttl.resolve(self.common.ttl)?;
        self.key(key)?;
        self.check_value(value_bytes)?;
        Ok(Box::new(Buffered::new(self, key, value_bytes, *options)?))
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        let deleted = self.delete_many(&[key]).pop();
        deleted.expect("each key has its outcome")
    }

    /// Leaves the entry if the server does not answer: deleting the key later could delete another value,
    /// which the server itself never does, however late it runs the command.
    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        let mut command = cmd("EVAL");
        command.arg(DELETE_IF_SAME).arg(1).arg(&key).arg(expected);
        self.deleted(self.ask(Purpose::Read, key, command).map(|reply| (reply, false)))
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        let ttl = ttl.resolve(self.common.ttl)?;
        let key = self.key(key)?;
        let command = touch(&key, ttl);
        let was_there = match self.ask(Purpose::Change(Repeat::Harmless), key, command) {
            Some(reply) => self.accepted("touch", reply)?,
            None => false,
        };
        self.counts.touched(was_there);
        Ok(was_there)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("incr", key, |number| number.wrapping_add(delta))
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("decr", key, |number| number.saturating_sub(delta))
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        let mut batch = Batch::new();
        let commands = [head(&key), with_key("EXISTS", &key)];
        batch.push(key, commands);
        match self.ask_about(Purpose::Read, &batch, and_head).pop().flatten() {
            Some((reply, is_placeholder)) => {
                Ok(self.accepted::<bool>("contains", reply)? && !is_placeholder)
            }
            None => Ok(false),
        }
    }

    fn lease(&self, key: &[u8]) -> Result<Lease> {
        self.grant(key)
    }

    fn check_lease(&self, key: &[u8], lease: Lease, _groups: &[&[u8]]) -> Result<bool> {
        self.holds(key, lease)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let keys = keys.iter().map(|key| self.key(key)).collect::<Result<Vec<_>>>()?;
        let found = self.values(keys)?;
        for found in &found {
            self.counts.read(found.is_some());
        }
        Ok(found)
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        self.change_many(
            entries,
            Repeat::of_writes(entries.iter().map(|(_, _, options)| options.mode)),
            |(key, value, options)| {
                let key = self.key(key)?;
                self.check_value(value.len())?;
                let command = self.set_command(&key, value, options)?;
                Ok((key, [command]))
            },
            single,
            |(_, _, options), reply| self.written(options.mode, reply),
        )
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        self.change_many(
            keys,
            Repeat::Harmless,
            |key| {
                let key = self.key(key)?;
                let commands = [head(&key), unlink(&key)];
                Ok((key, commands))
            },
            and_head,
            |_, answer| self.deleted(answer),
        )
    }

    /// Deletes the whole database, including entries of other clients; of a namespace, its entries
    /// one by one.
    fn clear(&self) -> Result<()> {
        self.check_open()?;
        if self.common.is_whole() {
            return self.flush_all("clear");
        }
        self.scan_all("clear", |keys| self.delete_all("clear", keys))
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.check_open()?;
        let (next, keys) = self.scan("keys", from, limit)?;
        let keys = self.of_entries(keys)?;
        let own =
            |key: Vec<u8>| key.strip_prefix(self.common.prefix.as_slice()).map(<[u8]>::to_vec);
        let keys = keys.into_iter().filter_map(own).collect();
        Ok(Page::new(keys, next))
    }

    fn len(&self) -> Result<u64> {
        self.check_open()?;
        if self.common.is_whole() {
            return self.count_all("len");
        }
        let mut keys = HashSet::new();
        self.scan_all("len", |some| {
            keys.extend(some);
            Ok(())
        })?;
        Ok(keys.len() as u64)
    }

    fn bytes(&self) -> Result<u64> {
        self.check_open()?;
        Err(self.unsupported("bytes"))
    }

    fn stats(&self) -> Result<Stats> {
        let mut stats = self.counts.stats();
        stats.unfenced = self.nodes.fences().unfenced();
        if self.common.is_whole() {
            stats.entries = self.len().unwrap_or(0);
        }
        Ok(stats)
    }

    fn warnings(&self) -> Vec<String> {
        self.nodes.warnings()
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        self.check_open()?;
        match durability {
            Durability::Visible => Ok(()),
            _ => Err(self.unsupported("flush to disk")),
        }
    }

    /// Closes this process' connections; the entries stay.
    fn close(&self) -> Result<()> {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.nodes.end();
        }
        Ok(())
    }
}
