//! Writing and deleting entries.

use std::ffi::c_void;

use engine::{SetOptions, WriteMode, Written};

use crate::cache::Cache;
use crate::call::{Status, call};
use crate::pointer::{bytes, object};
use crate::ttl::ttl_of;

/// Writes a value, whether or not the key has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_set(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: i64,
) -> Status {
    // SAFETY: what the header says of pointers.
    unsafe { write(cache, (key, key_bytes), (value, value_bytes), SetOptions::set(), ttl_ms) }
}

/// Writes a value if the key has none. HAYPILE_NOT_STORED if it has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_add(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: i64,
) -> Status {
    // SAFETY: what the header says of pointers.
    unsafe { write(cache, (key, key_bytes), (value, value_bytes), SetOptions::add(), ttl_ms) }
}

/// Writes a value if the key has one. HAYPILE_NOT_STORED if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_replace(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: i64,
) -> Status {
    // SAFETY: what the header says of pointers.
    unsafe { write(cache, (key, key_bytes), (value, value_bytes), SetOptions::replace(), ttl_ms) }
}

/// Writes a value under a condition.
///
/// # Safety
///
/// The pointers satisfy the rules of the header.
pub(crate) unsafe fn write(
    cache: *const Cache,
    key: (*const c_void, usize),
    value: (*const c_void, usize),
    options: SetOptions,
    ttl_ms: i64,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let (cache, key, value) = unsafe {
            (
                object("cache", cache)?,
                bytes("key", key.0, key.1)?,
                bytes("value", value.0, value.1)?,
            )
        };
        let options = options.with_ttl(ttl_of(ttl_ms)?);
        Ok(status_of(cache.enter()?.write(key, value, options)?, options))
    })
}

/// Returns the status of a write under these options.
pub(crate) fn status_of(written: Written, options: SetOptions) -> Status {
    match (written, options.mode) {
        (Written::Stored, _) => Status::HaypileOk,
        (Written::Absent, WriteMode::Cas(_)) => Status::HaypileMiss,
        _ => Status::HaypileNotStored,
    }
}

/// Deletes an entry. HAYPILE_MISS if there was none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_delete(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        let deleted = cache.enter()?.delete(key)?;
        Ok(if deleted { Status::HaypileOk } else { Status::HaypileMiss })
    })
}

/// Sets a new TTL for an entry, counted from now. HAYPILE_MISS if the key has no entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_touch(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    ttl_ms: i64,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        let touched = cache.enter()?.touch(key, ttl_of(ttl_ms)?)?;
        Ok(if touched { Status::HaypileOk } else { Status::HaypileMiss })
    })
}
