//! Opening one level as its URL describes it: the store, and the layers that the options put around
//! it.

use std::sync::Arc;

use crate::clock::Clock;
use crate::open::{OpenError, Opener};
use crate::store::Store;
use crate::url::ResolvedLevel;
use crate::{compress, record};

/// Opens the store of a URL's level; wraps it in a recording if the URL asks for one, and in
/// compression around that, so that a recording has the sizes that the store sees.
pub(crate) fn open(
    opener: &dyn Opener,
    level: &ResolvedLevel,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, OpenError> {
    let store = opener.open(level, Arc::clone(&clock))?;
    let made_with = store.compression();
    let store = record::wrap(store, level, clock)?;
    Ok(compress::wrap(level, made_with, store))
}
