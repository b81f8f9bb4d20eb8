//! Named steps at which a test ends the process.
//!
//! Without the feature `crash-points` a step is nothing. With it, `HAYPILE_CRASH_AT=NAME` kills the
//! process with SIGKILL at the first step of this name, `NAME:3` at the third.

#[cfg(not(feature = "crash-points"))]
#[inline]
pub(super) fn point(_name: &'static str) {}

#[cfg(feature = "crash-points")]
pub(super) use armed::point;

#[cfg(feature = "crash-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The name, and how many times it is still passed.
    static TARGET: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();

    pub(crate) fn point(name: &'static str) {
        let target = TARGET.get_or_init(|| {
            let text = std::env::var("HAYPILE_CRASH_AT").ok()?;
            let (name, times) = text.split_once(':').unwrap_or((&text, "1"));
            Some((name.to_owned(), AtomicU64::new(times.parse().ok()?)))
        });
        if let Some((wanted, left)) = target
            && wanted == name
            && left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    }
}
