//! memcached as a [`Store`].

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haypile::url::CacheUrl;
use haypile::{
    Cursor, Durability, Error, Found, Hit, Lease, Limits, Page, Reservation, Result, SetOptions,
    Stats, Store, Ttl, Version, WriteMode, Written,
};
use haypile_policy::rules::counter;
use memcache::exp::{
    ArithmeticMode, ArithmeticOptions, GetOptions, MetaCommand, MetaCommandResult, ReturnCode,
    SetMode, SetOptions as MetaSetOptions, build_arithmetic, build_get, build_set,
};

use parking_lot::Mutex;

use super::admin;
use super::connection::{Memcached, Reply};
use super::lease::{Item, Start, cas_of, is_placeholder, look_command};
use super::opener::MAX_WIRE_KEY_BYTES;
use super::rendezvous::Rendezvous;
use super::wire::{
    count_options, delete_command, delete_version_command, get_options, wire_limit_bytes, wire_ttl,
};
use crate::counts::{ServerCounts, written_nowhere};
use crate::fence::Fences;
use crate::options::Common;
use crate::reservation::Buffered;
use crate::server::{Repeat, Server, Unreachable};

/// The client flags of values that were counters when they were written. The lower half, in which
/// other clients store the encoding of a value, is zero.
const COUNTER_FLAGS: u32 = 0x4859_0000;
/// An upper bound on what the server's header, flags, CAS number and the terminators of key and
/// value take of an item.
const ITEM_OVERHEAD_BYTES: u64 = 64;
/// The number of times that a value is compared again after it was rewritten between its comparison and
/// its deletion.
const COMPARE_ATTEMPTS: u32 = 10_000;

/// A store on one or several memcached servers; see the [module documentation](super).
///
/// [`Stats`] count the operations of this process. `entries`, `bytes` and `capacity_bytes` come from the
/// servers; with a namespace, or if a server does not answer, they are zero and `None`.
#[derive(Debug)]
pub struct MemcachedStore {
    pub(super) servers: Vec<Server<Memcached>>,
    /// The lost connections to all servers.
    fences: Arc<Fences>,
    rendezvous: Rendezvous,
    pub(super) common: Common,
    /// The time and process id with which each memcached server started, by which leases notice a restart.
    pub(super) starts: Vec<Mutex<Option<Start>>>,
    /// Whether a memcached server was found to run without CAS numbers (option `-C`), which leases need.
    pub(super) lacks_versions: AtomicBool,
    item_size_bytes: u64,
    pub(super) counts: ServerCounts,
    is_closed: AtomicBool,
}

/// A key in the form in which a memcached server stores it, with the number of that server.
#[derive(Clone)]
pub(super) struct ServerKey {
    pub(super) bytes: Vec<u8>,
    pub(super) server: usize,
}

impl MemcachedStore {
    pub(super) fn new(
        servers: Vec<Server<Memcached>>,
        fences: Arc<Fences>,
        common: Common,
        item_size_bytes: u64,
    ) -> Self {
        let rendezvous = Rendezvous::new(servers.iter().map(|server| &**server.name()));
        let (counts, is_closed) = (ServerCounts::default(), AtomicBool::new(false));
        let starts = servers.iter().map(|_| Mutex::default()).collect();
        let lacks_versions = AtomicBool::new(false);
        Self {
            servers,
            fences,
            rendezvous,
            common,
            starts,
            lacks_versions,
            item_size_bytes,
            counts,
            is_closed,
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(Error::Closed { store: self.describe() });
        }
        Ok(())
    }

    pub(super) fn key(&self, key: &[u8]) -> Result<ServerKey> {
        self.check_open()?;
        let bytes = self.common.key(key);
        if bytes.is_empty() {
            return Err(self.unsupported("an empty key"));
        }
        let limit_bytes = wire_limit_bytes(&bytes);
        if bytes.len() > limit_bytes {
            let limit_bytes = limit_bytes - self.common.prefix.len();
            return Err(Error::KeyTooLong {
                key_bytes: key.len(),
                limit_bytes,
                store: self.describe(),
            });
        }
        let server = self.rendezvous.server_of(&bytes);
        Ok(ServerKey { bytes, server })
    }

