//! Computing with early refresh, stale values and a limit on waiting.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use engine::{ForkGate, Freshness};

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::compute::{Compute, NotComputed, Wanted, answer};
use crate::fork::Origin;
use crate::pointer::{Growing, is_null, structure};
use crate::ttl::ttl_of;

/// The times for which a computed value is fresh, and stale but served, in milliseconds. Set a structure to zeros,
/// and then the fields that are needed; `fresh_ms` always is. Later versions append fields.
///
///     stored      next one computed     may be served      gone
///       |----- fresh ----[--- early ---]|------ stale ------|
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Times {
    /// The time for which a value is fresh. HAYPILE_TTL_OF_CACHE and HAYPILE_TTL_NEVER are allowed if
    /// `early_ms` and `stale_ms` are zero.
    pub fresh_ms: i64,
    /// The time before the end of `fresh_ms` from which on one caller computes the next value, while
    /// the others get the current one.
    pub early_ms: i64,
    /// The additional time for which the value is served while the next one is computed, or cannot
    /// be: the entry lives for `fresh_ms` and `stale_ms` together.
    pub stale_ms: i64,
    /// The longest time to wait for another caller that computes, which then goes on alone. It is
    /// checked about every 50 ms. Zero leaves it at the bound of the URL, `compute_wait=`, after which
    /// one of the waiting callers computes itself.
    pub wait_ms: i64,
}

impl Growing for Times {
    const FIRST_BYTES: usize = 32;
}

/// A job: the work of computing a value in another thread. haypile_get_or_refresh_in() makes it;
/// haypile_run_job() or haypile_drop_job() ends it, in any thread, once.
pub struct Job {
    job: Box<dyn FnOnce() + Send>,
    origin: Origin,
}

/// A function of the program that takes a job: it passes the job to another thread, which runs it, or drops it.
/// Neither longjmp() nor an exception may leave this function.
pub type Executor = Option<unsafe extern "C" fn(context: *mut c_void, job: *mut Job)>;

/// Does the same as haypile_get_or_compute(), with a value that is refreshed while it is served: when it is due,
/// according to `freshness`, one caller computes the next value and gets it, and the others get the current value at
/// once. If the computation fails, its caller gets the current value as long as there is one, and a later call tries
/// again. The next value replaces only the one that was served: if the entry was written in the meantime, it stays.
///
/// Callers wait only while the key has no value. HAYPILE_PENDING if one has waited for `wait_ms`; it has
/// no value then, and nothing has changed. `freshness_bytes` is sizeof(haypile_freshness).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_or_refresh(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    freshness: *const Times,
    freshness_bytes: usize,
    compute: Compute,
    context: *mut c_void,
    out_value: *mut *mut c_void,
    out_value_bytes: *mut usize,
) -> Status {
    call(|| {
        let key = (key, key_bytes);
        // SAFETY: what the header says of pointers.
        let Wanted { out, cache, key, computation } =
            unsafe { Wanted::new(cache, key, (compute, context), (out_value, out_value_bytes))? };
        // SAFETY: as above; any bytes make these times.
        let times =
            unsafe { structure("freshness", freshness, freshness_bytes, Times::default())? };
        let (compute, poll) = (|| computation.run(), times.poll()?);
        let computed = if let Some(freshness) = times.refreshes()? {
            cache.enter()?.get_or_try_refresh_until(key, freshness, compute, poll)
        } else {
            let ttl = ttl_of(times.fresh_ms)?;
            cache.enter()?.get_or_try_compute_until(key, ttl, compute, poll)
        };
        answer(&out, computed)
    })
}

