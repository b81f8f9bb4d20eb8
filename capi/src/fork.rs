//! Forks: registers the engine's gate with the system, and keeps a child from objects of its parent that it
//! must not use.

use std::sync::atomic::{AtomicBool, Ordering};

use engine::ForkGate;

use crate::call::Failure;

/// Registers the handlers that run before and after forks, once.
pub(crate) fn register() -> Result<(), Failure> {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if IS_REGISTERED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: the functions are part of this library, whose unloading unregisters them, and the last of them
    // only uses atomic numbers.
    let result = unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    if result == 0 {
        return Ok(());
    }
    IS_REGISTERED.store(false, Ordering::Relaxed);
    Err(Failure::OutOfMemory(0))
}

extern "C" fn prepare() {
    ForkGate::prepare(ForkGate::PATIENCE);
}

extern "C" fn in_parent() {
    ForkGate::in_parent();
}

extern "C" fn in_child() {
    ForkGate::in_child();
}

/// The process that opened a cache, which all objects of that cache belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    generation: u64,
    /// Whether a forked child can use the cache, whatever other threads of its parent were doing.
    is_shared: bool,
}

impl Origin {
    /// Returns the present process as the origin of a cache.
    pub(crate) fn of(cache: &engine::Cache) -> Self {
        let url = cache.store().url();
        let is_shared = match url.levels() {
            // All of its state is in the file. A recording has locks.
            [level] => level.scheme() == "file" && level.option("record").is_none(),
            _ => false,
        };
        Self { generation: ForkGate::generation(), is_shared }
    }

    /// Delays forks that could leave something locked, until the returned guard is dropped.
    pub(crate) fn enter(self) -> Result<Option<ForkGate>, Failure> {
        if self.is_shared {
            return Ok(None);
        }
        let inside = ForkGate::enter();
        if self.is_usable() { Ok(Some(inside)) } else { Err(Failure::Forked) }
    }

    /// Frees an object of a cache, except in a forked child that must not use it.
    pub(crate) fn free<T>(self, object: Box<T>) {
        match self.enter() {
            Ok(_inside) => drop(object),
            Err(_) => std::mem::forget(object),
        }
    }

    /// Whether this process is a forked child of the one that opened the cache.
    pub(crate) fn is_inherited(self) -> bool {
        ForkGate::generation() != self.generation
    }

    fn is_usable(self) -> bool {
        ForkGate::is_usable(self.generation)
    }
}
