//! The engine's shared file and its servers, as targets.

use std::sync::Arc;

use haypile::url::CacheUrl;
use haypile::{Cache, Error, SetOptions, Store, Ttl};

use super::target::{Filled, Refusal, Target};
use super::{Orders, Role};
use crate::subject::{StoreSubject, complete};

pub(super) fn open(orders: &Orders) -> Result<Box<dyn Target>, String> {
    let subject = StoreSubject::open(&url(orders)?, &orders.room(), &orders.path);
    let subject = subject.map_err(|error| error.to_string())?;
    let cache = subject.cache().clone();
    let has_leases = orders.number("leases") == 1;
    let store = Arc::clone(cache.store());
    // Whoever is in no group is in none of a cache without groups.
    let has_groups = !matches!(store.invalidate(b"nobody"), Err(Error::Unsupported { .. }));
    Ok(Box::new(Shared { store, cache, has_leases, has_groups, _subject: subject }))
}

/// `file:OPTIONS` at the place that the orders name, of their size if the options have none.
fn url(orders: &Orders) -> Result<CacheUrl, String> {
    let room = orders.room();
    let url = complete(&orders.subject, &room, &orders.path).map_err(|error| error.to_string())?;
    let [level] = url.levels() else { return Ok(url) };
    if orders.role != Role::Reader || !orders.is_read_only() || level.option("mode").is_some() {
        return Ok(url);
    }
    let level = level.clone().with_option("mode", "ro").map_err(|error| error.to_string())?;
    Ok(level.into())
}

struct Shared {
    store: Arc<dyn Store>,
    cache: Cache,
    /// Whether computed values are protected against removals; otherwise all processes use cache-aside, and write
    /// without a lease.
    has_leases: bool,
    has_groups: bool,
    /// The owner of the cache: a server ends with its last process.
    _subject: StoreSubject,
}

impl Shared {
    fn groups<'a>(&self, groups: &'a [String]) -> Vec<&'a [u8]> {
        let groups = if self.has_groups { groups } else { &[] };
        groups.iter().map(String::as_bytes).collect()
    }
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::Busy { .. } => Refusal::Busy,
        Error::Unsupported { .. } => Refusal::Unsupported,
        error => Refusal::Failed(error.to_string()),
    }
}

impl Target for Shared {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Refusal> {
        Ok(self.store.get_into(key, buffer).map_err(refusal)?.is_some())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        // Without a condition it is stored, or an error.
        self.store.set(key, value, &SetOptions::set()).map(drop).map_err(refusal)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Refusal> {
        self.store.delete(key).map(drop).map_err(refusal)
    }

    fn get_or_compute(
        &mut self,
        key: &[u8],
        groups: &[String],
        compute: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        if !self.has_leases {
            return Err(Refusal::Unsupported);
        }
        let cache = self.cache.in_groups(self.groups(groups)).map_err(refusal)?;
        cache.get_or_compute(key, Ttl::Never, compute).map_err(refusal)
    }

    fn fill(
        &mut self,
        key: &[u8],
        groups: &[String],
        buffer: &mut Vec<u8>,
        read: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<Filled, Refusal> {
        if self.get_into(key, buffer)? {
            return Ok(Filled::Hit);
        }
        let mut options = SetOptions::set();
        if self.has_leases {
            options = SetOptions::leased(self.store.lease(key).map_err(refusal)?);
        }
        let groups = self.groups(groups);
        let written = self.store.set_in_groups(key, &read(), &options, &groups);
        let is_stored = written.map_err(refusal)?.is_stored();
        Ok(if is_stored { Filled::Stored } else { Filled::Refused })
    }

    fn invalidate(&mut self, group: &str) -> Result<(), Refusal> {
        self.store.invalidate(group.as_bytes()).map_err(refusal)
    }

    fn clear(&mut self) -> Result<(), Refusal> {
        self.store.clear().map_err(refusal)
    }
}
