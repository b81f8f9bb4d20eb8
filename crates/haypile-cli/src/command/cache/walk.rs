//! Selection of keys for commands.

use haypile::{Cursor, Store};

use crate::args::cache::Selection;

/// Places of a store that one page of keys covers.
const PAGE: usize = 1024;

/// Calls `visit` with each key of a cache that the user's selection matches; `visit` returns
/// whether the key counts towards the limit.
pub(super) fn walk(
    store: &dyn Store,
    selection: &Selection,
    mut visit: impl FnMut(&[u8]) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let prefix = selection.prefix.as_ref().map(|prefix| selection.form.read(prefix)).transpose()?;
    let prefix = prefix.unwrap_or_default();
    let mut left = selection.limit.map_or(usize::MAX, usize::from);
    let mut next = Some(Cursor::default());
    while let Some(from) = next {
        let page = store.keys(from, PAGE)?;
        for key in page.keys.iter().filter(|key| key.starts_with(&prefix)) {
            if visit(key)? {
                left -= 1;
            }
            if left == 0 {
                return Ok(());
            }
        }
        next = page.next;
    }
    Ok(())
}
