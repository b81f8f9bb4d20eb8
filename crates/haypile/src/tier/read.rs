//! Reading a key: from the upper level, from pending writes, from below.

use std::sync::Arc;

use super::deferred::is_passing;
use super::levels::{Asked, Levels};
use super::options::Life;
use super::trailer::{Known, Trailer};
use crate::error::{Error, Result};
use crate::mutant;
use crate::store::Hit;

/// The queued write of a key for the lower level: none, an expired one, or a value.
pub(super) enum Waiting {
    Nothing,
    /// A write that has expired, and that has still overwritten the entry below.
    Gone,
    Value(Arc<[u8]>, Hit),
}

impl Levels {
    /// Decodes the bytes that the upper level stores for a key, and returns the length of the value
    /// in them and the entry's properties. Returns `None` if they cannot be used, so that the lower
    /// level has to be read.
    pub(super) fn serve(
        &self,
        kept: &[u8],
        copy: Hit,
        needs_version: bool,
    ) -> Option<(usize, Hit)> {
        let is_enough = |trailer: &Trailer| !needs_version || trailer.version != Known::Nothing;
        let served = Trailer::decode(kept).filter(|(_, trailer)| is_enough(trailer));
        if served.is_none() {
            self.counts.passed();
        }
        served.map(|(value_bytes, trailer)| (value_bytes, trailer.hit(copy)))
    }

    /// Reads the value of a key from the upper or the lower level (with `needs_version`, from a
    /// level that knows the entry's version), and returns the entry's properties; `None` for a
    /// miss.
    pub(super) fn read(
        &self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        needs_version: bool,
    ) -> Result<Option<Hit>> {
        match self.upper.get_into(key, buffer) {
            Ok(Some(copy)) => {
                if let Some((value_bytes, hit)) = self.serve(buffer, copy, needs_version) {
                    buffer.truncate(value_bytes);
                    return Ok(Some(hit));
                }
                let note = self.stripes.note(key);
                let found = self.read_below(key, buffer, needs_version)?;
                if found.is_none() && !mutant::is_on("copy-is-served-after-a-miss") {
                    // Another process has deleted the entry, or it has expired below before its copy.
                    let _copies = self.stripes.pass(note);
                    self.remove_copy(key);
                }
                return Ok(found);
            }
            Ok(None) => {}
            Err(error) => self.counts.upper_failed(&error),
        }
        self.read_below(key, buffer, needs_version)
    }

    /// Reads the value of a key from the lower level, puts a copy into the upper level, and returns
    /// the entry's properties; `None` for a miss.
    pub(super) fn read_below(
        &self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        needs_version: bool,
    ) -> Result<Option<Hit>> {
        buffer.clear();
        // A version exists only once it is written. A permanently refused write is no longer
        // pending.
        if needs_version
            && self.queue().is_some_and(|queue| queue.get(key).is_some())
            && let Err(error) = self.write_pending(key)
            && is_passing(&error)
        {
            return Err(error);
        }
        let asked = self.ask(key);
        match self.waiting(key) {
            Waiting::Nothing => {}
            Waiting::Gone => return Ok(None),
            Waiting::Value(value, hit) => {
                self.copy(&value, buffer)?;
                return Ok(Some(hit));
            }
        }
        let found = if needs_version {
            self.lower.get_versioned_into(key, buffer)
        } else {
            self.lower.get_into(key, buffer)
        };
        let hit = match found {
            Ok(hit) => hit,
            // A caller that needs the version can still read the value alone.
            Err(error) if needs_version => return Err(error),
            Err(error) => return self.unread(error, 1).map(|()| None),
        };
        if let Some(hit) = hit {
            self.promote(&asked, key, buffer, hit, needs_version);
        }
        Ok(hit.map(Hit::below))
    }

    pub(super) fn copy(&self, value: &[u8], buffer: &mut Vec<u8>) -> Result<()> {
        let bytes = value.len();
        if buffer.try_reserve(bytes).is_err() {
            return Err(Error::OutOfMemory { bytes, store: self.url().to_string() });
        }
        buffer.extend_from_slice(value);
        Ok(())
    }

    pub(super) fn waiting(&self, key: &[u8]) -> Waiting {
        let Some(pending) = self.queue().and_then(|queue| queue.get(key)) else {
            return Waiting::Nothing;
        };
        let left = pending.left(self.clock.now_ns());
        self.counts.pending_read(left.is_some());
        match left {
            Some(Life(left)) => Waiting::Value(pending.value, Hit::new(None, left)),
            None => Waiting::Gone,
        }
    }

    /// Puts a copy of a value that was found in the lower level into the upper level. If the value
    /// may be out of date, the upper level is left without the key instead, or with the same value,
    /// because a copy that is there may be an older one.
    pub(super) fn promote(
        &self,
        asked: &Asked,
        key: &[u8],
        value: &[u8],
        hit: Hit,
        is_versioned: bool,
    ) {
        let version = match hit.version {
            Some(version) => Known::Version(version),
            None if is_versioned => Known::HasNone,
            None => Known::Nothing,
        };
        // What is in groups can be invalidated by other processes at any time, and is read below.
        let is_promoted = !hit.has_groups || mutant::is_on("entries-in-groups-are-promoted");
        if is_promoted && let Some(held) = self.stripes.hold_unchanged(asked.note) {
            self.put(&held, key, value, version, hit.expires_in, asked.at_ns);
            return;
        }
        let _copies = self.stripes.pass(asked.note);
        if !mutant::is_on("read-that-is-not-promoted-leaves-an-older-copy")
            && (!is_promoted || !self.has_copy_of(key, value))
        {
            self.remove_copy(key);
        }
    }

    /// Whether the upper level has this value, or nothing.
    fn has_copy_of(&self, key: &[u8], value: &[u8]) -> bool {
        match self.upper.get_pinned(key) {
            Ok(Some(kept)) => {
                self.counts.passed();
                Trailer::decode(&kept).is_some_and(|(bytes, _)| kept[..bytes] == *value)
            }
            Ok(None) => true,
            Err(error) => {
                self.counts.upper_failed(&error);
                false
            }
        }
    }
}
