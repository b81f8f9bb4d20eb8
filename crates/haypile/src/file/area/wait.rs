//! Bounds on all waiting, in one place.
//!
//! An operation waits for another process while that one holds a lock, and begins again where others
//! change the same words concurrently. It gives up, with nothing changed, [`STOPPED_WAIT`] after it sees
//! that the process it waits for was stopped or frozen, and after [`LONGEST_WAIT`] in which it sees no
//! progress. No number of attempts ends an operation.

use std::time::Duration;

use crate::file::area::{Holder, OpError};
use crate::file::platform::ground::Ground;
use crate::mutant;

/// The longest wait for a lock in the cache file whose holder is seen to be stopped or frozen.
pub(in crate::file) const STOPPED_WAIT: Duration = Duration::from_millis(50);

/// The longest wait for a lock in the cache file whose holder seems to run, and may only lack a
/// processor.
pub(in crate::file) const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The longest wait for a lock in the cache file that other processes keep taking: the lock has no
/// queue in which the waiting process would get its turn.
pub(in crate::file) const LONGEST_CROWD: Duration = Duration::from_secs(30);

/// The smallest number of attempts to take a lock of the cache file before a wait for it can time
/// out: the waiting process may have been stopped itself.
pub(in crate::file) const LEAST_ATTEMPTS: u32 = 8;

/// The wait of one operation for a lock in the cache file, timed from the first failed attempt.
#[derive(Debug, Default)]
pub(in crate::file) struct Wait {
    began: Option<Duration>,
    attempts: u32,
}

impl Wait {
    /// Records a failed attempt to take a lock in the cache file, and pauses before the next
    /// attempt.
    ///
    /// # Errors
    ///
    /// [`OpError::Busy`] with `holder`, if the wait has lasted too long for that.
    pub(in crate::file) fn again(
        &mut self,
        ground: &impl Ground,
        holder: Holder,
    ) -> Result<(), OpError> {
        let now = ground.now();
        let waited = now.saturating_sub(*self.began.get_or_insert(now));
        let longest = match holder {
            Holder::Halted(_) => STOPPED_WAIT,
            Holder::Running => LONGEST_WAIT,
        };
        self.attempts += 1;
        let is_over = waited >= longest && self.attempts >= LEAST_ATTEMPTS;
        if is_over && !mutant::is_on("attempts-without-bound") {
            return Err(OpError::Busy(holder));
        }
        ground.pause(self.attempts);
        Ok(())
    }
}
