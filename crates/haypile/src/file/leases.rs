//! Leases of a file's store.

use crate::error::Result;
use crate::file::area::{Area, OpError};
use crate::file::operations::leases::LeasedKey;
use crate::file::platform::mapped::Mapped;
use crate::file::store::FileStore;
use crate::lease::Lease;
use crate::removals::Since;
use crate::write::WriteMode;

impl FileStore {
    /// Grants a lease on a key (the right to store its value unless the key changes): implements
    /// [`Store::lease`](crate::Store::lease).
    pub(in crate::file) fn grant_lease(&self, key: &[u8]) -> Result<Lease> {
        self.with_leased(key, &[], |leased| leased.grant())
    }

    /// Returns whether a lease on a key (a right to store its value) still holds: implements
    /// [`Store::check_lease`](crate::Store::check_lease).
    pub(in crate::file) fn holds_lease(
        &self,
        key: &[u8],
        lease: Lease,
        groups: &[&[u8]],
    ) -> Result<bool> {
        self.with_leased(key, groups, |leased| Ok(leased.look(lease)? == Since::Nothing))
    }

    /// Returns the hash of the store's namespace for a write under a lease, which a clearing of the
    /// namespace revokes; `None` for other writes.
    pub(in crate::file) fn leased_namespace(
        &self,
        mode: WriteMode,
        area: &Area<Mapped>,
    ) -> Option<u64> {
        let is_leased = matches!(mode, WriteMode::Leased(_));
        if is_leased { self.reader.namespace_hash(area) } else { None }
    }

    /// Looks at a key as one that computes its value, which needs an owner slot to store it.
    fn with_leased<T>(
        &self,
        key: &[u8],
        groups: &[&[u8]],
        look: impl FnOnce(LeasedKey<'_, Mapped>) -> std::result::Result<T, OpError>,
    ) -> Result<T> {
        const OPERATION: &str = "lease";
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let session = self.session(&using, OPERATION)?;
        let area = &session.area;
        if session.owners.is_none() {
            return Err(self.reads_only(OPERATION, session));
        }
        let key = key.hashed(area);
        let namespace = self.reader.namespace_hash(area);
        let groups = self.group_hashes(area, groups)?;
        let leased = LeasedKey { area, key, namespace, groups: groups.as_ref() };
        look(leased).map_err(|stop| self.reader.stopped(stop))
    }
}
