//! Targets whose queries make no difference, as their responses say (`No-Vary-Search`).
//!
//! A process learns the rule of a path from the responses that it gets and serves, and calls its targets by
//! the part of their queries that decides from then on. What was stored under the whole query stays
//! there, and is fetched once more.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, request};
use parking_lot::RwLock;

use super::{CacheKey, HttpCache};
use crate::semantics::{SearchRule, Target};

/// The paths whose rules a process knows at most.
const MOST_RULES: usize = 64 << 10;

/// The known rules (`No-Vary-Search`) on which query parameters of a URL decide its response, by scheme, host and path.
#[derive(Debug, Default)]
pub(super) struct Searches {
    rules: RwLock<HashMap<Bytes, Arc<SearchRule>>>,
    /// The number of rules: most sites have none.
    number: AtomicUsize,
}

impl Searches {
    fn get(&self, path: &Bytes) -> Option<Arc<SearchRule>> {
        self.rules.read().get(path).cloned()
    }

    fn is_empty(&self) -> bool {
        self.number.load(Ordering::Relaxed) == 0
    }

    fn set(&self, path: Bytes, rule: Option<SearchRule>) {
        let mut rules = self.rules.write();
        match rule {
            None => drop(rules.remove(&path)),
            Some(rule) => {
                if rules.len() >= MOST_RULES {
                    rules.clear();
                }
                rules.insert(path, Arc::new(rule));
            }
        }
        self.number.store(rules.len(), Ordering::Relaxed);
    }
}

impl HttpCache {
    /// Returns the key of the stored entry that answers requests for a URL, by the known rules on which query
    /// parameters matter.
    pub(super) fn named(&self, target: &Target) -> Bytes {
        let searches = &self.inner.searches;
        let rule = if searches.is_empty() { None } else { searches.get(&self.path(target)) };
        self.named_by(target, rule.as_deref())
    }

    fn named_by(&self, target: &Target, rule: Option<&SearchRule>) -> Bytes {
        let Some(rule) = rule else { return self.name(target) };
        let (path, query) = split(target);
        // No target has a NUL.
        let text = format!("{path}?\0{}\0{}", rule.text(), rule.deciding(query));
        self.partitioned(&text)
    }

    /// Returns the keys of all entries that may have responses to a URL, by the known rules on query parameters: also
    /// to the URL as a proxy passes it on, percent-encoded.
    pub(super) async fn names(&self, target: &Target) -> Vec<Bytes> {
        let mut names = self.names_as_written(target).await;
        if let Some(encoded) = target.encoded() {
            names.extend(self.names_as_written(&encoded).await);
        }
        names
    }

    async fn names_as_written(&self, target: &Target) -> Vec<Bytes> {
        let path = self.path(target);
        let mut rule = self.inner.searches.get(&path);
        if rule.is_none() {
            let text = self.inner.storage.search_rule(&path).await;
            rule = text.and_then(|text| SearchRule::parse(&text)).map(Arc::new);
        }
        let mut names = vec![self.name(target)];
        if rule.is_some() {
            names.push(self.named_by(target, rule.as_deref()));
        }
        names
    }

    /// Records in this process's memory the `No-Vary-Search` rule of a path, from a response that was just served from
    /// the store.
    pub(super) fn learn(&self, parts: &request::Parts, name: &Bytes, headers: &HeaderMap) {
        // Who asks without a query learns it from the first miss with one. A name by a rule has a NUL.
        if parts.uri.query().is_some()
            && !name.contains(&0)
            && let Some(rule) = SearchRule::of(headers)
            && let Ok(target) = Target::of(&parts.uri)
            && *name == self.name(&target)
        {
            self.inner.searches.set(self.path(&target), Some(rule));
        }
    }

    /// Records the `No-Vary-Search` rule of a path, from a response that the origin has just sent, for all processes
    /// that share the store. Returns whether the response may be stored under this key.
    pub(super) async fn learn_anew(
        &self,
        parts: &request::Parts,
        name: &Bytes,
        (status, headers): (StatusCode, &HeaderMap),
    ) -> bool {
        let rule = SearchRule::of(headers);
        let is_named_otherwise = parts.extensions.get::<CacheKey>().is_some();
        if is_named_otherwise || (rule.is_none() && self.inner.searches.is_empty()) {
            return true;
        }
        let Ok(target) = Target::of(&parts.uri) else { return true };
        let path = self.path(&target);
        let known = self.inner.searches.get(&path);
        // An error page is not about the path.
        if rule.as_ref() != known.as_deref() && status == StatusCode::OK {
            let text = rule.as_ref().map(SearchRule::text).unwrap_or_default();
            self.inner.storage.set_search_rule(&path, text).await;
            self.inner.searches.set(path, rule.clone());
        }
        // One of another rule answers this target alone.
        *name == self.name(&target) || *name == self.named_by(&target, rule.as_ref())
    }

    fn path(&self, target: &Target) -> Bytes {
        self.partitioned(split(target).0)
    }
}

/// Returns the parts of a target before and behind its `?`.
fn split(target: &Target) -> (&str, &str) {
    target.as_str().split_once('?').unwrap_or((target.as_str(), ""))
}
