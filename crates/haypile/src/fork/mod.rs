//! The gate at which forks wait for the threads in the engine.

#[cfg(target_os = "linux")]
pub(crate) mod values;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::mutant;

/// Pause between two polls of a wait.
const NAP: Duration = Duration::from_micros(50);

/// Counters over which threads are spread, so that few threads write to the same cache line.
const STRIPES: usize = 64;

/// A counter on cache lines of its own.
#[repr(align(128))]
struct Stripe(AtomicUsize);

/// Numbers of threads behind the gate.
static INSIDE: [Stripe; STRIPES] = [const { Stripe(AtomicUsize::new(0)) }; STRIPES];

/// Number of forks in progress.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// Number of forks between the process that loaded the engine and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The first generation whose caches this process may use.
static USABLE_FROM: AtomicU64 = AtomicU64::new(0);

/// The stripe of the next thread.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The stripe of this thread, once it has one.
    static STRIPE: Cell<Option<usize>> = const { Cell::new(None) };
    /// Number of guards of this thread; zero while it is outside.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A gate that makes a fork wait until no thread is using a cache: for bindings to languages whose
/// programs fork.
///
/// A forked child has one thread, and a copy of every lock as it was at that instant: a lock that another
/// thread held stays locked in it. So a binding calls the engine behind a gate, [`enter`](Self::enter), and
/// registers [`prepare`](Self::prepare), [`in_parent`](Self::in_parent) and [`in_child`](Self::in_child) with the
/// system (`pthread_atfork`) or its interpreter. A fork then waits until no thread is behind the gate, and threads
/// that arrive in the meantime wait for the fork. The engine's own threads go through the gate as well.
///
/// Both waits poll, because a lock here would have the same problem, and both have a bound, because a
/// thread may itself hold something that the fork waits for, or wait for a server. If a thread was behind the
/// gate at the instant of a fork all the same, the child knows it: [`is_usable`](Self::is_usable) is false for
/// what was opened before, and the child must leave that alone, or open it again.
///
/// A thread that computes a value is [`outside`](Self::outside) as far as a fork is concerned: it holds no lock of
/// the engine.
///
/// A value of this type keeps the thread behind the gate until it is dropped.
#[derive(Debug)]
#[must_use = "the thread is behind the gate only as long as this exists"]
pub struct ForkGate(PhantomData<*const ()>);

impl ForkGate {
    /// The default of the longest time that a thread waits for the end of a fork before it uses a
    /// cache, and that a fork waits for such threads.
    pub const PATIENCE: Duration = Duration::from_secs(1);

    /// Enters the fork gate to use a cache: while the returned guard lives, a fork waits for this
    /// thread. If a fork is in progress, waits for its end, at most [`PATIENCE`](Self::PATIENCE).
    #[inline]
    pub fn enter() -> Self {
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            arrive();
        }
        Self(PhantomData)
    }

    /// Calls a function of the program outside the fork gate, so that a fork does not wait for it,
    /// and returns its result. The function may use caches, and fork.
    pub fn outside<R>(function: impl FnOnce() -> R) -> R {
        /// Goes behind the gate again, even after a panic.
        struct Return(usize);

        impl Drop for Return {
            fn drop(&mut self) {
                if self.0 > 0 {
                    arrive();
                }
                DEPTH.set(self.0);
            }
        }

        let depth = DEPTH.replace(0);
        if depth > 0 {
            leave();
        }
        let _return = Return(depth);
        function()
    }

    /// Prepares a fork, in the thread that forks: waits until no other thread is using a cache (is
    /// inside the gate), for at most `at_most`.
    pub fn prepare(at_most: Duration) {
        FORKING.fetch_add(1, Ordering::SeqCst);
        if !mutant::is_on("fork-waits-for-nobody") {
            wait_until(at_most, || threads_inside() == own());
        }
        #[cfg(target_os = "linux")]
        values::copy_all();
    }

    /// Ends a fork for the caches of the parent process; to be called there after `fork()`.
    pub fn in_parent() {
        #[cfg(target_os = "linux")]
        values::drop_copies();
        FORKING.fetch_sub(1, Ordering::SeqCst);
    }

    /// Ends a fork for the caches of the child process; to be called there after `fork()`. It only
    /// calls functions that are safe in a signal handler.
    pub fn in_child() {
        // The counts are those of the instant of the fork.
        let is_usable = threads_inside() == own() || mutant::is_on("child-trusts-what-was-in-use");
        for stripe in &INSIDE {
            stripe.0.store(0, Ordering::SeqCst);
        }
        if own() > 0 {
            stripe().fetch_add(1, Ordering::SeqCst);
        }
        FORKING.store(0, Ordering::SeqCst);
        #[cfg(target_os = "linux")]
        values::use_copies();
        let generation = GENERATION.fetch_add(1, Ordering::SeqCst) + 1;
        if !is_usable {
            USABLE_FROM.store(generation, Ordering::SeqCst);
        }
    }

    /// Returns the fork generation of this process: a number that differs between a process and its
    /// parent.
    pub fn generation() -> u64 {
        GENERATION.load(Ordering::Relaxed)
    }

    /// Whether this process may use a cache that was opened in this fork generation (a number that
    /// each fork changes). Returns `false` if another thread was using a cache during a fork since
    /// then.
    #[inline]
    pub fn is_usable(generation: u64) -> bool {
        generation >= USABLE_FROM.load(Ordering::Relaxed)
    }
}

impl Drop for ForkGate {
    #[inline]
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            leave();
        }
    }
}

/// Lets a waiting fork proceed, if this thread is using a cache (is inside the fork gate). A thread
/// that waits for another one calls it repeatedly, and so does not block forks.
pub(crate) fn pass() {
    let is_awaited = is_inside() && FORKING.load(Ordering::SeqCst) > 0;
    if is_awaited && !mutant::is_on("waiting-thread-keeps-forks-waiting") {
        ForkGate::outside(|| ());
    }
}

/// Whether this thread is using a cache (is inside the fork gate), so that forks wait for it.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// Goes behind the gate, after a fork in progress.
#[inline]
fn arrive() {
    let stripe = stripe();
    // Pairs with `prepare`: either it sees this thread, or this thread sees the fork.
    stripe.fetch_add(1, Ordering::SeqCst);
    if FORKING.load(Ordering::SeqCst) > 0 && !mutant::is_on("thread-does-not-wait-for-a-fork") {
        wait_outside(stripe);
    }
}

#[inline]
fn leave() {
    stripe().fetch_sub(1, Ordering::SeqCst);
}

#[cold]
fn wait_outside(stripe: &AtomicUsize) {
    stripe.fetch_sub(1, Ordering::SeqCst);
    wait_until(ForkGate::PATIENCE, || FORKING.load(Ordering::SeqCst) == 0);
    stripe.fetch_add(1, Ordering::SeqCst);
}

#[inline]
fn stripe() -> &'static AtomicUsize {
    let number = STRIPE.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
        STRIPE.set(Some(number));
        number
    });
    &INSIDE[number].0
}

fn threads_inside() -> usize {
    INSIDE.iter().map(|stripe| stripe.0.load(Ordering::SeqCst)).sum()
}

/// Returns the part of this thread in [`threads_inside`]. It forks behind the gate only from a signal
/// handler.
fn own() -> usize {
    usize::from(is_inside())
}

fn wait_until(at_most: Duration, condition: impl Fn() -> bool) {
    let end = Instant::now() + at_most;
    while !condition() && Instant::now() < end {
        thread::sleep(NAP);
    }
}
