//! Judging the value that a read of an owned key has found.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ledger::{Entry, Ledger, NEVER_US, now_us};
use super::plan::Plan;
use super::record::{Name, Record};
use crate::target::{Kind, Target};

/// The time by which clocks and roundings of lives may differ; memcached counts whole seconds by a
/// clock that ticks once a second.
const SLACK_US: u64 = 20_000;
const MEMCACHED_SLACK_US: u64 = 2_000_000;

/// The time that the write of a copy into an upper level may take: it comes on top of `stale=`, and a
/// process can be without a processor in between.
const STALE_SLACK_US: u64 = 1_000_000;

/// A checker of the values that a process reads: it knows which values the keys with one writing thread may have.
#[derive(Debug)]
pub(super) struct Checker {
    /// The longest time that levels may serve what another process has overwritten.
    stale_us: u64,
    has_levels: bool,
    /// Whether other processes see a write only some time after its acknowledgement.
    is_write_back: bool,
    keeps_all: bool,
    slack_us: u64,
    writing_threads: u64,
    /// The numbers of the writing threads of this process.
    own: Range<u64>,
    /// The highest sequence number that this process has read, by key.
    seen: Vec<AtomicU64>,
}

/// The state of a key as the record of writes had it before a read of the key began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) entry: Entry,
    seen: u64,
    us: u64,
}

/// The result of checking the value that a read found: right, wrong or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Right,
    /// A value was found that may not be there.
    Wrong(String),
    /// A value that must be present was missing.
    Lost(String),
}

impl Checker {
    /// Creates the checker of the values that a process reads; `process` is its number, and `None` for the driver.
    pub(super) fn new(plan: &Plan, target: &Target, process: Option<u64>) -> Self {
        let own = match process.filter(|process| *process < plan.writers) {
            Some(process) => process * plan.threads..(process + 1) * plan.threads,
            None => 0..0,
        };
        Self {
            stale_us: u64::try_from(target.stale().as_micros()).unwrap_or(u64::MAX),
            has_levels: target.kinds().len() > 1,
            is_write_back: target.is_write_back(),
            keeps_all: plan.keeps_all(),
            slack_us: match target.last_kind() {
                Kind::Memcached => MEMCACHED_SLACK_US,
                _ => SLACK_US,
            },
            writing_threads: plan.writing_threads(),
            own,
            seen: (0..plan.owned_keys()).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Returns the number of the thread that alone writes a key.
    pub(super) fn owner(&self, key: u64) -> u64 {
        key % self.writing_threads
    }

    fn is_of_this_process(&self, key: u64) -> bool {
        self.own.contains(&self.owner(key))
    }

    /// Returns the state of a key in the record of writes. Must be called before the cache is read.
    pub(super) fn before(&self, ledger: &Ledger, key: u64) -> io::Result<Before> {
        let seen = self.seen[index(key)].load(Ordering::SeqCst);
        Ok(Before { entry: ledger.read(key)?, seen, us: now_us() })
    }

    /// Checks the value that a read of a key has found, or the miss, against the recorded writes before and after the
    /// read.
    pub(super) fn judge(
        &self,
        ledger: &Ledger,
        key: u64,
        before: &Before,
        found: Option<&[u8]>,
    ) -> io::Result<Judgement> {
        let (after, after_us) = (ledger.read(key)?, now_us());
        let judgement = match found {
            None => self.judge_absence(key, before, &after, after_us),
            Some(value) => self.judge_value(key, before, &after, value),
        };
        Ok(match judgement {
            Judgement::Right => judgement,
            Judgement::Wrong(text) => Judgement::Wrong(self.tell(key, before, &after, &text)),
            Judgement::Lost(text) => Judgement::Lost(self.tell(key, before, &after, &text)),
        })
    }

    /// Whether the entry of a key may have expired by now.
    pub(super) fn may_have_expired(&self, entry: &Entry) -> bool {
        now_us().saturating_add(self.slack_us) >= entry.expires_from_us
    }

    fn judge_value(&self, key: u64, before: &Before, after: &Entry, value: &[u8]) -> Judgement {
        let sequence = match Record::parse(Name::Owned(key), value) {
            Ok(record) => record.sequence,
            Err(text) => return Judgement::Wrong(text),
        };
        let acknowledged = before.entry.acknowledged;
        if sequence > after.attempted.sequence.max(after.acknowledged.sequence) {
            return Judgement::Wrong(format!("sequence {sequence}, which nobody has written"));
        }
        if sequence < before.seen {
            let text = format!("sequence {sequence}, after {} was read here", before.seen);
            return Judgement::Wrong(text);
        }
        let is_old = sequence < acknowledged.sequence
            || (sequence == acknowledged.sequence && !acknowledged.is_there);
        if is_old && !self.may_be_stale(key, before, sequence) {
            return Judgement::Wrong(format!("sequence {sequence}, which is not the latest"));
        }
        let is_settled = [&before.entry, after]
            .iter()
            .all(|entry| entry.attempted == acknowledged && entry.acknowledged == acknowledged);
        let until_us = before.entry.expires_until_us.max(after.expires_until_us);
        let is_latest = is_settled && sequence == acknowledged.sequence;
        if is_latest && until_us != NEVER_US && before.us > until_us + self.slack_us {
            return Judgement::Wrong(format!("sequence {sequence}, which has expired"));
        }
        self.seen[index(key)].fetch_max(sequence, Ordering::SeqCst);
        Judgement::Right
    }

    /// Whether levels may still serve a value that another process has overwritten.
    fn may_be_stale(&self, key: u64, before: &Before, sequence: u64) -> bool {
        if !self.has_levels || self.is_of_this_process(key) {
            return false;
        }
        let superseded_us = before.entry.superseded_us(sequence).unwrap_or(0);
        self.is_write_back || before.us <= superseded_us + self.stale_us + STALE_SLACK_US
    }

    fn judge_absence(&self, key: u64, before: &Before, after: &Entry, after_us: u64) -> Judgement {
        let acknowledged = before.entry.acknowledged;
        let from_us = before.entry.expires_from_us.min(after.expires_from_us);
        let operations = after.attempted.sequence.saturating_sub(acknowledged.sequence);
        let may_be_deleted = match operations {
            0 => false,
            1 => !after.attempted.is_there,
            // Nobody knows any more what they were.
            _ => true,
        };
        let may_be_absent = !self.keeps_all
            || !acknowledged.is_there
            || may_be_deleted
            || after_us.saturating_add(self.slack_us) >= from_us
            || (self.is_write_back && !self.is_of_this_process(key));
        if may_be_absent { Judgement::Right } else { Judgement::Lost("nothing".to_owned()) }
    }

    fn tell(&self, key: u64, before: &Before, after: &Entry, text: &str) -> String {
        let reader = if self.is_of_this_process(key) { "the owner's" } else { "another" };
        let age_us = |us| before.us.saturating_sub(us);
        let ages: Vec<String> = before
            .entry
            .history
            .iter()
            .map(|(sequence, us)| format!("{sequence} {} µs before", age_us(*us)))
            .collect();
        format!(
            "key {key} of writer {}, read by {reader} process: found {text}; acknowledged before: \
             {:?} ({}), attempted after: {:?}, expires {:?}",
            self.owner(key),
            before.entry.acknowledged,
            ages.join(", "),
            after.attempted,
            (after.expires_until_us != NEVER_US).then_some(after.expires_until_us),
        )
    }
}

fn index(key: u64) -> usize {
    usize::try_from(key).expect("a vector has the keys")
}
