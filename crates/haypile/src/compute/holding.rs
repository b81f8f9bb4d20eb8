//! The claims that each thread holds while it computes.

use std::cell::Cell;

use crate::process;

thread_local! {
    /// The process that this thread belongs to, and the claims that it holds there.
    static HOLDING: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

/// Whether this thread holds the right to compute some key. Such a thread never waits for another
/// computation: two of them could wait for each other.
pub(super) fn is_holding() -> bool {
    HOLDING.with(|holding| {
        let (process, claims) = holding.get();
        claims > 0 && process == process::generation()
    })
}

fn note_holding(change: impl FnOnce(u32) -> u32) {
    HOLDING.with(|holding| {
        let (process, claims) = holding.get();
        let own = process::generation();
        // Those of the process that this one was forked from are not its own.
        let claims = if process == own { claims } else { 0 };
        holding.set((own, change(claims)));
    });
}

/// The right to compute a key's value, bound to the thread that holds it.
pub(super) struct HeldClaim<'a>(
    #[expect(dead_code, reason = "it is dropped")] Box<dyn std::fmt::Debug + Send + 'a>,
);

impl<'a> HeldClaim<'a> {
    pub(super) fn new(guard: Box<dyn std::fmt::Debug + Send + 'a>) -> Self {
        note_holding(|claims| claims + 1);
        Self(guard)
    }
}

impl Drop for HeldClaim<'_> {
    fn drop(&mut self) {
        note_holding(|claims| claims.saturating_sub(1));
    }
}
