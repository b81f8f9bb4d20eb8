//! Hooks of the feature `test-hooks`, through which tests decide in the place of the system.
//!
//! A thread's own choice comes first; then a variable of the environment, for other processes.

use std::cell::{Cell, RefCell};

thread_local! {
    static BOOT_ID: RefCell<Option<String>> = const { RefCell::new(None) };
    static HASH_SEED: RefCell<Option<u64>> = const { RefCell::new(None) };
    static FREE_BYTES: Cell<Option<u64>> = const { Cell::new(None) };
    static SYNCS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// The seed of files where nobody says otherwise: what fails once fails again.
const USUAL_HASH_SEED: u64 = 1;

/// Makes this thread open files as if in a container with this boot id, or as one that cannot read
/// its boot id, if it is empty; for tests. The environment variable is `HAYPILE_BOOT_ID`.
pub fn set_boot_id(boot_id: Option<&str>) {
    BOOT_ID.set(boot_id.map(str::to_owned));
}

/// Sets the hash seed of the files that this thread creates, which decides where in the index each
/// key is; for tests. The environment variable is `HAYPILE_HASH_SEED`; without either the seed is
/// 1.
pub fn set_hash_seed(seed: Option<u64>) {
    HASH_SEED.set(seed);
}

/// Makes this thread treat the file system of each file as a btrfs with this many free bytes; for
/// tests.
pub fn set_free_bytes(free_bytes: Option<u64>) {
    FREE_BYTES.set(free_bytes);
}

pub(in crate::file) fn free_bytes() -> Option<u64> {
    FREE_BYTES.get()
}

pub(in crate::file) fn boot_id() -> Option<String> {
    BOOT_ID.with_borrow(Clone::clone).or_else(|| std::env::var("HAYPILE_BOOT_ID").ok())
}

/// Returns the hash seed of the files that this thread creates, in tests.
pub fn hash_seed() -> u64 {
    let text = || std::env::var("HAYPILE_HASH_SEED").ok();
    let chosen = HASH_SEED.with_borrow(|seed| *seed).or_else(|| text()?.parse().ok());
    chosen.unwrap_or(USUAL_HASH_SEED)
}

/// Returns the flushes to disk of this thread since the last call, in order: `"data"` for a file's
/// contents, `"name"` for its directory entry; for tests.
pub fn take_syncs() -> Vec<&'static str> {
    SYNCS.take()
}

pub(in crate::file) fn note_sync(what: &'static str) {
    SYNCS.with_borrow_mut(|syncs| syncs.push(what));
}
