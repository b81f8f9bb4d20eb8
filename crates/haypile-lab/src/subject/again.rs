//! `again:3:SUBJECT`: another subject that does 3 of 100 operations twice. A slowdown that is known,
//! to test whether it is found.

use std::sync::Arc;

use super::error::{Cause, SubjectError};
use super::spec::SubjectSpec;
use super::table::Kind;
use super::{Subject, Worker};
use crate::meter::Meter;

pub(super) const KIND: Kind = Kind {
    name: "again",
    usage: "again:PERCENT:SUBJECT",
    help: "another subject that does so many of 100 operations twice: a planted slowdown",
    language: "rust",
    version: "1",
    hidden: true,
    // It is the other subject that can be shared, or not.
    shared: true,
    open: |spec, room, subjects| {
        let wrong = |wrong: &str| SubjectError::Spec {
            subject: spec.to_string(),
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
};

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
        let again =
            |inner| Box::new(AgainWorker { percent, due: 0, inner }) as Box<dyn Worker + Send + '_>;
        Ok(self.inner.workers(threads)?.into_iter().map(again).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.inner.fresh()
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
    /// Hundredths of an operation that are still to be done a second time.
    due: u32,
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
        if self.is_due() {
            self.inner.get_into(key, buffer)?;
        }
        self.inner.get_into(key, buffer)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        if self.is_due() {
            self.inner.set(key, value)?;
        }
        self.inner.set(key, value)
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
