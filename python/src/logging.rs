//! Brings what the engine logs to Python's `logging`, as records of the logger `haypile`.
//!
//! The engine logs while it holds locks, and without the GIL. A thread that waited for the GIL there could
//! wait for one that has it and waits for such a lock. So records are kept until a call returns to Python.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;

/// Records that are kept; of more, the oldest are dropped.
const MAX_KEPT: usize = 1_000;

static KEPT: Mutex<VecDeque<(Level, String)>> = Mutex::new(VecDeque::new());

static HAS_KEPT: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

struct Keeper;

impl Log for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("haypile") && !IS_SILENT.get()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let mut kept = kept();
            if kept.len() == MAX_KEPT {
                kept.pop_front();
            }
            kept.push_back((record.level(), record.args().to_string()));
            HAS_KEPT.store(true, Ordering::Release);
        }
    }

    fn flush(&self) {}
}

fn kept() -> MutexGuard<'static, VecDeque<(Level, String)>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what the engine logs from here on.
pub(crate) fn install() {
    if log::set_logger(&Keeper).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// Runs something whose caller reports what it logs in another way.
pub(crate) fn silently<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);

    impl Drop for Restore {
        fn drop(&mut self) {
            IS_SILENT.set(self.0);
        }
    }

    let _restore = Restore(IS_SILENT.replace(true));
    work()
}

/// Hands what is kept to Python. An exception of a handler is written where Python writes those that
/// nobody can catch.
#[inline]
pub(crate) fn emit(py: Python<'_>) {
    if HAS_KEPT.load(Ordering::Relaxed) && HAS_KEPT.swap(false, Ordering::Acquire) {
        emit_all(py);
    }
}

#[cold]
fn emit_all(py: Python<'_>) {
    let records = std::mem::take(&mut *kept());
    let emit = || {
        let logger = py.import("logging")?.call_method1("getLogger", ("haypile",))?;
        for (level, text) in &records {
            let method = match level {
                Level::Error => "error",
                Level::Warn => "warning",
                _ => "info",
            };
            logger.call_method1(method, ("%s", text))?;
        }
        PyResult::Ok(())
    };
    if let Err(error) = emit() {
        error.write_unraisable(py, None);
    }
}
