//! Reading the entries of an HTTP cache from its store.

use std::sync::Arc;

use bytes::Bytes;
use haypile::{Cache, Hit, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::entry::Entry;
use super::hash_key;
use super::loan::Lender;
use super::recent::Recent;
use crate::semantics::Rules;

/// A reader of a store's values, and of the entries that they encode.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) lender: Lender,
    recent: Arc<Recent>,
}

impl Reader {
    /// Returns a reader of the entries in a cache, whose responses are judged by these rules.
    pub(super) fn new(cache: &Cache, rules: &Arc<Rules>) -> Self {
        let recent = Arc::new(Recent::new(Arc::clone(rules)));
        Self { lender: Lender::new(cache), recent }
    }

    /// Reads the value under a name, and returns the entry that it is, if it is one of this name.
    pub(super) fn entry(&self, name: &Bytes) -> Result<Option<(Option<Entry>, Hit)>> {
        let hash = xxh3_128(name);
        let found = self.lender.get_versioned(hash_key(hash).as_bytes())?;
        Ok(found.map(|(value, hit)| {
            let entry = self.recent.decode(hash, &value).and_then(|entry| entry.of(name));
            (entry, hit)
        }))
    }
}
