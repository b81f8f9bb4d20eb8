//! Opening of recordings that a URL asks for.

use std::sync::Arc;

use super::{RecordOptions, RecordingStore};
use crate::clock::Clock;
use crate::open::OpenError;
use crate::store::Store;
use crate::url::{CacheUrl, Level, OptionSpec, ResolvedLevel, Scheme, UrlError};

/// Wraps a store so that its operations are recorded, if the level's URL asks for it.
pub(crate) fn wrap(
    store: Arc<dyn Store>,
    level: &ResolvedLevel,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, OpenError> {
    let Some(path) = level.text(OptionSpec::RECORD.name) else { return Ok(store) };
    let max_bytes =
        level.size(OptionSpec::RECORD_MAX.name).unwrap_or(RecordOptions::DEFAULT_MAX_BYTES);
    let hash_keys = level.choice(OptionSpec::RECORD_KEYS.name) == Some("hash");
    let options = RecordOptions::new(path).max_bytes(max_bytes).hash_keys(hash_keys);
    Ok(Arc::new(RecordingStore::named(store, options, clock, Naming::new(level))?))
}

/// The options in the URL of a recording store (such as `record=`) that the store whose operations
/// it records does not have.
#[derive(Default)]
pub(super) struct Naming {
    scheme: Option<&'static Scheme>,
    options: Vec<(&'static str, String)>,
}

impl Naming {
    /// Reads the recording options of this level.
    fn new(level: &ResolvedLevel) -> Self {
        let specs = [OptionSpec::RECORD, OptionSpec::RECORD_MAX, OptionSpec::RECORD_KEYS];
        let given =
            |spec: OptionSpec| Some((spec.name, level.level().option(spec.name)?.to_owned()));
        let options = specs.into_iter().filter_map(given).collect();
        Self { scheme: Some(level.scheme()), options }
    }

    /// Returns the current URL of `store`, whose size can change, with the recording options. A
    /// URL that cannot take them is returned unchanged.
    pub(super) fn url(&self, store: &dyn Store) -> CacheUrl {
        let url = store.url();
        let [inner] = url.levels() else { return url };
        match self.add_to(inner) {
            Some(Ok(named)) => named.into(),
            Some(Err(_)) | None => url,
        }
    }

    fn add_to(&self, inner: &Level) -> Option<Result<Level, UrlError>> {
        let scheme = self.scheme?;
        let new = self.options.iter().filter(|(name, _)| inner.option(name).is_none());
        let named = new
            .into_iter()
            .try_fold(inner.clone(), |level, (name, value)| level.with_option(*name, value));
        Some(named.and_then(|level| Ok(level.resolve(scheme)?.level().clone())))
    }
}
