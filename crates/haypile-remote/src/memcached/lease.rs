//! Leases: the CAS number of an entry, or of a placeholder where there is none.
//!
//! `mg` with `N` makes an empty item of a key that has none, and all clients are told of it (`W` or `Z`) until somebody
//! stores a value. Whoever deletes or writes the key changes its CAS number, in whatever way. The numbers of a server begin
//! again when it restarts: a lease has its process and the time at which that started, which are asked again after a lost
//! connection.

use std::process;
use std::sync::atomic::Ordering;

use haypile::{Lease, Result};
use memcache::exp::{GetOptions, MetaCommand, MetaCommandResult, ReturnCode, build_get};

use super::admin;
use super::store::{MemcachedStore, ServerKey};
use super::wire::{delete_command, wire_ttl};
use crate::lease::{lease_of, words_of};
use crate::server::Repeat;

/// When a server started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    second: u64,
    /// The number of its process.
    process: u64,
    /// The number of connections to it that had been lost when it was asked.
    lost: u64,
    /// The process that asked. A forked child has lost all connections of its parent.
    asked_by: u32,
}

/// No server gives this number to an item.
pub(super) const NO_CAS: u64 = u64::MAX;

/// Whether this is the answer about an item without a value, of a key that somebody has a lease on. It has to ask for the value
/// or its size.
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

/// Returns the command of such a look.
pub(super) fn look_command(key: &[u8]) -> MetaCommand {
    build_get(key, &look_options()).expect("the options are in range")
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// There is none, or the server does not answer.
    Absent,
    /// Somebody has a lease.
    Placeholder(u64),
    /// There is an entry, with a CAS number if the server has them.
    Entry(Option<u64>),
}

impl MemcachedStore {
    /// Returns what there is of a key.
    pub(super) fn look(&self, operation: &'static str, key: &ServerKey) -> Result<Item> {
        let Some(reply) = self.read(key, &look_options()) else { return Ok(Item::Absent) };
        self.item(&self.accepted(operation, reply)?)
    }

    /// Converts the reply to a look.
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
        // Before the number: a server that restarts in between gives one of no use.
        let start = self.start(key.server);
        let (Some(start), Some(reply)) = (start, self.read(&key, &options)) else {
            return Ok(lease_of([NO_CAS, 0, 0, 0]));
        };
        let result = self.accepted("lease", reply)?;
        match (result.rc, result.cas.filter(|cas| *cas > 0)) {
            (ReturnCode::Hd, Some(cas)) => Ok(lease_of([cas, start.second, 0, start.process])),
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
        let cas = self.lease_cas(&key, lease);
        // Nobody has removed it from a server that does not answer, as far as anybody can see.
        let Some(reply) = self.read(&key, &look_options()) else { return Ok(true) };
        let item = self.item(&self.accepted("lease", reply)?)?;
        Ok(matches!(item, Item::Placeholder(now) | Item::Entry(Some(now)) if now == cas))
    }

    /// Returns when a server started; `None` if it does not answer.
    fn start(&self, number: usize) -> Option<Start> {
        let server = &self.servers[number];
        let lost = server.lost_connections();
        let mut known = self.starts[number].lock();
        let asked_by = process::id();
        if let Some(start) = known.filter(|start| start.lost == lost && start.asked_by == asked_by)
        {
            return Some(start);
        }
        if server.is_down() {
            return None;
        }
        let numbers = server.on_fresh_connection(|memcached, deadline| {
            admin::numbers(memcached.address.connect(deadline)?, "stats", deadline)
        });
        let numbers = numbers.ok()?;
        let number =
            |name| numbers.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
        let second = number("time")?.checked_sub(number("uptime")?)?;
        *known = Some(Start { second, process: number("pid")?, lost, asked_by });
        *known
    }

    /// Returns the CAS number that an item must have for a write under this lease.
    pub(super) fn lease_cas(&self, key: &ServerKey, lease: Lease) -> u64 {
        let [cas, second, _, server] = words_of(lease);
        let is_of_this = |own: Start| own.process == server && own.second == second;
        if cas > 0 && self.start(key.server).is_some_and(is_of_this) { cas } else { NO_CAS }
    }
}
