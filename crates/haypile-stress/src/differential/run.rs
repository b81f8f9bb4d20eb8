//! One run: the cache under test, the model, and the steps that both perform.

use std::collections::VecDeque;
use std::rc::Rc;

use anyhow::Result as Fallible;
use haypile::url::CacheUrl;
use haypile::{Cache, Error, Limits, Ttl};

use super::Plan;
use super::counts::Counts;
use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::model::Model;
use super::operation::{Operation, Step};
use super::pins::Pin;
use super::promises::Promises;
use super::tally::Tally;
use super::time::{Expiry, Moment, Time};
use super::versions::Versions;
use super::writes::KeptReservation;
use crate::target::{self, Kind, Target};

/// A run of a differential test: random operations on its own cache, compared with a model.
pub(super) struct Run {
    pub(super) keys: u16,
    pub(super) promises: Promises,
    pub(super) time: Time,
    pub(super) hash_seed: u64,
    pub(super) allows: Allowed,
    pub(super) handles: usize,
    pub(super) tenants: Vec<Tenant>,
    pub(super) pins: VecDeque<Pin>,
    pub(super) most_pins: usize,
    pub(super) reservations: VecDeque<KeptReservation>,
    /// The size of the cache in bytes, as its URL states it.
    pub(super) opened_bytes: Option<u64>,
    /// Whether any entry had to be evicted since the cache was opened.
    pub(super) was_full: bool,
    pub(super) tally: Tally,
    /// The cache under test; it is dropped last, because that removes its directory.
    pub(super) target: Target,
}

/// The kinds of refusals (busy or full) of an operation by the cache that do not fail a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    pub(crate) busy: bool,
    pub(crate) full: bool,
}

/// A user of the cache with a separate namespace, which sees no entries of other users; with its
/// handles and its model.
pub(super) struct Tenant {
    url: CacheUrl,
    pub(super) handles: Vec<Handle>,
    /// The last level of the cache, opened separately, if the cache has several levels.
    pub(super) below: Option<Cache>,
    pub(super) model: Model,
    pub(super) versions: Versions,
}

/// One opening of the cache under test (a handle), with bounds on the statistics that it has to
/// report.
pub(super) struct Handle {
    pub(super) cache: Cache,
    pub(super) counts: Counts,
}

impl Run {
    /// Creates a run of a differential test: opens the cache of the plan and empties it.
    pub(super) fn new(plan: &Plan, seed: u64) -> Fallible<Self> {
        let target = Target::new(&plan.url)?;
        let promises = Promises::of(&target, plan.retention);
        let time = if promises.clock_is_ours() { Time::manual() } else { Time::system() };
        let urls = match plan.namespaces {
            0 => vec![target.url().clone()],
            count => (0..count)
                .map(|number| target.in_namespace(&format!("n{number}")))
                .collect::<Fallible<_>>()?,
        };
        let has_copies = promises.levels() > 1;
        let tenants = urls.into_iter().map(|url| Tenant::of(url, has_copies)).collect();
        let mut run = Self {
            keys: plan.keys,
            handles: plan.handles(&target),
            target,
            promises,
            time,
            hash_seed: seed,
            allows: plan.allows,
            tenants,
            pins: VecDeque::new(),
            most_pins: plan.pins,
            reservations: VecDeque::new(),
            opened_bytes: None,
            was_full: false,
            tally: Tally::default(),
        };
        run.open()?;
        for tenant in &run.tenants {
            tenant.handles[0].cache.clear()?;
        }
        Ok(run)
    }

    /// Opens all handles of the run on the cache under test.
    pub(super) fn open(&mut self) -> Fallible<()> {
        let (clock, seed) = (self.time.for_caches(), self.hash_seed);
        let open = |url: &CacheUrl| target::open(url, clock.clone(), seed).map(Cache::new);
        for tenant in &mut self.tenants {
            for _ in 0..self.handles {
                let cache = open(&tenant.url)?;
                tenant.handles.push(Handle { cache, counts: Counts::default() });
            }
            if self.promises.levels() > 1 && self.target.is_shared() {
                tenant.below = Some(open(&target::last_of(&tenant.url))?);
            }
        }
        let limits = self.tenants[0].handles[0].cache.store().limits();
        self.opened_bytes = limits.capacity_bytes;
        self.was_full = false;
        Ok(())
    }

