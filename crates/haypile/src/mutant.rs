//! Named defects that a test build can switch on, to check the tests.
//!
//! Without the feature `mutants` there are none. With it, `HAYPILE_MUTANT=NAME` makes each place
//! that asks for NAME do the wrong thing; `mutants.toml` describes the defects and the tests that
//! must detect them (`make mutants`).

use std::sync::atomic::Ordering;

#[cfg(not(feature = "mutants"))]
#[inline]
pub(crate) const fn is_on(_name: &str) -> bool {
    false
}

/// Returns the memory order of an atomic access: `order`, or a relaxed one in a test build that
/// switches on the defect `name`.
#[inline]
pub(crate) fn order(name: &str, order: Ordering) -> Ordering {
    if is_on(name) { Ordering::Relaxed } else { order }
}

#[cfg(feature = "mutants")]
pub(crate) fn is_on(name: &str) -> bool {
    use std::sync::OnceLock;

    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("HAYPILE_MUTANT").ok());
    chosen.as_deref() == Some(name)
}
