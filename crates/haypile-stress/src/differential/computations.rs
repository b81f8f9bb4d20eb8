//! Steps that compute a value which is absent or due for a refresh.

use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::time::Duration;

use haypile::{Cache, ComputeError, Error, Event, Freshness, Result, SetOptions, Ttl};

use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::operation::{ComputedLife, Incident};
use super::reads::kind_of;
use super::run::{At, Run};
use super::time::Moment;
use super::value::{Value, describe};

/// The error of a computation that fails, and the panic of one that panics.
struct Planned;

/// The operation that the test performed on the key during a computation, and its result.
enum Happened {
    Nothing,
    Written(Result<()>),
    Deleted(Result<bool>),
    Cleared(Result<()>),
    Recursed(Result<Vec<u8>>),
}

impl Run {
    pub(super) fn compute(
        &mut self,
        at: At,
        key: Key,
        value: Value,
        life: ComputedLife,
        incident: Incident,
    ) -> Checked<String> {
        let (cache, bytes, value) = (self.cache(at), key.bytes(), value.build());
        let refused_before = cache.compute_stats().refused_values;
        let (mut happened, mut happened_at) = (None, Moment::at(0));
        let compute = || {
            let (what, when) = self.time.of(|| happen(&cache, &bytes, incident));
            (happened, happened_at) = (Some(what), when);
            match incident {
                Incident::Fail => Err(Planned),
                // Without the panic hook, which would print it.
                Incident::Panic => panic::resume_unwind(Box::new(Planned)),
                _ => Ok(value.to_vec()),
            }
        };
        let (computed, now) = self.time.of(|| {
            panic::catch_unwind(AssertUnwindSafe(|| match life {
                ComputedLife::Ttl(ttl) => cache.get_or_try_compute(&bytes, ttl, compute),
                ComputedLife::Fresh { fresh, stale, early } => {
                    let freshness = Freshness::new(fresh).with_stale(stale).with_early(early);
                    cache.get_or_try_refresh(&bytes, freshness, compute)
                }
            }))
        });
        if let Ok(Err(ComputeError::Cache(error))) = &computed {
            if happened.is_some() {
                return wrong!(key, "it failed after it had computed: {error}");
            }
            self.judge_refusal(at, key, None, Some(shortest(life)), error)?;
            return Ok(format!("refused: {}", kind_of(error)));
        }
        self.judge_acceptance(at, key, None, Some(shortest(life)))?;
        let is_refused = cache.compute_stats().refused_values > refused_before;
        let Some(happened) = happened else {
            return match computed {
                Ok(Ok(found)) => self.judge_found_fresh(at, key, &found, life, now),
                _ => wrong!(key, "it computed nothing and failed"),
            };
        };
        self.judge_due(at, key, life, now)?;
        let was_there = self.model(at).get(key).is_some();
        let may_land = self.judge_happened(at, key, incident, happened, happened_at)?;
        match (incident, computed) {
            (Incident::Panic, Err(_)) => Ok("panicked".to_owned()),
            (Incident::Fail, Ok(Err(_))) => {
                // A value that was there would have been served.
                self.model(at).judge_presence(key, false, now)?;
                Ok("failed".to_owned())
            }
            (Incident::Fail, Ok(Ok(found))) => {
                self.counts(at).may_add(Event::Hit, 1);
                self.model(at).judge(key, Some(&found), now)?;
                Ok("failed, and the old value was served".to_owned())
            }
            (_, Ok(Ok(found))) if *found == *value => {
                if may_land {
                    self.land(at, key, value, life, was_there, is_refused, now)?;
                }
                Ok(format!("computed{}", if may_land { "" } else { " and not stored" }))
            }
            (_, Ok(Ok(found))) => wrong!(key, "it computed, and returned {}", describe(&found)),
            _ => wrong!(key, "it computed, and failed or panicked"),
        }
    }

    /// Judges a value that was returned without a computation.
    fn judge_found_fresh(
        &mut self,
        at: At,
        key: Key,
        found: &[u8],
        life: ComputedLife,
        now: Moment,
    ) -> Checked<String> {
        self.counts(at).add(Event::Hit);
        self.model(at).judge(key, Some(found), now)?;
        self.seen(at, key);
        let (ComputedLife::Fresh { stale, early, .. }, Some(entry)) =
            (life, self.model(at).get(key))
        else {
            return Ok("found".to_owned());
        };
        if let Some(expiry) = entry.expiry
            && !expiry.is_unlimited()
            && self.promises.reports_lives()
        {
            let (_, most_left) = expiry.left(now);
            let due_at = stale.saturating_add(early);
            if most_left.saturating_add(self.promises.coarsest()) < due_at {
                return wrong!(
                    key,
                    "it was not computed, with {most_left:?} left, and is due at {due_at:?}"
                );
            }
        }
        Ok("found".to_owned())
    }

