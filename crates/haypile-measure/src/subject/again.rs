//! `again:3:SUBJECT`: another subject that does 3 of 100 operations twice: a known slowdown, to test whether it is
//! found.
//!
//! A read that is done in addition is of the key that was read [`REMEMBERED`] reads ago. The same key
//! at once again would find all that it needs in the fastest of the processor's caches and cost less
//! than any other. Keys are remembered whatever the share is, so that 0 of 100 costs as much besides.
//! Writes, deletions and reads of many are done twice.

use std::sync::Arc;

use super::error::{Cause, SubjectError};
use super::spec::SubjectSpec;
use super::table::{Kind, UNCHECKED};
use super::{Subject, Worker};
use crate::meter::Meter;

pub(super) const KIND: Kind = Kind {
    name: "again",
    usage: "again:PERCENT:SUBJECT",
    help: "another subject that repeats this many of 100 operations: a planted slowdown",
    language: "rust",
    version: "2",
    hidden: true,
    // It is the other subject that can be shared, or not.
    shared: true,
    open: |spec, room, subjects| {
        let wrong = |wrong: &str| SubjectError::Spec {
            subject: spec.redacted(),
            wrong: format!("{wrong}; write it as in again:3:memory:policy=lru"),
        };
        let (percent, inner) =
            spec.rest().split_once(':').ok_or_else(|| wrong("two parts are needed"))?;
        let percent = percent.parse().ok().filter(|percent| *percent <= 100);
        let percent = percent.ok_or_else(|| wrong("the share is a whole number up to 100"))?;
        let inner: SubjectSpec = inner.parse().map_err(|error: String| wrong(&error))?;
        if inner.name() == KIND.name {
            return Err(wrong("it cannot wrap itself"));
        }
        Ok(Box::new(Again { percent, inner: subjects.open(&inner, room)? }))
    },
    check: UNCHECKED,
};

/// The distance, in reads, after which a key is read again: enough for what they touch not to fit
/// the 32 KiB of a first-level cache, with values of some hundred bytes.
const REMEMBERED: usize = 128;

struct Again {
    percent: u32,
    inner: Box<dyn Subject>,
}

impl Subject for Again {
    fn version(&self) -> String {
        self.inner.version()
    }

    fn language(&self) -> String {
        self.inner.language()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let percent = self.percent;
        let again = |inner| {
            let remembered = vec![Vec::new(); REMEMBERED];
            let worker = AgainWorker { percent, due: 0, remembered, next: 0, inner };
            Box::new(worker) as Box<dyn Worker + Send + '_>
        };
        Ok(self.inner.workers(threads)?.into_iter().map(again).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.inner.fresh()
    }

    fn server_pid(&self) -> Option<u32> {
        self.inner.server_pid()
    }

    fn check(&mut self) -> Result<(), Cause> {
        self.inner.check()
    }

    fn clear(&mut self) -> Result<(), Cause> {
        self.inner.clear()
    }

    fn flush(&mut self) -> Result<(), Cause> {
        self.inner.flush()
    }

    fn entries(&mut self) -> Option<u64> {
        self.inner.entries()
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        let mut counts = self.inner.counts();
        counts.push(("again_percent", u64::from(self.percent)));
        counts
    }

    fn meter(&self) -> Option<Arc<dyn Meter>> {
        self.inner.meter()
    }

    fn pretends(&self) -> bool {
        self.inner.pretends()
    }
}

struct AgainWorker<'a> {
    percent: u32,
    /// Number of extra operations that are due, in hundredths.
    due: u32,
    /// The keys of the last reads, the oldest of them at `next`; empty where there is none yet.
    remembered: Vec<Vec<u8>>,
    next: usize,
    inner: Box<dyn Worker + Send + 'a>,
}

impl AgainWorker<'_> {
    fn is_due(&mut self) -> bool {
        self.due += self.percent;
        let is_due = self.due >= 100;
        self.due %= 100;
        is_due
    }
}

impl Worker for AgainWorker<'_> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        let is_due = self.is_due();
        let place = &mut self.remembered[self.next];
        if is_due {
            self.inner.get_into(if place.is_empty() { key } else { place }, buffer)?;
        }
        place.clear();
        place.extend_from_slice(key);
        self.next = (self.next + 1) % REMEMBERED;
        self.inner.get_into(key, buffer)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        if self.is_due() {
            self.inner.set(key, value)?;
        }
        self.inner.set(key, value)
    }

    fn set_expiring(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        self.inner.set_expiring(key, value)
    }

    fn compute(
        &mut self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        compute: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), Cause> {
        self.inner.compute(key, buffer, compute)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        let deleted = self.inner.delete(key)?;
        if self.is_due() {
            self.inner.delete(key)?;
        }
        Ok(deleted)
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        if self.is_due() {
            self.inner.get_many(keys, &mut |_, _| {})?;
        }
        self.inner.get_many(keys, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the keys that are asked for.
    #[derive(Default)]
    struct Asked(Arc<std::sync::Mutex<Vec<Vec<u8>>>>);

    impl Worker for Asked {
        fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
            self.0.lock().unwrap().push(key.to_vec());
            key.clone_into(buffer);
            Ok(true)
        }

        fn set(&mut self, key: &[u8], _value: &[u8]) -> Result<(), Cause> {
            self.0.lock().unwrap().push(key.to_vec());
            Ok(())
        }

        fn delete(&mut self, _key: &[u8]) -> Result<bool, Cause> {
            Ok(true)
        }
    }

    /// The keys that reads of 0, 1, 2 and so on come to.
    fn asked(percent: u32, reads: u32) -> Vec<u32> {
        let inner = Asked::default();
        let asked = Arc::clone(&inner.0);
        let remembered = vec![Vec::new(); REMEMBERED];
        let mut worker =
            AgainWorker { percent, due: 0, remembered, next: 0, inner: Box::new(inner) };
        let mut buffer = Vec::new();
        for key in 0..reads {
            assert!(worker.get_into(&key.to_le_bytes(), &mut buffer).unwrap());
            assert_eq!(buffer, key.to_le_bytes(), "the answer is that of the key asked for");
        }
        drop(worker);
        let asked = asked.lock().unwrap();
        asked.iter().map(|key| u32::from_le_bytes(key[..].try_into().unwrap())).collect()
    }

    #[test]
    fn as_many_reads_are_added_as_the_share_says() {
        assert_eq!(asked(0, 10_000).len(), 10_000);
        assert_eq!(asked(3, 10_000).len(), 10_300);
        assert_eq!(asked(100, 10_000).len(), 20_000);
    }

    #[test]
    fn what_is_added_was_read_long_before() {
        let asked = asked(100, 1000);
        let (added, own): (Vec<_>, Vec<_>) = asked.chunks(2).map(|both| (both[0], both[1])).unzip();
        assert_eq!(own, (0..1000).collect::<Vec<_>>());
        assert!(added[..128].iter().eq(&own[..128]), "until this many were read");
        assert!(added[128..].iter().eq(&own[..872]));
    }
}
