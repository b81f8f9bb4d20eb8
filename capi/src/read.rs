//! Reading values.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::pointer::{Out, bytes, is_null, object};

/// The size of the largest buffer that a thread keeps for its next read, in bytes.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Returns the value of a key, in memory that the caller frees with haypile_free(). HAYPILE_MISS if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    out_value: *mut *mut c_void,
    out_value_bytes: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, cache, key) = unsafe {
            (
                OutValue::new(out_value, out_value_bytes)?,
                object("cache", cache)?,
                bytes("key", key, key_bytes)?,
            )
        };
        with_buffer(|buffer| match cache.enter()?.store().get_into(key, buffer)? {
            Some(_) => out.set(buffer),
            None => Ok(Status::HaypileMiss),
        })
    })
}

/// Copies the value of a key into a buffer of `buffer_bytes`, and returns its length. HAYPILE_MISS if there is none;
/// HAYPILE_TOO_SMALL, with the length, if it does not fit. The value may have changed by the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_into(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    buffer: *mut c_void,
    buffer_bytes: usize,
    out_value_bytes: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out_bytes, cache, key) = unsafe {
            (
                Out::new("out_value_bytes", out_value_bytes, 0)?,
                object("cache", cache)?,
                bytes("key", key, key_bytes)?,
            )
        };
        let to = match NonNull::new(buffer.cast::<u8>()) {
            None if buffer_bytes > 0 => return Err(is_null("buffer")),
            to => to.unwrap_or(NonNull::dangling()),
        };
        with_buffer(|value| {
            if cache.enter()?.store().get_into(key, value)?.is_none() {
                return Ok(Status::HaypileMiss);
            }
            out_bytes.set(value.len());
            if value.len() > buffer_bytes {
                return Ok(Status::HaypileTooSmall);
            }
            // SAFETY: it fits, and is the buffer of a thread, which C does not have.
            unsafe { ptr::copy_nonoverlapping(value.as_ptr(), to.as_ptr(), value.len()) };
            Ok(Status::HaypileOk)
        })
    })
}

/// Returns whether there is an entry: HAYPILE_OK or HAYPILE_MISS. Neither the policy nor the
/// statistics count this as a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_contains(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        let found = cache.enter()?.contains(key)?;
        Ok(if found { Status::HaypileOk } else { Status::HaypileMiss })
    })
}

/// Frees a value that a function of this library returned. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_free(value: *mut c_void) {
    // SAFETY: the header says that it came from a function of ours, and those allocate with malloc.
    unsafe { libc::free(value) }
}

/// The pointers to which a function writes a value that C frees.
pub(crate) struct OutValue {
    value: Out<*mut c_void>,
    bytes: Out<usize>,
}

impl OutValue {
    /// # Safety
    ///
    /// That of [`Out::new`] for both.
    pub(crate) unsafe fn new(
        out_value: *mut *mut c_void,
        out_value_bytes: *mut usize,
    ) -> Result<Self, Failure> {
        // Both are written, also where one of them is null.
        // SAFETY: the caller's promise.
        let (value, bytes) = unsafe {
            (
                Out::new("out_value", out_value, ptr::null_mut()),
                Out::new("out_value_bytes", out_value_bytes, 0),
            )
        };
        Ok(Self { value: value?, bytes: bytes? })
    }

    /// Writes a copy of `value`, which C frees.
    pub(crate) fn set(&self, value: &[u8]) -> Result<Status, Failure> {
        // SAFETY: any size may be asked for; one byte at least, for null stands for no value.
        let copy = unsafe { libc::malloc(value.len().max(1)) };
        if copy.is_null() {
            return Err(Failure::OutOfMemory(value.len()));
        }
        // SAFETY: it is as long as the value, and new.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), copy.cast(), value.len()) };
        self.value.set(copy);
        self.bytes.set(value.len());
        Ok(Status::HaypileOk)
    }
}

/// Calls `read` with a buffer that the thread keeps, so that a read allocates at most its result.
pub(crate) fn with_buffer<R>(read: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    // A thread that is ending has none any more.
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    let result = read(&mut buffer);
    if buffer.capacity() <= KEPT_BYTES {
        let _ = BUFFER.try_with(|kept| kept.set(buffer));
    }
    result
}