    /// Performs an operation on the cache and on the model; returns the outcome as text.
    pub(super) fn perform(&mut self, step: &Step) -> Checked<String> {
        let at = At { tenant: step.tenant, handle: step.handle };
        let outcome = match &step.operation {
            Operation::Read { key, form } => self.read(at, *key, *form),
            Operation::ReadMany { keys } => self.read_many(at, keys),
            Operation::Contains { key } => self.contains(at, *key),
            Operation::ReadBelow { key } => self.read_below(at, *key),
            Operation::Pin { key, form } => self.pin(at, *key, *form),
            Operation::Unpin => self.unpin(),
            Operation::Write { write, form } => self.write(at, write, *form),
            Operation::WriteMany { writes } => self.write_many(at, writes),
            Operation::Commit { is_dropped } => self.commit(*is_dropped),
            Operation::Delete { key } => self.delete(at, *key),
            Operation::DeleteVersion { key, version } => self.delete_version(at, *key, *version),
            Operation::DeleteMany { keys } => self.delete_many(at, keys),
            Operation::Touch { key, ttl } => self.touch(at, *key, *ttl),
            Operation::Count { key, delta, is_up } => self.count(at, *key, *delta, *is_up),
            Operation::Compute { key, value, freshness, incident } => {
                self.compute(at, *key, *value, *freshness, *incident)
            }
            Operation::Advance { by } => {
                self.time.advance(*by);
                Ok("done".to_owned())
            }
            Operation::Census { page } => self.census(at, *page),
            Operation::Flush { durability } => self.flush(at, *durability),
            Operation::Clear => self.clear(at),
            Operation::Resize { percent } => self.resize(at, *percent),
            Operation::Reopen { writes } => self.reopen(at, writes),
        }?;
        self.check_a_pin(step.number)?;
        self.tally.operations += 1;
        Ok(outcome)
    }

    /// Checks, at the end of a run, all entries, values held in place and the free room of the
    /// cache.
    pub(super) fn finish(&mut self) -> Checked {
        self.check_all_pins()?;
        for tenant in 0..self.tenants.len() {
            for handle in 0..self.handles {
                self.census(At { tenant, handle }, 100)?;
            }
        }
        self.check_room()
    }

    /// Returns the cache that a handle uses.
    pub(super) fn cache(&self, at: At) -> Cache {
        self.tenants[at.tenant].handles[at.handle].cache.clone()
    }

    pub(super) fn counts(&mut self, at: At) -> &mut Counts {
        &mut self.tenants[at.tenant].handles[at.handle].counts
    }

    pub(super) fn model(&mut self, at: At) -> &mut Model {
        &mut self.tenants[at.tenant].model
    }

    /// Returns the earliest and latest expiry of an entry that is written at `now` with this TTL;
    /// `None` if it never expires.
    pub(super) fn expiry(&self, now: Moment, ttl: Ttl) -> Option<Expiry> {
        let ttl = match ttl {
            Ttl::Default => self.promises.ttl,
            Ttl::Never => None,
            Ttl::After(ttl) => Some(ttl),
        };
        self.promises.expiry(now, ttl)
    }

    /// Records in the model that the cache has stored a value; if there is too little room, any
    /// entry may be evicted from then on.
    pub(super) fn stored(&mut self, at: At, key: Key, value: Rc<[u8]>, expiry: Option<Expiry>) {
        self.model(at).put(key, value, expiry);
        if !self.fits() {
            self.was_full = true;
            self.tenants.iter_mut().for_each(|tenant| tenant.model.doubt_all());
        }
    }

    /// Records in the model that an entry was found in the cache, so that it must stay while
    /// nothing need be evicted.
    pub(super) fn seen(&mut self, at: At, key: Key) {
        // An upper level may have what is not in the last one any more.
        if self.promises.levels() == 1 && self.fits() {
            self.model(at).trust(key);
        }
    }

