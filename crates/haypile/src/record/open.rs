//! Recording as a URL asks for it.

use std::sync::Arc;

use super::{DEFAULT_MAX_BYTES, RecordOptions, RecordingStore};
use crate::clock::Clock;
use crate::registry::OpenError;
use crate::store::Store;
use crate::url::{CacheUrl, Level, OptionSpec, Scheme, UrlError};

/// Puts a recording around the store of a resolved level that asks for one.
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
    let url = url(&*store, level, scheme)?;
    Ok(Arc::new(RecordingStore::named(store, options, clock, url)?))
}

/// The URL of the store, with its defaults written out, and what this level says of recording.
fn url(store: &dyn Store, level: &Level, scheme: &'static Scheme) -> Result<String, UrlError> {
    let described: CacheUrl = store.describe().parse()?;
    let [inner] = described.levels() else { return Ok(described.to_string()) };
    let mut named = inner.clone();
    for spec in [OptionSpec::RECORD, OptionSpec::RECORD_MAX, OptionSpec::RECORD_KEYS] {
        if let Some(value) = level.option(spec.name).filter(|_| named.option(spec.name).is_none()) {
            named = named.with_option(spec.name, value)?;
        }
    }
    Ok(named.resolve(scheme)?.to_string())
}
