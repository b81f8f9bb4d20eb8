//! Counters.

use std::ffi::c_void;

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::pointer::{Out, bytes, object};

/// Adds to a counter and returns the new number. A counter is a value of 1 to 20 decimal digits, as
/// haypile_set() writes them; beyond 2^64 - 1 it wraps around. Its TTL stays. The call creates no
/// entry: HAYPILE_MISS if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_incr(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    delta: u64,
    out_number: *mut u64,
) -> Status {
    let incr = |cache: &engine::Cache, key: &[u8]| cache.incr(key, delta);
    // SAFETY: what the header says of pointers.
    unsafe { count(cache, (key, key_bytes), out_number, incr) }
}

/// Subtracts from a counter, but not below zero, and returns the new number; see haypile_incr().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_decr(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    delta: u64,
    out_number: *mut u64,
) -> Status {
    let decr = |cache: &engine::Cache, key: &[u8]| cache.decr(key, delta);
    // SAFETY: what the header says of pointers.
    unsafe { count(cache, (key, key_bytes), out_number, decr) }
}

/// # Safety
///
/// The pointers satisfy the rules of the header.
unsafe fn count(
    cache: *const Cache,
    key: (*const c_void, usize),
    out_number: *mut u64,
    change: impl FnOnce(&engine::Cache, &[u8]) -> engine::Result<Option<u64>>,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, cache, key) = unsafe {
            (
                Out::new("out_number", out_number, 0)?,
                object("cache", cache)?,
                bytes("key", key.0, key.1)?,
            )
        };
        let Some(number) = change(&*cache.enter()?, key)? else {
            return Ok::<_, Failure>(Status::HaypileMiss);
        };
        out.set(number);
        Ok(Status::HaypileOk)
    })
}