    /// Whether all entries that may be in the cache are so small, together, that the cache may not
    /// lose any.
    pub(super) fn fits(&self) -> bool {
        let capacity_bytes = self.tenants[0].handles[0].cache.store().limits().capacity_bytes;
        let kept_bytes = self.promises.kept_bytes(capacity_bytes, !self.pins.is_empty());
        if kept_bytes == u64::MAX {
            return true;
        }
        let cost = |key: Key, value: &[u8]| self.promises.cost_bytes(key.length(), value.len());
        let entries = self.tenants.iter().flat_map(|tenant| tenant.model.entries());
        let entries_bytes: u64 = entries.map(|(key, entry)| cost(key, &entry.value)).sum();
        let pins_bytes: u64 = self.pins.iter().map(|pin| cost(pin.key, &pin.value)).sum();
        entries_bytes + pins_bytes <= kept_bytes
    }

    /// Checks whether the cache was allowed to refuse an operation with this error. `value_bytes`
    /// and `ttl` are those of a write.
    pub(super) fn judge_refusal(
        &mut self,
        at: At,
        key: Key,
        value_bytes: Option<usize>,
        ttl: Option<Ttl>,
        error: &Error,
    ) -> Checked {
        match error {
            Error::Busy { .. } => self.tally.busy += 1,
            Error::Full { .. } => self.tally.full += 1,
            _ => {}
        }
        if self.may_refuse(at, key, value_bytes, ttl, error) {
            return Ok(());
        }
        wrong!(key, "it was refused: {error}")
    }

    /// Whether the documentation names a reason for which the cache may refuse an operation with
    /// this error.
    pub(super) fn may_refuse(
        &self,
        at: At,
        key: Key,
        value_bytes: Option<usize>,
        ttl: Option<Ttl>,
        error: &Error,
    ) -> bool {
        let limits = self.cache(at).store().limits();
        match error {
            Error::KeyTooLong { key_bytes, limit_bytes, .. } => {
                *key_bytes == key.length()
                    && key.length() > *limit_bytes
                    && *limit_bytes <= Limits::MAX_KEY_BYTES
            }
            Error::ValueTooLarge { limit_bytes, .. } => {
                value_bytes.is_some_and(|bytes| bytes as u64 > *limit_bytes)
                    && *limit_bytes <= limits.max_value_bytes
            }
            Error::ZeroTtl => ttl.is_some_and(is_zero),
            Error::Unsupported { .. } => self.promises.last == Kind::Memcached && key.length() == 0,
            Error::Busy { .. } => self.allows.busy,
            Error::Full { .. } => self.allows.full,
            _ => false,
        }
    }

    /// Checks whether the cache was allowed to accept a call, which it is not if an argument is
    /// beyond a limit.
    pub(super) fn judge_acceptance(
        &mut self,
        at: At,
        key: Key,
        value_bytes: Option<usize>,
        ttl: Option<Ttl>,
    ) -> Checked {
        let limits = self.cache(at).store().limits();
        let key_bytes = key.length();
        // A small store in memory answers about keys that it could not hold.
        let longest_bytes =
            if value_bytes.is_some() { limits.max_key_bytes } else { Limits::MAX_KEY_BYTES };
        if key_bytes > longest_bytes {
            return wrong!(key, "a key of {key_bytes} bytes was accepted: {limits:?}");
        }
        if let Some(bytes) = value_bytes
            && bytes as u64 > limits.max_value_bytes
        {
            return wrong!(key, "a value of {bytes} bytes was accepted: {limits:?}");
        }
        if ttl.is_some_and(is_zero) {
            return wrong!(key, "a TTL of zero was accepted");
        }
        Ok(())
    }
}

impl Tenant {
    fn of(url: CacheUrl, has_copies: bool) -> Self {
        Self {
            url,
            handles: Vec::new(),
            below: None,
            model: Model::new(has_copies),
            versions: Versions::default(),
        }
    }
}

/// The numbers of the namespace and of the handle that perform an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) tenant: usize,
    pub(super) handle: usize,
}

fn is_zero(ttl: Ttl) -> bool {
    matches!(ttl, Ttl::After(ttl) if ttl.is_zero())
}
