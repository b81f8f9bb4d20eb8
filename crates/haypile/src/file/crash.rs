//! Named steps at which a test ends or stops the process.
//!
//! Without the feature `crash-points` a step is nothing. With it, `HAYPILE_CRASH_AT=NAME` kills the
//! process with SIGKILL at the first step of this name, `NAME:3` at the third; `HAYPILE_STOP_AT` stops
//! it with SIGSTOP, until it is continued.

#[cfg(not(feature = "crash-points"))]
#[inline]
pub(in crate::file) fn point(_name: &'static str) {}

#[cfg(feature = "crash-points")]
pub(in crate::file) use armed::point;

#[cfg(feature = "crash-points")]
#[expect(unsafe_code, reason = "no library sends a signal to the calling thread")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A step, and how many times it is still passed.
    struct Target {
        name: String,
        left: AtomicU64,
    }

    impl Target {
        fn read(variable: &str) -> Option<Self> {
            let text = std::env::var(variable).ok()?;
            let (name, times) = text.split_once(':').unwrap_or((&text, "1"));
            Some(Self { name: name.to_owned(), left: AtomicU64::new(times.parse().ok()?) })
        }

        fn is_reached(&self, name: &str) -> bool {
            self.name == name && self.left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    static CRASH: OnceLock<Option<Target>> = OnceLock::new();
    static STOP: OnceLock<Option<Target>> = OnceLock::new();

    pub(crate) fn point(name: &'static str) {
        for (target, variable, signal) in
            [(&CRASH, "HAYPILE_CRASH_AT", libc::SIGKILL), (&STOP, "HAYPILE_STOP_AT", libc::SIGSTOP)]
        {
            let target = target.get_or_init(|| Target::read(variable));
            if target.as_ref().is_some_and(|target| target.is_reached(name)) {
                // To this thread: it would go on for a while if the process were signalled.
                // SAFETY: it has no preconditions.
                unsafe { libc::raise(signal) };
            }
        }
    }
}
