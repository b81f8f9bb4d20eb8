//! Counters in a file's store.

use crate::error::{Error, Result};
use crate::file::area::wait::Wait;
use crate::file::groups::{joined, split};
use crate::file::operations::write::{Expiry, Write};
use crate::file::store::FileStore;
use crate::stats::Event;
use crate::store::Store;
use crate::write::{Version, WriteMode, Written};

impl FileStore {
    /// Adds `change` to the number that an entry's value holds, and returns the sum; `None` if
    /// there is no entry; `operation` names the operation in errors.
    pub(in crate::file) fn count(
        &self,
        operation: &'static str,
        key: &[u8],
        change: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let (area, mut taken) = self.writing(&using, operation)?;
        let key = key.hashed(area);
        let (mut value, mut wait) = (Vec::new(), Wait::default());
        loop {
            let Some(seen) = self.reader.find_marked(area, &key, &mut value)? else {
                area.count(taken.owner.counting(), Event::CountMiss, 1);
                return Ok(None);
            };
            let groups = split(&mut value, seen.has_groups);
            let Some(number) = haypile_policy::rules::counter::parse(&value) else {
                return Err(Error::NotACounter { operation, store: self.describe() });
            };
            let number = change(number);
            let text = joined(number.to_string(), groups);
            let mut write = Write {
                key,
                value: &text,
                has_groups: seen.has_groups,
                groups: None,
                mode: WriteMode::Cas(Version::from_raw(seen.version)),
                namespace: None,
                expiry: Expiry::Kept,
                version: taken.version(area),
                now: &self.reader.now(),
            };
            match self.put(area, &mut taken, &mut write)? {
                Written::Stored => {
                    area.count(taken.owner.counting(), Event::Count, 1);
                    area.count(taken.owner.counting(), Event::Set, 1);
                    return Ok(Some(number));
                }
                Written::Absent => {
                    area.count(taken.owner.counting(), Event::CountMiss, 1);
                    return Ok(None);
                }
                Written::Exists | Written::Changed | Written::Revoked => {
                    self.again(&mut wait, area)?;
                }
            }
        }
    }
}
