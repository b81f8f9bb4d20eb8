//! Small numbers for the threads of this process, over which owners and counts are spread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of thread numbers, from 0, that each belong to one living thread of this process; all
/// further threads have the number 1,024.
pub(in crate::file) const NUMBERS: usize = 1024;
/// The number of threads beyond these, and of one that is ending: no owner is theirs alone.
const NONE_OF_ITS_OWN: usize = NUMBERS;

/// A bit for each number that a thread has. In a forked child, those of the parent's threads stay.
static TAKEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];

/// Gives the number back when the thread ends, for the next one that begins.
struct Number(usize);

impl Number {
    fn take() -> Self {
        for (index, word) in TAKEN.iter().enumerate() {
            let mut taken = word.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let bit = taken.trailing_ones();
                let before = word.fetch_or(1 << bit, Ordering::AcqRel);
                if before & 1 << bit == 0 {
                    return Self(index * 64 + bit as usize);
                }
                taken = before | 1 << bit;
            }
        }
        Self(NONE_OF_ITS_OWN)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // The destructors that follow run as in a thread without a number of its own.
        CACHED.set(NONE_OF_ITS_OWN);
        if let Some(word) = TAKEN.get(self.0 / 64) {
            word.fetch_and(!(1 << (self.0 % 64)), Ordering::AcqRel);
        }
    }
}

/// Above every number.
const UNKNOWN: usize = usize::MAX;

thread_local! {
    /// Without a destructor, so that reading it costs a load.
    static CACHED: Cell<usize> = const { Cell::new(UNKNOWN) };
    static OWNED: Number = Number::take();
}

/// Returns the number of the calling thread among those of this process. Of the threads of this
/// process that live at the same time, no two have the same number below 1,024.
#[inline]
pub(in crate::file) fn number() -> usize {
    let number = CACHED.get();
    if number == UNKNOWN { take() } else { number }
}

/// Returns the number of this thread if it already has one below [`NUMBERS`]; otherwise `NUMBERS` or more.
#[inline]
pub(in crate::file) fn known_number() -> usize {
    CACHED.get()
}

#[cold]
fn take() -> usize {
    let number = OWNED.try_with(|number| number.0).unwrap_or(NONE_OF_ITS_OWN);
    CACHED.set(number);
    number
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn living_threads_have_numbers_of_their_own_and_later_ones_get_them_again() {
        let barrier = Barrier::new(20);
        let together = || {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..20)
                    .map(|_| {
                        scope.spawn(|| {
                            let own = number();
                            barrier.wait();
                            assert_eq!(own, number());
                            own
                        })
                    })
                    .collect();
                threads.into_iter().map(|it| it.join().expect("no panic")).collect::<HashSet<_>>()
            })
        };
        // Other tests have threads at the same time.
        for _ in 0..200 {
            let numbers = together();
            assert_eq!(numbers.len(), 20);
            assert!(numbers.into_iter().all(|number| number < 600));
        }
    }
}
