//! `mock:100ns`: a cache without a bound whose operations take a time that is made up, so that
//! everything around it can be tested word by word.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::error::{Cause, SubjectError};
use super::table::{Kind, UNCHECKED};
use super::{Subject, Worker};
use crate::meter::{Memory, Meter};

pub(super) const KIND: Kind = Kind {
    name: "mock",
    usage: "mock:NANOSECONDSns",
    help: "a cache without a bound on a clock that each operation moves",
    language: "rust",
    version: "1",
    hidden: true,
    shared: false,
    open: |spec, _, _| {
        let wrong = || SubjectError::Spec {
            subject: spec.redacted(),
            wrong: "write the time of an operation, as in mock:100ns".to_owned(),
        };
        let step_ns = spec.rest().strip_suffix("ns").and_then(|number| number.parse().ok());
        Ok(Box::new(Mock { step_ns: step_ns.ok_or_else(wrong)?, state: Arc::default() }))
    },
    check: UNCHECKED,
};

struct Mock {
    step_ns: u64,
    state: Arc<MockState>,
}

type Entries = HashMap<Box<[u8]>, Box<[u8]>>;

/// State that the users of a mock share with its meter.
#[derive(Debug, Default)]
struct MockState {
    entries: Mutex<Entries>,
    now_ns: AtomicU64,
    bytes: AtomicU64,
}

impl Meter for MockState {
    fn wall_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn cpu_ns(&self) -> u64 {
        self.wall_ns()
    }

    fn memory(&self) -> Option<Memory> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        Some(Memory { resident_bytes: bytes, peak_bytes: bytes })
    }
}

impl Subject for Mock {
    fn version(&self) -> String {
        KIND.version.to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let worker = |_| {
            let state = Arc::clone(&self.state);
            Box::new(MockWorker { step_ns: self.step_ns, state }) as Box<dyn Worker + Send>
        };
        Ok((0..threads).map(worker).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.state.entries.lock().clear();
        self.state.bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn entries(&mut self) -> Option<u64> {
        Some(self.state.entries.lock().len() as u64)
    }

    fn meter(&self) -> Option<Arc<dyn Meter>> {
        Some(Arc::clone(&self.state) as Arc<dyn Meter>)
    }
}

struct MockWorker {
    step_ns: u64,
    state: Arc<MockState>,
}

impl MockWorker {
    fn step(&self) {
        self.state.now_ns.fetch_add(self.step_ns, Ordering::Relaxed);
    }
}

impl Worker for MockWorker {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        self.step();
        let entries = self.state.entries.lock();
        let Some(value) = entries.get(key) else { return Ok(false) };
        buffer.clear();
        buffer.extend_from_slice(value);
        Ok(true)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        self.step();
        let new_bytes = (key.len() + value.len()) as u64;
        let old = self.state.entries.lock().insert(key.into(), value.into());
        let old_bytes = old.map_or(0, |old| (key.len() + old.len()) as u64);
        self.state.bytes.fetch_add(new_bytes.wrapping_sub(old_bytes), Ordering::Relaxed);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        self.step();
        let old = self.state.entries.lock().remove(key);
        if let Some(old) = &old {
            self.state.bytes.fetch_sub((key.len() + old.len()) as u64, Ordering::Relaxed);
        }
        Ok(old.is_some())
    }
}
