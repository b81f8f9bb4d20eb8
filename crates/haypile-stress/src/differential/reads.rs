//! Steps that read entries.

use std::time::Duration;

use haypile::{Error, Hit, Result};

use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::operation::ReadForm;
use super::promises::nanos;
use super::run::{At, Run};
use super::time::Moment;
use crate::target::Kind;

/// The time by which a store may round a remaining life.
const LIFE_SLACK_NS: u64 = 1_000_000;

/// A value that was found, and its properties where the form of the read has them.
type Found = Option<(Vec<u8>, Hit)>;

impl Run {
    pub(super) fn read(&mut self, at: At, key: Key, form: ReadForm) -> Checked<String> {
        let (cache, bytes) = (self.cache(at), key.bytes());
        let store = cache.store();
        let copied = |pinned: haypile::Pinned<'_>| (pinned.to_vec(), pinned.hit());
        let (found, now) = self.time.of(|| -> Result<Found> {
            let mut buffer = b"left over".to_vec();
            Ok(match form {
                ReadForm::Get => cache.get(&bytes)?.map(|value| (value, Hit::new(None, None))),
                ReadForm::GetInto => {
                    let hit = store.get_into(&bytes, &mut buffer)?;
                    Some((buffer, hit.unwrap_or(Hit::new(None, None)))).filter(|_| hit.is_some())
                }
                ReadForm::GetVersioned => {
                    store.get_versioned_into(&bytes, &mut buffer)?.map(|hit| (buffer, hit))
                }
                ReadForm::GetPinned => store.get_pinned(&bytes)?.map(copied),
                ReadForm::GetInPlace => store.get_in_place(&bytes)?.map(copied),
            })
        });
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.refused_read(at, key, &error),
        };
        self.judge_acceptance(at, key, None, None)?;
        self.counts(at).add_read(found.is_some());
        // `get` returns the value alone.
        let has_hit = form != ReadForm::Get;
        self.judge_found(at, key, found.as_ref(), has_hit, form == ReadForm::GetVersioned, now)
    }

    pub(super) fn read_many(&mut self, at: At, keys: &[Key]) -> Checked<String> {
        let cache = self.cache(at);
        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key.bytes()).collect();
        let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let (found, now) = self.time.of(|| cache.store().get_many(&slices));
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                // The first error ends the call, at a key that nobody tells. Each level may have
                // counted what it found before.
                self.forgive_counts(at, keys.len() * self.promises.levels());
                let is_about = |key: &Key| self.may_refuse(at, *key, None, None, &error);
                let key = keys.iter().copied().find(is_about).unwrap_or(Key(0));
                return self.refused_read(at, key, &error);
            }
        };
        if found.len() != keys.len() {
            return wrong!(-, "get_many of {} keys returned {} values", keys.len(), found.len());
        }
        for (key, found) in keys.iter().zip(&found) {
            self.judge_acceptance(at, *key, None, None)?;
            self.counts(at).add_read(found.is_some());
            self.judge_found(at, *key, found.as_ref(), true, false, now)?;
        }
        Ok(format!("{} of {} found", found.iter().flatten().count(), keys.len()))
    }

    /// Notes that reads may have been counted before one of them was refused.
    fn forgive_counts(&mut self, at: At, reads: usize) {
        for event in [haypile::Event::Hit, haypile::Event::Miss] {
            self.counts(at).may_add(event, reads as u64);
        }
    }

    pub(super) fn contains(&mut self, at: At, key: Key) -> Checked<String> {
        let (cache, bytes) = (self.cache(at), key.bytes());
        let (found, now) = self.time.of(|| cache.contains(&bytes));
        let is_found = match found {
            Ok(is_found) => is_found,
            Err(error) => return self.refused_read(at, key, &error),
        };
        self.judge_acceptance(at, key, None, None)?;
        self.model(at).judge_presence(key, is_found, now)?;
        if is_found {
            self.seen(at, key);
        }
        Ok(is_found.to_string())
    }

    /// Reads a key from the last level of the cache alone, as another process would, and checks the
    /// value against the model.
    pub(super) fn read_below(&mut self, at: At, key: Key) -> Checked<String> {
        let Some(below) = self.tenants[at.tenant].below.clone() else {
            return Ok("there is one level".to_owned());
        };
        if self.promises.is_write_back {
            self.flush(at, haypile::Durability::Visible)?;
        }
        let bytes = key.bytes();
        let (found, now) = self.time.of(|| below.get(&bytes));
        match found {
            Ok(found) => {
                let found = found.map(|value| (value, Hit::new(None, None)));
                self.judge_found(at, key, found.as_ref(), false, false, now)
            }
            Err(error) => self.refused_read(at, key, &error),
        }
    }

    fn refused_read(&mut self, at: At, key: Key, error: &Error) -> Checked<String> {
        self.judge_refusal(at, key, None, None, error)?;
        Ok(format!("refused: {}", kind_of(error)))
    }

    /// Checks the value that a read has found against the model of the cache.
    pub(super) fn judge_found(
        &mut self,
        at: At,
        key: Key,
        found: Option<&(Vec<u8>, Hit)>,
        has_hit: bool,
        needs_version: bool,
        now: Moment,
    ) -> Checked<String> {
        self.model(at).judge(key, found.map(|(value, _)| value.as_slice()), now)?;
        let Some((value, hit)) = found else {
            self.tally.misses += 1;
            return Ok("nothing".to_owned());
        };
        self.tally.hits += 1;
        self.seen(at, key);
        if has_hit {
            self.judge_hit(at, key, *hit, needs_version, now)?;
        }
        Ok(format!("{} bytes", value.len()))
    }

    /// Judges the properties of a value that was found.
    fn judge_hit(
        &mut self,
        at: At,
        key: Key,
        hit: Hit,
        needs_version: bool,
        now: Moment,
    ) -> Checked {
        let tenant = &mut self.tenants[at.tenant];
        let entry = tenant.model.get(key).expect("the value was compared with it");
        if usize::from(hit.level) >= self.promises.levels() {
            return wrong!(
                key,
                "it was found in level {} of {:?}",
                hit.level,
                self.promises.levels()
            );
        }
        match hit.version {
            Some(version) => tenant.versions.saw(key, version, entry.write)?,
            None if needs_version && self.promises.has_versions() => {
                return wrong!(key, "it was read with its version, and has none");
            }
            None => {}
        }
        match (entry.expiry, hit.expires_in) {
            (None, Some(left)) => wrong!(key, "it never expires, and {left:?} are left"),
            (Some(expiry), Some(left)) => {
                let (least, most) = expiry.left(now);
                let most = if expiry.is_unlimited() { Duration::MAX } else { most };
                let is_right = nanos(left).saturating_add(self.life_slack_ns()) >= nanos(least)
                    && nanos(left) <= nanos(most).saturating_add(self.life_slack_ns());
                if is_right {
                    return Ok(());
                }
                wrong!(key, "{left:?} are left, and it is {least:?} to {most:?}")
            }
            (Some(expiry), None) if !expiry.is_unlimited() && self.promises.reports_lives() => {
                wrong!(key, "it expires, and no remaining life is reported")
            }
            (_, None) => Ok(()),
        }
    }

    fn life_slack_ns(&self) -> u64 {
        match self.promises.last {
            Kind::Memory if self.promises.levels() == 1 => 0,
            // Whole seconds, and a clock that ticks once per second.
            Kind::Memcached => 2_000 * LIFE_SLACK_NS,
            _ => LIFE_SLACK_NS,
        }
    }
}

/// Returns the kind of a cache's error as text, without its message.
pub(super) fn kind_of(error: &Error) -> String {
    let text = format!("{error:?}");
    text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}
