//! Leases: the CAS number of an entry, or of a placeholder where there is none.
//!
//! `mg` with `N` makes an empty item of a key that has none, and all clients are told of it (`W` or `Z`) until somebody
//! stores a value. Whoever deletes or writes the key changes its CAS number, in whatever way. The numbers of a server begin
//! again when it restarts: a lease has its process and the time at which that started, which are asked once for each new
//! connection.

use std::sync::atomic::Ordering;

use haypile::{Lease, Result, WriteMode, Written};
use memcache::exp::{GetOptions, MetaCommand, MetaCommandResult, ReturnCode, build_get};

use super::admin;
use super::connection::{Connection, Reply};
use super::store::{MemcachedStore, ServerKey};
use super::wire::{delete_command, wire_ttl};
use crate::server::Repeat;

/// The start of a memcached server, identified by its time and process id, by which leases notice that the server
/// restarted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    second: u64,
    /// The number of the server's process.
    process: u64,
    /// The last connection to the server that had been opened when the server was asked for its
    /// start.
    last_connection: u64,
}

impl Start {
    /// Whether the server has granted a lease since.
    fn granted(self, lease: Lease) -> bool {
        let [cas, second, _, process] = lease.words();
        ![0, NO_CAS].contains(&cas) && self.second == second && self.process == process
    }
}

/// Returns the memcached CAS number (the version of an item) that a lease contains.
pub(super) fn cas_of(lease: Lease) -> u64 {
    lease.words()[0]
}

/// A CAS number (version) that memcached assigns to no item, for a lease that never holds.
pub(super) const NO_CAS: u64 = u64::MAX;

/// Whether memcached's answer is about a placeholder: an item without a value, which marks a key with a lease. The
/// command has to ask for the value or its size.
pub(super) fn is_placeholder(result: &MetaCommandResult) -> bool {
    let bytes = result.size.or(result.value.as_ref().map(|value| value.len() as u64));
    (result.won || result.busy) && !result.stale && bytes == Some(0)
}

/// Returns the flags of a look at an item, which changes nothing.
fn look_options() -> GetOptions {
    let mut options = GetOptions::default();
    options.value = false;
    options.return_size = true;
    options.return_cas = true;
    options.no_lru_bump = true;
    options
}

/// Returns the memcached command that reads an item's size and CAS number, without its value and without counting as a
/// use.
pub(super) fn look_command(key: &[u8]) -> MetaCommand {
    build_get(key, &look_options()).expect("the options are in range")
}

/// The state of a key on a memcached server: missing, a placeholder (an item that marks that somebody has a lease on the
/// key), or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The key has no entry, or the server does not answer.
    Absent,
    /// The key has a placeholder, because somebody has a lease; with its CAS number.
    Placeholder(u64),
    /// The key has an entry, with a CAS number if the server has them.
    Entry(Option<u64>),
}

impl MemcachedStore {
    /// Asks the memcached server what it has under a key: nothing, a placeholder that marks a lease on the key, or a
    /// value.
    pub(super) fn look(&self, operation: &'static str, key: &ServerKey) -> Result<Item> {
        let Some(reply) = self.read(key, &look_options()) else { return Ok(Item::Absent) };
        self.item(&self.accepted(operation, reply)?)
    }

    /// Converts memcached's reply to [`look_command`] into what the server has under the key: nothing, a placeholder of
    /// a lease, or a value.
    pub(super) fn item(&self, result: &MetaCommandResult) -> Result<Item> {
        let cas = result.cas.filter(|cas| *cas > 0);
        Ok(match (result.rc, cas) {
            (ReturnCode::Hd, cas) if is_placeholder(result) => {
                Item::Placeholder(cas.unwrap_or(NO_CAS))
            }
            (ReturnCode::Hd, cas) => Item::Entry(cas),
            (ReturnCode::En, _) => Item::Absent,
            (code, _) => {
                return Err(self.backend("get", format!("the server answered {code:?}")));
            }
        })
    }

