//! The thread that writes pending values to the lower level.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::levels::Levels;

/// The pause after a failure of the lower level.
const REST: Duration = Duration::from_millis(100);

/// A thread that writes until the queue is closed.
#[derive(Debug)]
pub(super) struct Flusher(JoinHandle<()>);

impl Flusher {
    /// Starts the thread. If that fails, the queue is closed, and no writes are deferred.
    pub(super) fn start(levels: &Arc<Levels>) -> Option<Self> {
        let queue = levels.queue()?;
        let writer = Arc::clone(levels);
        let thread = thread::Builder::new()
            .name("haypile-write".to_owned())
            .spawn(move || write_all(&writer));
        match thread {
            Ok(thread) => Some(Self(thread)),
            Err(error) => {
                log::warn!("writes are not deferred, because no thread can be started: {error}");
                queue.close();
                None
            }
        }
    }

    /// Waits for the end of the thread, which comes when the queue is closed.
    pub(super) fn join(self) {
        if self.0.join().is_err() {
            log::error!("the thread that writes to the lower level panicked");
        }
    }
}

fn write_all(levels: &Levels) {
    let Some(queue) = levels.queue() else { return };
    while let Some(key) = queue.wait() {
        // A write that is permanently refused is no longer pending.
        if levels.write_pending(&key).is_err() && queue.get(&key).is_some() {
            queue.sleep(REST);
        }
    }
}
