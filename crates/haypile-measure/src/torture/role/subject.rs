//! Any subject of a runner that processes can share, as a target: so every runner in Rust takes
//! part.

use std::env;

use super::Orders;
use super::target::{Refusal, Target};
use crate::subject::{Cause, Subject, SubjectError, Subjects, Worker};

/// Opens the cache that a torture process's arguments name, in their directory, which becomes the
/// working directory. Computing is not supported.
///
/// # Errors
///
/// Why it cannot be opened.
pub fn open_subject(subjects: &Subjects, orders: &Orders) -> Result<Box<dyn Target>, String> {
    env::set_current_dir(&orders.path).map_err(|error| {
        format!("{} cannot be the working directory: {error}", orders.path.display())
    })?;
    let subject = subjects.open(&orders.subject, &orders.room());
    Ok(Box::new(Used { subject: subject.map_err(|error| error.to_string())? }))
}

struct Used {
    subject: Box<dyn Subject>,
}

impl Used {
    fn perform<T>(
        &mut self,
        operation: impl FnOnce(&mut dyn Worker) -> Result<T, Cause>,
    ) -> Result<T, Refusal> {
        let refusal = |error: SubjectError| Refusal::Failed(error.to_string());
        let mut workers = self.subject.workers(1).map_err(refusal)?;
        let worker = workers.first_mut().expect("as many as were asked for");
        operation(&mut **worker).map_err(|error| Refusal::Failed(error.to_string()))
    }
}

impl Target for Used {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Refusal> {
        self.perform(|worker| worker.get_into(key, buffer))
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        self.perform(|worker| worker.set(key, value))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Refusal> {
        self.perform(|worker| worker.delete(key).map(drop))
    }
}
