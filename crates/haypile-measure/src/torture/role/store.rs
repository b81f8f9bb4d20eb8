//! The engine's shared file.

use std::sync::Arc;

use haypile::url::CacheUrl;
use haypile::{Cache, Error, Registry, SetOptions, Store, Ttl};

use super::target::{Refusal, Target};
use super::{Orders, Role};
use crate::subject::complete;

pub(super) fn open(orders: &Orders) -> Result<Box<dyn Target>, String> {
    let registry = Registry::new();
    let store = registry.open_url(&url(orders)?).map_err(|error| error.to_string())?;
    Ok(Box::new(Shared { cache: Cache::new(Arc::clone(&store)), store }))
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
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::Busy { .. } => Refusal::Busy,
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
        compute: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        self.cache.get_or_compute(key, Ttl::Never, compute).map_err(refusal)
    }
}