    /// Judges that a computation was due: there was no value, or one that is not fresh any more.
    fn judge_due(&mut self, at: At, key: Key, life: ComputedLife, now: Moment) -> Checked {
        let presence = self.model(at).presence(key, now);
        let entry = self.model(at).get(key);
        let left = entry.and_then(|entry| entry.expiry).map(|expiry| expiry.left(now).0);
        let is_due = match (life, left) {
            (ComputedLife::Fresh { stale, early, .. }, Some(least_left)) => {
                least_left <= stale.saturating_add(early).saturating_add(self.promises.coarsest())
            }
            _ => false,
        };
        // One lookup, one more after a claim, and one to serve a value when the computation fails.
        if presence.may_be_absent() {
            self.counts(at).may_add(Event::Miss, 3);
        }
        if is_due {
            self.counts(at).may_add(Event::Hit, 3);
        } else if presence.may_be_there() {
            self.model(at).judge_presence(key, false, now)?;
        }
        Ok(())
    }

    /// Judges what happened while the computation ran; returns whether its value may be stored.
    fn judge_happened(
        &mut self,
        at: At,
        key: Key,
        incident: Incident,
        happened: Happened,
        now: Moment,
    ) -> Checked<bool> {
        match (happened, incident) {
            (Happened::Written(written), Incident::Write(value) | Incident::WriteMany(value)) => {
                let value = value.build();
                match written {
                    Ok(()) => {
                        self.judge_acceptance(at, key, Some(value.len()), None)?;
                        self.counts(at).add(Event::Set);
                        let expiry = self.expiry(now, Ttl::Default);
                        self.stored(at, key, value, expiry);
                    }
                    Err(error) => self.judge_refusal(at, key, Some(value.len()), None, &error)?,
                }
                Ok(false)
            }
            (Happened::Deleted(deleted), _) => {
                self.judge_deletion(at, key, deleted, now)?;
                Ok(false)
            }
            (Happened::Cleared(Ok(())), _) => {
                self.model(at).clear();
                Ok(false)
            }
            (Happened::Cleared(Err(error)), _) => wrong!(key, "clear failed: {error}"),
            (Happened::Recursed(Err(Error::RecursiveCompute)), _) => Ok(true),
            // The value that is due for a refresh.
            (Happened::Recursed(Ok(found)), _) => {
                self.counts(at).may_add(Event::Hit, 1);
                self.model(at).judge(key, Some(&found), now)?;
                Ok(true)
            }
            (Happened::Recursed(Err(error)), _) => {
                wrong!(key, "computing the same key within failed: {error}")
            }
            _ => Ok(true),
        }
    }

    /// Notes the computed value, which replaces only what was there before.
    #[expect(clippy::too_many_arguments, reason = "everything that decides what is stored")]
    fn land(
        &mut self,
        at: At,
        key: Key,
        value: Rc<[u8]>,
        life: ComputedLife,
        was_there: bool,
        is_refused: bool,
        now: Moment,
    ) -> Checked {
        if is_refused {
            let limits = self.cache(at).store().limits();
            // The bytes of a key and the metadata count as well.
            if (value.len() + key.length() + 512) as u64 <= limits.max_value_bytes {
                return wrong!(key, "the computed {} was refused", describe(&value));
            }
            return Ok(());
        }
        self.judge_acceptance(at, key, Some(value.len()), None)?;
        let ttl = match life {
            ComputedLife::Ttl(ttl) => ttl,
            ComputedLife::Fresh { fresh, stale, .. } => Ttl::After(fresh.saturating_add(stale)),
        };
        let expiry = self.expiry(now, ttl);
        self.stored(at, key, value, expiry);
        if !was_there {
            self.counts(at).add(Event::Set);
            self.tally.stored += 1;
            return Ok(());
        }
        // A value that was there may have gone before the next one could replace it.
        self.counts(at).may_add(Event::Set, 1);
        self.counts(at).may_add(Event::Unmet, 1);
        if !self.promises.clock_is_ours() {
            self.model(at).doubt(key);
        }
        Ok(())
    }
}

fn happen(cache: &Cache, key: &[u8], incident: Incident) -> Happened {
    match incident {
        Incident::Write(value) => Happened::Written(cache.set(key, value.build())),
        Incident::WriteMany(value) => {
            let mut written = cache.set_many(&[(key, value.build())], SetOptions::set());
            Happened::Written(written.remove(0).map(drop))
        }
        Incident::Delete => Happened::Deleted(cache.delete(key)),
        Incident::DeleteMany => Happened::Deleted(cache.delete_many(&[key]).remove(0)),
        Incident::Clear => Happened::Cleared(cache.clear()),
        Incident::Recurse => {
            Happened::Recursed(cache.get_or_compute(key, None, || b"not this".to_vec()))
        }
        Incident::None | Incident::Fail | Incident::Panic => Happened::Nothing,
    }
}

/// Returns the life that decides whether the call is refused.
fn shortest(life: ComputedLife) -> Ttl {
    match life {
        ComputedLife::Ttl(ttl) => ttl,
        ComputedLife::Fresh { fresh: Duration::ZERO, .. } => Ttl::After(Duration::ZERO),
        ComputedLife::Fresh { fresh, .. } => Ttl::After(fresh),
    }
}
