//! What tests decide in the place of the system, where the feature `test-hooks` is on.
//!
//! A thread's own choice comes first; then a variable of the environment, for other processes.

use std::cell::RefCell;

thread_local! {
    static BOOT_ID: RefCell<Option<String>> = const { RefCell::new(None) };
    static HASH_SEED: RefCell<Option<u64>> = const { RefCell::new(None) };
}

/// Has this thread open files as a container with this boot id; one that cannot read its boot id,
/// if that is empty. The variable is `HAYPILE_BOOT_ID`.
pub fn set_boot_id(boot_id: Option<&str>) {
    BOOT_ID.set(boot_id.map(str::to_owned));
}

/// Gives the files that this thread makes this seed, so that keys have the same hashes each time. The
/// variable is `HAYPILE_HASH_SEED`.
pub fn set_hash_seed(seed: Option<u64>) {
    HASH_SEED.set(seed);
}

pub(super) fn boot_id() -> Option<String> {
    BOOT_ID.with_borrow(Clone::clone).or_else(|| std::env::var("HAYPILE_BOOT_ID").ok())
}

pub(super) fn hash_seed() -> Option<u64> {
    let text = || std::env::var("HAYPILE_HASH_SEED").ok();
    HASH_SEED.with_borrow(|seed| *seed).or_else(|| text()?.parse().ok())
}
