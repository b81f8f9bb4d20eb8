//! `noop`: a subject that does nothing, so that the cost of measuring is measured.

use super::error::{Cause, SubjectError};
use super::table::{Kind, UNCHECKED};
use super::{Subject, Worker};

pub(super) const KIND: Kind = Kind {
    name: "noop",
    usage: "noop",
    help: "does nothing: what measuring itself costs",
    language: "rust",
    version: env!("CARGO_PKG_VERSION"),
    hidden: true,
    shared: true,
    open: |_, _, _| Ok(Box::new(Noop)),
    check: UNCHECKED,
};

struct Noop;

impl Subject for Noop {
    fn version(&self) -> String {
        KIND.version.to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        Ok((0..threads).map(|_| Box::new(Noop) as Box<dyn Worker + Send>).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        Ok(())
    }

    fn pretends(&self) -> bool {
        true
    }
}

impl Worker for Noop {
    fn get_into(&mut self, _key: &[u8], _buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        Ok(false)
    }

    fn set(&mut self, _key: &[u8], _value: &[u8]) -> Result<(), Cause> {
        Ok(())
    }

    fn delete(&mut self, _key: &[u8]) -> Result<bool, Cause> {
        Ok(false)
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        for position in 0..keys.len() {
            found(position, None);
        }
        Ok(())
    }
}
