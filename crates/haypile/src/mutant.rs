//! Named defects that a build for testing tests can switch on.
//!
//! Without the feature `mutants` there are none. With it, `HAYPILE_MUTANT=NAME` makes each place
//! that asks for NAME do the wrong thing; `mutants.toml` says what that is, and which tests
//! have to notice (`make mutants`).

use std::sync::atomic::Ordering;

#[cfg(not(feature = "mutants"))]
#[inline]
pub(crate) const fn is_on(_name: &str) -> bool {
    false
}

/// An order of memory, which a mutant of this name takes away.
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
