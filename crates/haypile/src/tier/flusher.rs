//! The thread that writes pending values to the lower level.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::levels::Levels;
use super::queue::{NextWrite, WriteQueue};
use crate::fork;

/// The pause after a failure of the lower level.
const REST: Duration = Duration::from_millis(100);

/// A thread that writes queued values to the lower level of a cache until the queue is closed.
#[derive(Debug)]
pub(super) struct Flusher(JoinHandle<()>);

impl Flusher {
    /// Starts the thread that writes queued values to the lower level of a cache; returns `None` if
    /// there is no queue, or no thread can be started. Without the thread, the queue is closed, and
    /// no writes are deferred.
    pub(super) fn start(levels: &Arc<Levels>) -> Option<Self> {
        let queue = levels.queue()?;
        let writer = Arc::clone(levels);
        let thread = thread::Builder::new()
            .name("haypile-write".to_owned())
            .spawn(move || write_all(&writer));
        match thread {
            Ok(thread) => {
                queue.be_written_by(thread.thread().clone());
                // It may have found the queue empty before.
                thread.thread().unpark();
                Some(Self(thread))
            }
            Err(error) => {
                log::warn!("writes are not deferred, because no thread can be started: {error}");
                queue.close();
                None
            }
        }
    }

    /// Waits for the end of the thread that writes queued values, which ends when the queue is
    /// closed.
    pub(super) fn join(self) {
        if self.0.join().is_err() {
            log::error!("the thread that writes to the lower level panicked");
        }
    }
}

fn write_all(levels: &Levels) {
    let Some(queue) = levels.queue() else { return };
    loop {
        let inside = fork::ForkGate::enter();
        let has_failed = match queue.next() {
            NextWrite::Closed => return,
            NextWrite::Idle => {
                drop(inside);
                thread::park();
                continue;
            }
            // A write that is permanently refused is no longer pending.
            NextWrite::Key(key) => levels.write_pending(&key).is_err() && queue.get(&key).is_some(),
        };
        drop(inside);
        if has_failed {
            rest(queue);
        }
    }
}

/// Pauses after a failure, until the queue is closed.
fn rest(queue: &WriteQueue) {
    let end = Instant::now() + REST;
    let is_closed = || {
        let _inside = fork::ForkGate::enter();
        queue.is_closed()
    };
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        && !is_closed()
    {
        // A write wakes the thread early.
        thread::park_timeout(left);
    }
}
