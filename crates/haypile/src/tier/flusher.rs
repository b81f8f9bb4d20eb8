//! The thread that writes below what waits.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::levels::Levels;

/// How long a lower level that fails is left alone.
const REST: Duration = Duration::from_millis(100);

/// A thread that writes as long as the queue is not closed.
#[derive(Debug)]
pub(super) struct Flusher(JoinHandle<()>);

impl Flusher {
    /// Starts one. Where there can be no more threads, the queue is closed, and nothing waits.
    pub(super) fn start(levels: &Arc<Levels>) -> Option<Self> {
        let queue = levels.queue()?;
        let writer = Arc::clone(levels);
        let thread = thread::Builder::new()
            .name("haypile-write".to_owned())
            .spawn(move || write_all(&writer));
        match thread {
            Ok(thread) => Some(Self(thread)),
            Err(error) => {
                log::warn!("no thread can be started, so that writes are not deferred: {error}");
                queue.close();
                None
            }
        }
    }

    /// Waits for its end, which comes when the queue is closed.
    pub(super) fn join(self) {
        if self.0.join().is_err() {
            log::error!("the thread that writes to the lower level panicked");
        }
    }
}

fn write_all(levels: &Levels) {
    let Some(queue) = levels.queue() else { return };
    while let Some(key) = queue.wait() {
        // What is refused for good does not wait any more.
        if levels.write_pending(&key).is_err() && queue.get(&key).is_some() {
            queue.sleep(REST);
        }
    }
}