    pub(super) fn grant(&self, key: &[u8]) -> Result<Lease> {
        let key = self.key(key)?;
        if !self.common.has_leases || self.lacks_versions.load(Ordering::Relaxed) {
            return Err(self.unsupported("lease"));
        }
        let mut options = look_options();
        options.vivify_ttl = Some(wire_ttl(Some(self.common.lease_life())));
        let command = build_get(&key.bytes, &options).expect("the options are in range");
        let Some((start, reply)) = self.ask_started(&key, &command) else {
            return Ok(Lease::from_words([NO_CAS, 0, 0, 0]));
        };
        let result = self.accepted("lease", reply)?;
        match (result.rc, result.cas.filter(|cas| *cas > 0)) {
            (ReturnCode::Hd, Some(cas)) => {
                Ok(Lease::from_words([cas, start.second, 0, start.process]))
            }
            (ReturnCode::Hd, None) => {
                self.lacks_versions.store(true, Ordering::Relaxed);
                if is_placeholder(&result) {
                    // Nobody could write over it.
                    let _ = self.change(&key, Repeat::Harmless, &delete_command(&key.bytes));
                }
                Err(self.unsupported("lease"))
            }
            (code, _) => Err(self.backend("lease", format!("the server answered {code:?}"))),
        }
    }

    pub(super) fn holds(&self, key: &[u8], lease: Lease) -> Result<bool> {
        let key = self.key(key)?;
        // Nobody has removed it from a server that does not answer, as far as anybody can see.
        let Some((start, reply)) = self.ask_started(&key, &look_command(&key.bytes)) else {
            return Ok(true);
        };
        let item = self.item(&self.accepted("lease", reply)?)?;
        let is_same =
            matches!(item, Item::Placeholder(now) | Item::Entry(Some(now)) if now == cas_of(lease));
        Ok(is_same && start.granted(lease))
    }

    /// Writes a value to memcached if its key has not changed since the lease (the right to write the computed value)
    /// was granted.
    pub(super) fn set_leased(
        &self,
        key: &ServerKey,
        command: &MetaCommand,
        lease: Lease,
    ) -> Result<Written> {
        let server = &self.servers[key.server];
        let answer = self.answer_about(key, || {
            server.change(Repeat::Never, &[&key.bytes], |connection, deadline| {
                let start = self.start(key.server, connection);
                if start.is_some_and(|start| start.granted(lease)) {
                    connection.ask(command.clone(), deadline).map(Some)
                } else {
                    Ok(None)
                }
            })
        });
        self.written(WriteMode::Leased(lease), answer.flatten())
    }

    /// Sends a command that changes no entry, and returns when the server started that answered.
    fn ask_started(&self, key: &ServerKey, command: &MetaCommand) -> Option<(Start, Reply)> {
        let server = &self.servers[key.server];
        let answer = self.answer_about(key, || {
            server.ask(Repeat::Harmless, &[], |connection, deadline| {
                // Asked before: a server that restarts in between has ended the connection.
                let Some(start) = self.start(key.server, connection) else { return Ok(None) };
                connection.ask(command.clone(), deadline).map(|reply| Some((start, reply)))
            })
        });
        answer.flatten()
    }

    /// Returns when the server started that a connection leads to, if to any; `None` if it does not answer.
    fn start(&self, number: usize, connection: &Connection) -> Option<Start> {
        let mut known = self.starts[number].lock();
        // A connection that was open when the server was asked leads to no later one.
        if let Some(start) = known.filter(|start| connection.number <= start.last_connection) {
            return Some(start);
        }
        let asked = self.servers[number].on_fresh_connection(|memcached, deadline| {
            let last_connection = memcached.last_connection();
            let stream = memcached.address.connect(deadline)?;
            Ok((last_connection, admin::numbers(stream, "stats", deadline)?))
        });
        let (last_connection, numbers) = asked.ok()?;
        let number =
            |name| numbers.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
        let second = number("time")?.checked_sub(number("uptime")?)?;
        *known = Some(Start { second, process: number("pid")?, last_connection });
        *known
    }
}