    fn longest_value(&self, key_bytes: usize) -> u64 {
        self.item_size_bytes.saturating_sub(ITEM_OVERHEAD_BYTES + key_bytes as u64)
    }

    fn check_value(&self, key: &ServerKey, value_bytes: usize) -> Result<()> {
        let (value_bytes, limit_bytes) = (value_bytes as u64, self.longest_value(key.bytes.len()));
        if value_bytes <= limit_bytes {
            return Ok(());
        }
        Err(Error::ValueTooLarge { value_bytes, limit_bytes, store: self.describe() })
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

    /// Returns the memcached server's answer, or an error if it refused the command.
    pub(super) fn accepted(
        &self,
        operation: &'static str,
        reply: Reply,
    ) -> Result<MetaCommandResult> {
        reply.map_err(|why| self.backend(operation, format!("the server refused: {why}")))
    }

    /// Polls whether servers have ended the lost connections, and returns for each key whether it counts as missing
    /// until then; `None` if no key does. No server is asked about such keys.
    pub(super) fn apart(&self, keys: &[&ServerKey]) -> Option<Vec<bool>> {
        self.settle();
        let apart = self.fences.apart(keys.iter().map(|key| key.bytes.as_slice()))?;
        let is_unheard =
            |place: &usize| apart[*place] && self.fences.is_unheard(&keys[*place].bytes);
        if let Some(place) = (0..keys.len()).find(is_unheard) {
            self.servers[keys[place].server].probe();
        }
        Some(apart)
    }

    fn settle(&self) {
        self.fences.settle(|key| self.servers[self.rendezvous.server_of(key)].enqueue([key]));
    }

    /// Sends a memcached command that changes an entry, and returns the reply; `None` if the server did not answer.
    pub(super) fn change(
        &self,
        key: &ServerKey,
        repeat: Repeat,
        command: &MetaCommand,
    ) -> Option<Reply> {
        let server = &self.servers[key.server];
        self.answer_about(key, || {
            server.change(repeat, &[&key.bytes], |connection, deadline| {
                connection.ask(command.clone(), deadline)
            })
        })
    }

    pub(super) fn read(&self, key: &ServerKey, options: &GetOptions) -> Option<Reply> {
        let command = build_get(&key.bytes, options).expect("the options are in range");
        self.ask(key, &command)
    }

    /// Sends a command that need not be repeated later; `None` if the server did not answer.
    fn ask(&self, key: &ServerKey, command: &MetaCommand) -> Option<Reply> {
        let server = &self.servers[key.server];
        self.answer_about(key, || {
            server.ask(Repeat::Harmless, &[], |connection, deadline| {
                connection.ask(command.clone(), deadline)
            })
        })
    }

    pub(super) fn answer_about<T>(
        &self,
        key: &ServerKey,
        ask: impl FnOnce() -> Result<T, Unreachable>,
    ) -> Option<T> {
        let answer = if self.apart(&[key]).is_some() { None } else { ask().ok() };
        if answer.is_none() {
            self.counts.unreachable();
        }
        answer
    }

    /// Converts the reply to a command for a value.
    fn found(&self, reply: Reply) -> Result<Found> {
        let result = self.accepted("get", reply)?;
        if is_placeholder(&result) {
            return Ok(None);
        }
        match (result.rc, result.value) {
            (ReturnCode::Va, Some(mut value)) => {
                if result.client_flags == Some(COUNTER_FLAGS) {
                    let digits = value.iter().rposition(|byte| *byte != b' ');
                    value.truncate(digits.map_or(0, |last| last + 1));
                }
                // The server sends no CAS number if it runs without them.
                let version = result.cas.filter(|cas| *cas > 0).map(Version::from_raw);
                let left = result.ttl.and_then(|seconds| u64::try_from(seconds).ok());
                Ok(Some((value, Hit::new(version, left.map(Duration::from_secs)))))
            }
            (ReturnCode::En, _) => Ok(None),
            (code, _) => Err(self.backend("get", format!("the server answered {code:?}"))),
        }
    }

    fn set_command(
        &self,
        key: &ServerKey,
        value: &[u8],
        options: &SetOptions,
    ) -> Result<MetaCommand> {
        let mut meta = MetaSetOptions::default();
        meta.ttl = Some(wire_ttl(options.ttl.resolve(self.common.ttl)?));
        meta.client_flags = counter::parse(value).map(|_| COUNTER_FLAGS);
        match options.mode {
            WriteMode::Set => {}
            WriteMode::Add => meta.mode = SetMode::Add,
            WriteMode::Replace => meta.mode = SetMode::Replace,
            WriteMode::Cas(version) => meta.compare_cas = Some(version.raw()),
            WriteMode::Leased(lease) => meta.compare_cas = Some(cas_of(lease)),
            _ => return Err(self.unsupported("set under this condition")),
        }
        build_set(&key.bytes, value, &meta).map_err(|error| self.backend("set", error))
    }

    pub(super) fn written(&self, mode: WriteMode, reply: Option<Reply>) -> Result<Written> {
        let written = match reply {
            None => written_nowhere(mode),
            Some(reply) => match self.accepted("set", reply)?.rc {
                ReturnCode::Hd => Written::Stored,
                ReturnCode::Ns if mode == WriteMode::Add => Written::Exists,
                ReturnCode::Nf | ReturnCode::Ex if matches!(mode, WriteMode::Leased(_)) => {
                    Written::Revoked
                }
                ReturnCode::Ns | ReturnCode::Nf => Written::Absent,
                ReturnCode::Ex => Written::Changed,
                code => return Err(self.backend("set", format!("the server answered {code:?}"))),
            },
        };
        self.counts.written(written);
        Ok(written)
    }

    /// Returns the outcome of a write. The server takes a placeholder for an entry: an `add` is done over it by another
    /// write, and a `cas` finds nothing.
    fn written_on_nothing(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        reply: Option<Reply>,
    ) -> Result<Written> {
        let code = reply.as_ref().and_then(|reply| reply.as_ref().ok()).map(|result| result.rc);
        match (options.mode, code) {
            (WriteMode::Add, Some(ReturnCode::Ns)) => self.add(&self.key(key)?, value, options),
            (WriteMode::Cas(_), Some(ReturnCode::Ex))
                if matches!(self.look("set", &self.key(key)?)?, Item::Placeholder(_)) =>
            {
                self.counts.written(Written::Absent);
                Ok(Written::Absent)
            }
            _ => self.written(options.mode, reply),
        }
    }

    /// Writes where there is a placeholder, or nothing any more.
    fn add(&self, key: &ServerKey, value: &[u8], options: &SetOptions) -> Result<Written> {
        for _ in 0..COMPARE_ATTEMPTS {
            let over = match self.look("set", key)? {
                Item::Entry(_) => {
                    self.counts.written(Written::Exists);
                    return Ok(Written::Exists);
                }
                Item::Absent => *options,
                Item::Placeholder(cas) => {
                    SetOptions::cas(Version::from_raw(cas)).with_ttl(options.ttl)
                }
            };
            let command = self.set_command(key, value, &over)?;
            let reply = self.change(key, Repeat::Never, &command);
            // Somebody has written or removed it since.
            let is_changed = matches!(
                &reply,
                Some(Ok(result))
                    if matches!(result.rc, ReturnCode::Ns | ReturnCode::Ex | ReturnCode::Nf)
            );
            if !is_changed {
                return self.written(options.mode, reply);
            }
        }
        Err(Error::Busy { store: self.describe(), process: None })
    }

    /// Writes where there is an entry and not a placeholder, which the server takes for one.
    fn replace(&self, key: &ServerKey, value: &[u8], options: &SetOptions) -> Result<Written> {
        for _ in 0..COMPARE_ATTEMPTS {
            let Item::Entry(cas) = self.look("set", key)? else {
                self.counts.written(Written::Absent);
                return Ok(Written::Absent);
            };
            let over =
                cas.map_or_else(SetOptions::replace, |cas| SetOptions::cas(Version::from_raw(cas)));
            let command = self.set_command(key, value, &over.with_ttl(options.ttl))?;
            let reply = self.change(key, Repeat::Never, &command);
            // It was written or removed since, perhaps in the place of what was written.
            let is_changed = matches!(
                &reply,
                Some(Ok(result)) if matches!(result.rc, ReturnCode::Ex | ReturnCode::Nf)
            );
            if !is_changed || cas.is_none() {
                return self.written(options.mode, reply);
            }
        }
        Err(Error::Busy { store: self.describe(), process: None })
    }

    /// Returns the outcome of a deletion, of an entry or of something else.
    fn deleted(&self, reply: Option<Reply>, is_entry: bool) -> Result<bool> {
        let was_there = match reply {
            None => false,
            Some(reply) => self.accepted("delete", reply)?.rc == ReturnCode::Hd && is_entry,
        };
        self.counts.deleted(was_there);
        Ok(was_there)
    }

    fn count(
        &self,
        operation: &'static str,
        key: &[u8],
        options: &ArithmeticOptions,
    ) -> Result<Option<u64>> {
        self.count_key(operation, &self.key(key)?, options, false)
    }

    fn count_key(
        &self,
        operation: &'static str,
        key: &ServerKey,
        options: &ArithmeticOptions,
        is_again: bool,
    ) -> Result<Option<u64>> {
        let command = build_arithmetic(&key.bytes, options).expect("the options are in range");
        let number = match self.change(key, Repeat::Never, &command) {
            None => None,
            Some(Err(why)) if why.contains("non-numeric") => match self.look(operation, key)? {
                Item::Entry(_) if is_again => {
                    return Err(Error::NotACounter { operation, store: self.describe() });
                }
                // Perhaps it has come in the place of a placeholder.
                Item::Entry(_) => return self.count_key(operation, key, options, true),
                Item::Placeholder(_) | Item::Absent => None,
            },
            Some(reply) => {
                let result = self.accepted(operation, reply)?;
                let number = result.value.as_deref().and_then(counter::parse);
                if number.is_none() && result.rc != ReturnCode::Nf {
                    let answer = format!("the server answered {:?}", result.rc);
                    return Err(self.backend(operation, answer));
                }
                number
            }
        };
        self.counts.counted(number.is_some());
        Ok(number)
    }

    /// Returns the sum of a statistic over all servers.
    fn sum(&self, operation: &'static str, name: &str) -> Result<u64> {
        self.check_open()?;
        if !self.common.is_whole() {
            return Err(self.unsupported(match operation {
                "len" => "len of a namespace",
                _ => "bytes of a namespace",
            }));
        }
        let numbers = self.numbers().map_err(|error| self.backend(operation, error))?;
        Ok(numbers.iter().filter(|(found, _)| found == name).map(|(_, number)| number).sum())
    }

    fn numbers(&self) -> Result<Vec<(String, u64)>, Unreachable> {
        let mut numbers = Vec::new();
        for server in &self.servers {
            numbers.extend(server.on_fresh_connection(|memcached, deadline| {
                let stream = memcached.address.connect(deadline)?;
                admin::numbers(stream, "stats", deadline)
            })?);
        }
        Ok(numbers)
    }
}

impl Store for MemcachedStore {
    fn url(&self) -> CacheUrl {
        self.common.url.clone()
    }