/// Does the same as haypile_get_or_refresh(), but no caller computes while there is a value:
/// `executor` gets a job with its `executor_context`, at most once and before this function returns,
/// and hands it to a thread of the program. If the key has no value, the caller computes it itself.
///
/// `compute` and `context` have to stay usable in any thread until the job has ended: until
/// haypile_run_job() has returned or haypile_drop_job() was called. While a job has not ended, no
/// other is made for its key. A job does nothing if its key was written in the meantime. If its
/// computation fails, the current value is served until it is gone. `fresh_ms` is more than zero here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_or_refresh_in(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    freshness: *const Times,
    freshness_bytes: usize,
    executor: Executor,
    executor_context: *mut c_void,
    compute: Compute,
    context: *mut c_void,
    out_value: *mut *mut c_void,
    out_value_bytes: *mut usize,
) -> Status {
    call(|| {
        let key = (key, key_bytes);
        // SAFETY: what the header says of pointers.
        let Wanted { out, cache, key, computation } =
            unsafe { Wanted::new(cache, key, (compute, context), (out_value, out_value_bytes))? };
        // SAFETY: as above; any bytes make these times.
        let times =
            unsafe { structure("freshness", freshness, freshness_bytes, Times::default())? };
        let executor = executor.ok_or_else(|| is_null("executor"))?;
        let poll = times.poll()?;
        let Some(freshness) = times.refreshes()? else {
            return Err(Failure::Argument(format!(
                "a fresh_ms of {} is refused: here it is more than zero",
                times.fresh_ms
            )));
        };
        let hand_over = |job: Box<dyn FnOnce() + Send>| {
            let job = Box::into_raw(Box::new(Job { job, origin: cache.origin }));
            // SAFETY: the caller's function with the caller's context.
            ForkGate::outside(|| unsafe { executor(executor_context, job) });
        };
        let computed = cache.enter()?.get_or_try_refresh_in_until(
            key,
            freshness,
            hand_over,
            || computation.run(),
            poll,
        );
        answer(&out, computed)
    })
}

/// Computes the value of a job and stores it, in the calling thread, and frees the job. It returns
/// HAYPILE_OK even if the computation fails, which haypile_get_stats() counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_run_job(job: *mut Job) -> Status {
    call(|| {
        if job.is_null() {
            return Err(is_null("job"));
        }
        // SAFETY: it came out of a box in `haypile_get_or_refresh_in`, and the header says that it is
        // ended once.
        let job = unsafe { Box::from_raw(job) };
        let origin = job.origin;
        let inside = match origin.enter() {
            Ok(inside) => inside,
            Err(failure) => {
                origin.free(job);
                return Err(failure);
            }
        };
        (job.job)();
        drop(inside);
        Ok(Status::HaypileOk)
    })
}

/// Frees a job without running it; the next call starts the refresh again. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_drop_job(job: *mut Job) {
    if !job.is_null() {
        // SAFETY: it came out of a box in `haypile_get_or_refresh_in`, and the header says that it is
        // ended once.
        let job = unsafe { Box::from_raw(job) };
        job.origin.free(job);
    }
}

impl Times {
    /// Returns the freshness that these times state, or `None` if a value only has a special TTL (HAYPILE_TTL_...).
    fn refreshes(&self) -> Result<Option<Freshness>, Failure> {
        let (early, stale) =
            (milliseconds("early_ms", self.early_ms)?, milliseconds("stale_ms", self.stale_ms)?);
        if self.fresh_ms < 0 {
            ttl_of(self.fresh_ms)?;
            if early.is_zero() && stale.is_zero() {
                return Ok(None);
            }
            return Err(Failure::Argument(
                "early_ms and stale_ms need a fresh_ms that is a number of milliseconds".to_owned(),
            ));
        }
        let fresh = milliseconds("fresh_ms", self.fresh_ms)?;
        Ok(Some(Freshness::new(fresh).with_early(early).with_stale(stale)))
    }

    /// Returns the function that ends a wait for another caller when `wait_ms` is over.
    fn poll(&self) -> Result<impl FnMut() -> Result<(), NotComputed>, Failure> {
        let limit = milliseconds("wait_ms", self.wait_ms)?;
        let begin = Instant::now();
        Ok(move || {
            let is_over = !limit.is_zero() && begin.elapsed() >= limit;
            if is_over { Err(NotComputed::Pending) } else { Ok(()) }
        })
    }
}

fn milliseconds(name: &str, number: i64) -> Result<Duration, Failure> {
    u64::try_from(number)
        .map(Duration::from_millis)
        .map_err(|_| Failure::Argument(format!("{name} is {number} ms, and cannot be negative")))
}
