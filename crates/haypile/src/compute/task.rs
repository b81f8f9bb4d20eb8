//! Computing on a miss in a task, on any executor.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_timer::Delay;

use super::{ComputeError, PendingCompute, Polled};
use crate::cache::Cache;
use crate::error::Result;
use crate::ttl::Ttl;

/// Computing on a miss, for tasks.
impl Cache {
    /// Returns the value of `key` like [`get_or_compute`](Self::get_or_compute), in a task: of all tasks, threads and
    /// processes one computes, and the others wait without blocking a thread. A task that is dropped while it computes
    /// has failed: one of those that wait takes over.
    ///
    /// Any executor runs it. A thread of the crate `futures-timer` wakes tasks whose wait is over. The operations on the
    /// store itself are synchronous: microseconds for `memory:` and `file:`. For a store on a server, which answers after
    /// a network's time, call the blocking method where your executor has threads for that.
    ///
    /// Tasks that ask for each other's keys wait up to [`compute_wait`](crate::Store::compute_wait), and so does one
    /// that asks for the key that it computes: nothing here knows tasks.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use haypile::Cache;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cache = Cache::open("memory:size=1MiB")?;
    /// let page = async {
    ///     cache.get_or_compute_async("page:/", Duration::from_secs(30), async || b"<html>".to_vec()).await
    /// };
    /// # let page = pollster::block_on(page)?;
    /// # assert_eq!(page, b"<html>");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute), but for
    /// [`Error::RecursiveCompute`](crate::Error::RecursiveCompute).
    pub async fn get_or_compute_async<F: Future<Output = Vec<u8>>>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
        compute: impl FnOnce() -> F,
    ) -> Result<Vec<u8>> {
        let compute = async || Ok(compute().await);
        let value = self.get_or_try_compute_async(key, ttl, compute).await;
        value.map_err(super::infallible)
    }

    /// Returns the value of `key` like [`get_or_compute_async`](Self::get_or_compute_async), with a computation that
    /// can fail; see [`get_or_try_compute`](Self::get_or_try_compute).
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute_async`](Self::get_or_compute_async), and the computation's own.
    pub async fn get_or_try_compute_async<E, F: Future<Output = Result<Vec<u8>, E>>>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
        compute: impl FnOnce() -> F,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        let mut pending = PendingCompute::begin(self, key, ttl)?;
        loop {
            pending = match pending.poll()? {
                Polled::Value(value) => return Ok(value),
                Polled::Compute(computation) => {
                    let value = compute().await.map_err(ComputeError::Compute)?;
                    computation.store(&value);
                    return Ok(value);
                }
                Polled::Wait(pending, at_most) => {
                    Wait::new(&pending, at_most).await;
                    *pending
                }
            }
        }
    }
}

/// Ready when a call has to be polled again.
struct Wait<'a> {
    pending: &'a PendingCompute,
    end: Delay,
}

impl<'a> Wait<'a> {
    fn new(pending: &'a PendingCompute, at_most: Duration) -> Self {
        Self { pending, end: Delay::new(at_most) }
    }
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.pending.wake_at_end(context.waker()) {
            return Poll::Ready(());
        }
        Pin::new(&mut self.end).poll(context)
    }
}