    fn compute_wait(&self) -> Duration {
        self.common.compute_wait
    }

    fn limits(&self) -> Limits {
        let max_key_bytes = MAX_WIRE_KEY_BYTES - self.common.prefix.len();
        Limits::new(max_key_bytes, self.longest_value(self.common.prefix.len()), None)
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        let key = self.key(key)?;
        let found = match self.read(&key, &get_options()) {
            Some(reply) => self.found(reply)?,
            None => None,
        };
        self.counts.read(found.is_some());
        Ok(found.map(|(value, hit)| {
            *buffer = value;
            hit
        }))
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        let at = self.key(key)?;
        self.check_value(&at, value.len())?;
        if options.mode == WriteMode::Replace {
            return self.replace(&at, value, options);
        }
        let command = self.set_command(&at, value, options)?;
        if let WriteMode::Leased(lease) = options.mode {
            return self.set_leased(&at, &command, lease);
        }
        let reply = self.change(&at, Repeat::of_writes([options.mode]), &command);
        self.written_on_nothing(key, value, options, reply)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        options.ttl.resolve(self.common.ttl)?;
        self.check_value(&self.key(key)?, value_bytes)?;
        Ok(Box::new(Buffered::new(self, key, value_bytes, *options)?))
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        let deleted = self.delete_many(&[key]).pop();
        deleted.expect("each key has its outcome")
    }

