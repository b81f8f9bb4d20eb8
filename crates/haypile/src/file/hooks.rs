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

/// Makes this thread open files as a container with this boot id; as one that cannot read its boot
/// id, if the id is empty. The variable is `HAYPILE_BOOT_ID`.
pub fn set_boot_id(boot_id: Option<&str>) {
    BOOT_ID.set(boot_id.map(str::to_owned));
}

/// Sets the seed of the files that this thread makes, which decides where keys are. The variable is
/// `HAYPILE_HASH_SEED`; without either it is 1.
pub fn set_hash_seed(seed: Option<u64>) {
    HASH_SEED.set(seed);
}

/// Makes this thread take the file system of each file for a btrfs with this much free space.
pub fn set_free_bytes(free_bytes: Option<u64>) {
    FREE_BYTES.set(free_bytes);
}

pub(in crate::file) fn free_bytes() -> Option<u64> {
    FREE_BYTES.get()
}

pub(in crate::file) fn boot_id() -> Option<String> {
    BOOT_ID.with_borrow(Clone::clone).or_else(|| std::env::var("HAYPILE_BOOT_ID").ok())
}

/// Returns the seed of the files that this thread makes.
pub fn hash_seed() -> u64 {
    let text = || std::env::var("HAYPILE_HASH_SEED").ok();
    let chosen = HASH_SEED.with_borrow(|seed| *seed).or_else(|| text()?.parse().ok());
    chosen.unwrap_or(USUAL_HASH_SEED)
}

/// Returns the names of what this thread has flushed to disk since the last call, in order: the `"data"` of a file, or
/// its `"name"`.
pub fn take_syncs() -> Vec<&'static str> {
    SYNCS.take()
}

pub(in crate::file) fn note_sync(what: &'static str) {
    SYNCS.with_borrow_mut(|syncs| syncs.push(what));
}
