//! The keys that a command is about.

use haypile::{Cursor, Store};

use crate::args::cache::Selection;

/// How many places of a store one page of keys looks at.
const PAGE: usize = 1024;

/// Gives each key that is selected to `visit`, which says whether it counts towards the limit.
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