    /// Leaves the entry if the server does not answer: deleting the key later could delete a newer
    /// value.
    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        let key = self.key(key)?;
        let command = delete_version_command(&key.bytes, version.raw());
        self.deleted(self.ask(&key, &command), true)
    }

    /// Leaves the entry if the server does not answer, as [`delete_version`](Store::delete_version) does.
    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        for _ in 0..COMPARE_ATTEMPTS {
            let found = match self.read(&key, &get_options()) {
                Some(reply) => self.found(reply)?,
                None => None,
            };
            let Some((_, hit)) = found.filter(|(value, _)| value == expected) else {
                return self.deleted(None, true);
            };
            let version = hit.version.ok_or_else(|| self.unsupported("compare_and_delete"))?;
            let command = delete_version_command(&key.bytes, version.raw());
            let reply = self.ask(&key, &command);
            let is_changed = matches!(&reply, Some(Ok(result)) if result.rc == ReturnCode::Ex);
            if !is_changed {
                return self.deleted(reply, true);
            }
            // It was written since, perhaps with an equal value.
        }
        Err(Error::Busy { store: self.describe(), process: None })
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        let ttl = wire_ttl(ttl.resolve(self.common.ttl)?);
        let key = self.key(key)?;
        let mut options = GetOptions::default();
        options.value = false;
        options.return_size = true;
        options.touch = Some(ttl);
        let command = build_get(&key.bytes, &options).expect("the options are in range");
        let was_there = match self.change(&key, Repeat::Harmless, &command) {
            None => false,
            Some(reply) => {
                let result = self.accepted("touch", reply)?;
                let has_placeholder = is_placeholder(&result);
                if has_placeholder {
                    // It lives as long as any.
                    options.touch = Some(wire_ttl(Some(self.common.lease_life())));
                    self.read(&key, &options);
                }
                result.rc == ReturnCode::Hd && !has_placeholder
            }
        };
        self.counts.touched(was_there);
        Ok(was_there)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("incr", key, &count_options(ArithmeticMode::Increment, delta))
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("decr", key, &count_options(ArithmeticMode::Decrement, delta))
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        Ok(matches!(self.look("contains", &key)?, Item::Entry(_)))
    }

    fn lease(&self, key: &[u8]) -> Result<Lease> {
        self.grant(key)
    }

    fn check_lease(&self, key: &[u8], lease: Lease, _groups: &[&[u8]]) -> Result<bool> {
        self.holds(key, lease)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let command = |key: &&[u8]| {
            let key = self.key(key)?;
            let command = build_get(&key.bytes, &get_options()).expect("the options are in range");
            Ok((key, command))
        };
        let commands = keys.iter().map(command).collect::<Result<Vec<_>>>()?;
        let found = |reply: Option<Reply>| {
            let found = reply.map_or(Ok(None), |reply| self.found(reply))?;
            self.counts.read(found.is_some());
            Ok(found)
        };
        self.ask_many(&commands, 1, false, Repeat::Harmless).into_iter().map(found).collect()
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        let is_any = |of: fn(WriteMode) -> bool| entries.iter().any(|entry| of(entry.2.mode));
        // What a batch writes over a placeholder comes after the rest of it.
        let is_repeated = || {
            let mut keys = HashSet::new();
            !entries.iter().all(|(key, ..)| keys.insert(key))
        };
        if is_any(|mode| matches!(mode, WriteMode::Replace | WriteMode::Leased(_)))
            || is_any(|mode| mode == WriteMode::Add) && is_repeated()
        {
            let each = entries.iter();
            return each.map(|(key, value, options)| self.set(key, value, options)).collect();
        }
        self.change_many(
            entries,
            Repeat::of_writes(entries.iter().map(|(_, _, options)| options.mode)),
            |(key, value, options)| {
                let key = self.key(key)?;
                self.check_value(&key, value.len())?;
                let command = self.set_command(&key, value, options)?;
                Ok((key, [command]))
            },
            |(key, value, options), [reply]| self.written_on_nothing(key, value, options, reply),
        )
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        self.change_many(
            keys,
            Repeat::Harmless,
            |key| {
                let key = self.key(key)?;
                let commands = [look_command(&key.bytes), delete_command(&key.bytes)];
                Ok((key, commands))
            },
            |_, [seen, deleted]| {
                // A placeholder is not an entry, though the server has deleted it.
                let item =
                    seen.map(|seen| self.item(&self.accepted("delete", seen)?)).transpose()?;
                let is_entry = !matches!(item, Some(Item::Placeholder(_)));
                self.deleted(deleted, is_entry)
            },
        )
    }

    /// Deletes everything that the servers hold, including entries of other clients.
    fn clear(&self) -> Result<()> {
        self.check_open()?;
        if !self.common.is_whole() {
            return Err(self.unsupported("clear of a namespace"));
        }
        for server in &self.servers {
            let cleared = server.on_fresh_connection(|memcached, deadline| {
                admin::flush_all(memcached.address.connect(deadline)?, deadline)
            });
            cleared.map_err(|error| self.backend("clear", error))?;
        }
        Ok(())
    }

    fn keys(&self, _from: Cursor, _limit: usize) -> Result<Page> {
        self.check_open()?;
        Err(self.unsupported("iteration over keys"))
    }

    /// Returns the servers' count, including entries of other clients.
    fn len(&self) -> Result<u64> {
        self.sum("len", "curr_items")
    }

    /// Returns the servers' count, including entries of other clients.
    fn bytes(&self) -> Result<u64> {
        self.sum("bytes", "bytes")
    }

    fn stats(&self) -> Result<Stats> {
        let mut stats = self.counts.stats();
        stats.unfenced = self.fences.unfenced();
        if self.common.is_whole()
            && self.check_open().is_ok()
            && let Ok(numbers) = self.numbers()
        {
            let sum = |name: &str| {
                numbers.iter().filter(|(found, _)| found == name).map(|(_, number)| number).sum()
            };
            stats.entries = sum("curr_items");
            stats.bytes = sum("bytes");
            stats.capacity_bytes = Some(sum("limit_maxbytes"));
        }
        Ok(stats)
    }

    fn warnings(&self) -> Vec<String> {
        self.servers.iter().flat_map(Server::warnings).chain(self.fences.warnings()).collect()
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
            self.settle();
            self.servers.iter().for_each(Server::end);
            self.fences.end();
        }
        Ok(())
    }
}
