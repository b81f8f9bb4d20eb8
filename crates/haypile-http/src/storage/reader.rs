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

/// A reader of the entries (stored responses of a URL) that a store's values encode.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) lender: Lender,
    recent: Arc<Recent>,
}

impl Reader {
    /// Creates a reader of the entries in a store, whose responses are judged by the given rules.
    pub(super) fn new(cache: &Cache, rules: &Arc<Rules>) -> Self {
        let recent = Arc::new(Recent::new(Arc::clone(rules)));
        Self { lender: Lender::new(cache), recent }
    }

    /// Reads the entry of a URL from the store; the inner `None` means that the value is not an
    /// entry of this name.
    pub(super) fn entry(&self, name: &Bytes) -> Result<Option<(Option<Entry>, Hit)>> {
        let hash = xxh3_128(name);
        let found = self.lender.get_versioned(&hash_key(hash))?;
        Ok(found.map(|(value, hit)| {
            let entry = self.recent.decode(hash, &value).and_then(|entry| entry.of(name));
            (entry, hit)
        }))
    }
}
