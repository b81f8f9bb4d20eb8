//! Groups of a file's store.

use crate::error::Result;
use crate::file::area::Area;
use crate::file::format::record;
use crate::file::platform::ground::Ground;
use crate::file::platform::mapped::Mapped;
use crate::file::store::FileStore;
use crate::groups::{self, Hashes, Marks};
use crate::write::WriteMode;

impl FileStore {
    /// Invalidates all entries of a group: implements
    /// [`Store::invalidate`](crate::Store::invalidate).
    pub(in crate::file) fn invalidate_group(&self, group: &[u8]) -> Result<()> {
        groups::check(self, &[group])?;
        let using = self.sessions.begin();
        let (area, _) = self.writing(&using, "invalidate")?;
        area.invalidate(groups::hash(group, self.group_seed(area)));
        Ok(())
    }

    /// Returns the hashes of the names of groups of entries; `None` if there are no names. The same
    /// name in two namespaces has two hashes.
    pub(in crate::file) fn group_hashes(
        &self,
        area: &Area<Mapped>,
        groups: &[&[u8]],
    ) -> Result<Option<Hashes>> {
        if groups.is_empty() {
            return Ok(None);
        }
        Hashes::of(self, groups, self.group_seed(area)).map(Some)
    }

    fn group_seed(&self, area: &Area<Mapped>) -> u64 {
        let namespace = self.reader.namespace_hash(area).unwrap_or(area.hash_seed);
        record::group_seed(namespace)
    }
}

/// Returns a value to store, followed by the hashes of its groups of entries and the number of the
/// last invalidation (when its lease was granted; without a lease, now).
pub(in crate::file) fn marked<G: Ground>(
    area: &Area<G>,
    value: &[u8],
    mode: WriteMode,
    hashes: &Hashes,
) -> Vec<u8> {
    let mut marked = Vec::with_capacity(value.len() + hashes.most_bytes());
    marked.extend_from_slice(value);
    hashes.mark(&mut marked, groups::number(mode, || area.group_clock()));
    marked
}

/// Removes the hashes of groups from the end of a stored value, and returns them with the number of
/// the last invalidation before the write; `None` if the value is not in groups.
pub(in crate::file) fn split(value: &mut Vec<u8>, has_groups: bool) -> Option<(Hashes, u64)> {
    let marks = Marks::at_end_of(value).filter(|_| has_groups)?;
    let groups = marks.groups_of(value);
    value.truncate(value.len() - marks.bytes);
    Some((groups, marks.number))
}

/// Returns the bytes to store for `value`, which replaces a value in `groups`: followed by the
/// hashes of these groups and the number of an invalidation, which `split` has returned.
pub(in crate::file) fn joined(value: String, groups: Option<(Hashes, u64)>) -> Vec<u8> {
    let mut value = value.into_bytes();
    if let Some((groups, number)) = groups {
        groups.mark(&mut value, number);
    }
    value
}
