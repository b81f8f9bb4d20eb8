//! Computing what the cache does not have.

use std::ffi::{c_int, c_void};

use engine::{ComputeError, ForkGate};

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::pointer::{bytes, is_null, object};
use crate::read::OutValue;
use crate::ttl::ttl_of;

/// The buffer for the value of a computation, which appends to it with haypile_output_append().
pub struct Output(Vec<u8>);

/// A function of the program that computes a value: it appends the bytes to `output` and returns zero, or any other
/// number if it fails. It has to return: neither longjmp() nor an exception may leave it.
pub type Compute = Option<unsafe extern "C" fn(context: *mut c_void, output: *mut Output) -> c_int>;

/// Returns the value of a key; if there is none, calls `compute` with `context` and stores its
/// value for `ttl_ms`. The caller frees the value with haypile_free().
///
/// However many threads ask for one key, one computes, and the others wait for its value; processes
/// that share the cache do so too. If the computation fails, one of the waiting callers takes over,
/// and the others wait for that one. HAYPILE_ERROR_COMPUTES_ITSELF if the computation of a key asks
/// for that key. The function returns a value even if the cache refuses to store it.
///
/// A caller that has waited for `compute_wait=` of the URL in total, 30 seconds by default, computes itself. If one
/// computation takes that long, one of the waiting callers takes over, and the others wait for that one as long again
/// at most. The bound is one second if the computing process is stopped or frozen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_or_compute(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    ttl_ms: i64,
    compute: Compute,
    context: *mut c_void,
    out_value: *mut *mut c_void,
    out_value_bytes: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let Wanted { out, cache, key, computation } = unsafe {
            Wanted::new(cache, (key, key_bytes), (compute, context), (out_value, out_value_bytes))?
        };
        let computed =
            cache.enter()?.get_or_try_compute(key, ttl_of(ttl_ms)?, || computation.run());
        answer(&out, computed)
    })
}

/// The arguments that all functions with a computation share.
pub(crate) struct Wanted<'a> {
    pub(crate) out: OutValue,
    pub(crate) cache: &'a Cache,
    pub(crate) key: &'a [u8],
    pub(crate) computation: Computation,
}

impl Wanted<'_> {
    /// # Safety
    ///
    /// The pointers satisfy the rules of the header.
    pub(crate) unsafe fn new(
        cache: *const Cache,
        key: (*const c_void, usize),
        computation: (Compute, *mut c_void),
        out: (*mut *mut c_void, *mut usize),
    ) -> Result<Self, Failure> {
        // SAFETY: the caller's promise.
        unsafe {
            Ok(Self {
                out: OutValue::new(out.0, out.1)?,
                cache: object("cache", cache)?,
                key: bytes("key", key.0, key.1)?,
                computation: Computation::new(computation.0, computation.1)?,
            })
        }
    }
}

/// The program's function that computes a value, and its context.
pub(crate) struct Computation {
    compute: unsafe extern "C" fn(context: *mut c_void, output: *mut Output) -> c_int,
    context: *mut c_void,
}

// SAFETY: the header says that a computation that is handed to another thread can run there.
unsafe impl Send for Computation {}

impl Computation {
    /// # Safety
    ///
    /// `compute` can be called with `context` as long as this lives.
    unsafe fn new(compute: Compute, context: *mut c_void) -> Result<Self, Failure> {
        Ok(Self { compute: compute.ok_or_else(|| is_null("compute"))?, context })
    }

    pub(crate) fn run(self) -> Result<Vec<u8>, NotComputed> {
        let mut output = Output(Vec::new());
        // SAFETY: the promise to `new`; the output outlives the call.
        let compute = || unsafe { (self.compute)(self.context, &raw mut output) };
        match ForkGate::outside(compute) {
            0 => Ok(output.0),
            answer => Err(NotComputed::Failed(answer)),
        }
    }
}

/// The reason why a computation returned no value.
#[derive(Debug)]
pub(crate) enum NotComputed {
    /// The program's function failed, and returned this number.
    Failed(c_int),
    /// Another caller is computing the value.
    Pending,
}

/// Returns a computed value, or the error of its computation, to the C program.
pub(crate) fn answer(
    out: &OutValue,
    computed: Result<Vec<u8>, ComputeError<NotComputed>>,
) -> Result<Status, Failure> {
    match computed {
        Ok(value) => out.set(&value),
        Err(ComputeError::Compute(NotComputed::Failed(answer))) => Err(Failure::Compute(answer)),
        Err(ComputeError::Compute(NotComputed::Pending)) => Ok(Status::HaypilePending),
        Err(ComputeError::Cache(error)) => Err(error.into()),
        Err(_) => Err(Failure::Argument("the value could not be computed".to_owned())),
    }
}

/// Appends bytes to the value that is being computed. If this fails for lack of memory, return a
/// number other than zero from the computation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_output_append(
    output: *mut Output,
    data: *const c_void,
    data_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers; one thread computes.
        let (output, data) = unsafe {
            (output.as_mut().ok_or_else(|| is_null("output"))?, bytes("data", data, data_bytes)?)
        };
        let no_memory = |_| Failure::OutOfMemory(data.len());
        output.0.try_reserve(data.len()).map_err(no_memory)?;
        output.0.extend_from_slice(data);
        Ok(Status::HaypileOk)
    })
}
