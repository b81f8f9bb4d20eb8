//! The time for which checks of files are trusted, and the checks.

use std::collections::HashMap;
use std::path::Path;

use haypile::Cache;

use super::gather::Gathering;
use super::request::IconCounts;
use super::{PathHash, note};
use crate::stamp::Stamp;
use crate::theme::ThemeIndex;
use crate::trust::{SeenPicture, Trust};

/// New pictures after which a check is stored again; later, half of those that it has.
const FIRST_PICTURES: usize = 16;

/// The part of an icon cache that changes and that the threads of a process share: the theme's index, the checks of
/// files, and counts.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) index: Option<ThemeIndex>,
    pub(super) epoch: Option<Epoch>,
    /// The number of epochs (times for which checks of files are trusted) that have begun.
    pub(super) epochs: u64,
    pub(super) counts: IconCounts,
    pub(super) gathering: Gathering,
    pub(super) is_warned: bool,
}

/// A period (epoch) in which a file whose status was checked is taken for unchanged, with the checks made in it.
#[derive(Debug)]
pub(super) struct Epoch {
    /// The time of the period's first check, in nanoseconds of the viewer's clock: a check of this process or of
    /// another one.
    pub(super) since_ns: u64,
    /// The picture files whose status this process has checked in this period.
    pub(super) checked: HashMap<PathHash, Option<Stamp>>,
    /// The key of the cache under which the period's checks are shared with other processes; `None` if they are not
    /// shared.
    pub(super) key: Option<Vec<u8>>,
    /// The period's checks (the theme's index and pictures found up to date) as other processes find them; `None`
    /// without an index of the theme.
    pub(super) trust: Option<Trust>,
    /// Pictures whose source files were found unchanged in this period, and whose checks are not shared with other
    /// processes yet.
    pub(super) unshared: Vec<SeenPicture>,
}

impl Epoch {
    /// Creates a period (epoch) in which no file was checked yet.
    pub(super) fn new(since_ns: u64, key: Option<Vec<u8>>) -> Self {
        Self { since_ns, checked: HashMap::new(), key, trust: None, unshared: Vec::new() }
    }

    /// Whether enough pictures were checked that sharing them is worth a write.
    fn is_due(&self) -> bool {
        let shared = self.trust.as_ref().map_or(0, Trust::pictures);
        self.unshared.len() >= FIRST_PICTURES.max(shared / 2)
    }
}

impl State {
    /// Whether the source file of a picture is unchanged since the picture was rendered. The file is checked once in an
    /// epoch.
    pub(super) fn is_picture_current(
        &mut self,
        path: &Path,
        hash: PathHash,
        made_of: Stamp,
    ) -> bool {
        let Some(epoch) = &mut self.epoch else { return false };
        if let Some(stamp) = epoch.checked.get(&hash) {
            return *stamp == Some(made_of);
        }
        let seen = SeenPicture::new(hash, made_of);
        if epoch.trust.as_ref().is_some_and(|trust| trust.has(seen)) {
            return true;
        }
        self.counts.stats += 1;
        let stamp = Stamp::of(path).map(|(stamp, _)| stamp);
        epoch.checked.insert(hash, stamp);
        let is_current = stamp == Some(made_of);
        if is_current {
            epoch.unshared.push(seen);
        }
        is_current
    }

    /// Records that a picture was just rendered from a source file with this stamp (identity and times), which needs no
    /// check in this epoch.
    pub(super) fn note_rendered(&mut self, hash: PathHash, stamp: Option<Stamp>, is_kept: bool) {
        let Some(epoch) = &mut self.epoch else { return };
        epoch.checked.insert(hash, stamp);
        epoch.unshared.extend(stamp.filter(|_| is_kept).map(|it| SeenPicture::new(hash, it)));
    }

    /// Takes over the checks of files that another process has shared, as this epoch's first checks.
    pub(super) fn take_over(&mut self, trust: Trust) {
        let Some(epoch) = &mut self.epoch else { return };
        epoch.since_ns = trust.moment_ns;
        epoch.trust = Some(trust);
        self.counts.shared_checks += 1;
    }

    /// Shares with other processes, through the cache, that the theme's index was found up to date when the epoch
    /// began.
    pub(super) fn share_index(&mut self, cache: Option<&Cache>, index: u64) {
        let (Some(epoch), Some(cache)) = (&mut self.epoch, cache) else { return };
        let Some(key) = &epoch.key else { return };
        let trust = Trust::new(epoch.since_ns, index);
        let stored = cache.set(key, trust.encode(key));
        epoch.trust = Some(trust);
        note(self, stored.err().map(|error| error.to_string()));
    }

    /// Shares the checks of the source files of pictures with other processes, if there are enough new ones, or
    /// `is_last`. Only the first epoch of a process is shared, with others that are started at the same time; sharing
    /// more would fill the file.
    pub(super) fn share_pictures(&mut self, cache: &Cache, is_last: bool) {
        let is_first = self.epochs == 1;
        let Some(epoch) = &mut self.epoch else { return };
        let is_due = epoch.is_due() || (is_last && !epoch.unshared.is_empty());
        if !is_first || !is_due {
            return;
        }
        let (Some(key), Some(trust)) = (&epoch.key, &mut epoch.trust) else { return };
        trust.add(epoch.unshared.drain(..));
        let key = key.clone();
        let other = shared(self, cache, &key);
        let Some(trust) = self.epoch.as_mut().and_then(|epoch| epoch.trust.as_mut()) else {
            return;
        };
        match other {
            Some(other) if other.moment_ns > trust.moment_ns => return,
            Some(other) if (other.moment_ns, other.index) == (trust.moment_ns, trust.index) => {
                trust.join(&other);
            }
            _ => {}
        }
        let stored = cache.set(&key, trust.encode(&key));
        note(self, stored.err().map(|error| error.to_string()));
    }
}

/// Returns the record of recent file checks that another process has shared under a key of the cache; `None` if there
/// is none.
pub(super) fn shared(state: &mut State, cache: &Cache, key: &[u8]) -> Option<Trust> {
    match cache.get(key) {
        Ok(value) => {
            let value = value?;
            let trust = Trust::decode(&value, key);
            state.counts.damaged += u64::from(trust.is_none());
            trust
        }
        Err(error) => {
            note(state, Some(error.to_string()));
            None
        }
    }
}
