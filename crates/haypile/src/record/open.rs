//! Recording that a URL asks for.

use std::sync::Arc;

use super::{DEFAULT_MAX_BYTES, RecordOptions, RecordingStore};
use crate::clock::Clock;
use crate::registry::OpenError;
use crate::store::Store;
use crate::url::{CacheUrl, Level, OptionSpec, Scheme};

/// Wraps the store of a resolved level in a recording if the level asks for one.
pub(crate) fn wrap(
    store: Arc<dyn Store>,
    level: &Level,
    scheme: &'static Scheme,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, OpenError> {
    let Some(path) = level.option(OptionSpec::RECORD.name) else { return Ok(store) };
    let max_bytes = level.size_option(OptionSpec::RECORD_MAX.name)?.unwrap_or(DEFAULT_MAX_BYTES);
    let hash_keys = level.option(OptionSpec::RECORD_KEYS.name) == Some("hash");
    let options = RecordOptions::new(path).max_bytes(max_bytes).hash_keys(hash_keys);
    let naming = Naming::new(level, scheme);
    Ok(Arc::new(RecordingStore::named(store, options, clock, naming)?))
}

/// The options that the URL of a recording store adds to that of the inner store.
#[derive(Default)]
pub(super) struct Naming {
    scheme: Option<&'static Scheme>,
    options: Vec<(&'static str, String)>,
}

impl Naming {
    /// Reads the recording options of this level.
    fn new(level: &Level, scheme: &'static Scheme) -> Self {
        let specs = [OptionSpec::RECORD, OptionSpec::RECORD_MAX, OptionSpec::RECORD_KEYS];
        let given = |spec: OptionSpec| Some((spec.name, level.option(spec.name)?.to_owned()));
        Self { scheme: Some(scheme), options: specs.into_iter().filter_map(given).collect() }
    }

    /// Returns the current URL of `store`, whose size can change, with the recording options. A
    /// name that cannot take options is returned unchanged.
    pub(super) fn describe(&self, store: &dyn Store) -> String {
        let described = store.describe();
        self.add_to(&described).unwrap_or(described)
    }

    fn add_to(&self, described: &str) -> Option<String> {
        let url: CacheUrl = described.parse().ok()?;
        let [inner] = url.levels() else { return None };
        let mut named = inner.clone();
        for (name, value) in &self.options {
            if named.option(name).is_none() {
                named = named.with_option(*name, value.as_str()).ok()?;
            }
        }
        Some(named.resolve(self.scheme?).ok()?.to_string())
    }
}
