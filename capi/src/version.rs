//! Writes and deletions under the condition that an entry is unchanged.

use std::ffi::c_void;

use engine::{Error, SetOptions, Version};

use crate::cache::Cache;
use crate::call::{Status, call};
use crate::pointer::{Out, bytes, object};
use crate::read::{OutValue, with_buffer};
use crate::write::write;

/// Returns the value of a key, in memory that the caller frees with haypile_free(), and its version for haypile_cas()
/// and haypile_delete_version(). Each write of an entry changes its version, even one of the same bytes; a version
/// means something only in the cache that returned it. HAYPILE_MISS if the key has no value;
/// HAYPILE_ERROR_UNSUPPORTED if it has one, in a cache without versions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_versioned(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    out_value: *mut *mut c_void,
    out_value_bytes: *mut usize,
    out_version: *mut u64,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, version) = unsafe {
            (OutValue::new(out_value, out_value_bytes), Out::new("out_version", out_version, 0))
        };
        let (out, out_version) = (out?, version?);
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        let Some((value, version)) = cache.enter()?.get_versioned(key)? else {
            return Ok(Status::HaypileMiss);
        };
        let status = out.set(&value)?;
        out_version.set(version.raw());
        Ok(status)
    })
}

/// Does the same as haypile_get_versioned(), but copies nothing if the entry still has a version that an earlier call
/// has returned: HAYPILE_UNCHANGED. A program that keeps what it has made of a value so learns that it is still
/// true, at the cost of a lookup, however long the value is:
///
///     status = haypile_get_if_changed(cache, "user:7", 6, version, &value, &value_bytes, &version);
///     if (status == HAYPILE_OK) {
///         user = decode(value, value_bytes);
///         haypile_free(value);
///     } else if (status != HAYPILE_UNCHANGED) {
///         user = NULL;
///     }
///
/// It counts as a hit. `version` may be `*out_version`, which is zero without an entry; zero is the version of none. A
/// server that restarts may give a version again: do not keep one of a server for long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_if_changed(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    version: u64,
    out_value: *mut *mut c_void,
    out_value_bytes: *mut usize,
    out_version: *mut u64,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, out_version) = unsafe {
            (OutValue::new(out_value, out_value_bytes), Out::new("out_version", out_version, 0))
        };
        let (out, out_version) = (out?, out_version?);
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        let known = Version::from_raw(version);
        with_buffer(|buffer| {
            let cache = cache.enter()?;
            let store = cache.store();
            let Some(hit) = store.get_if_changed_into(key, known, buffer)? else {
                return Ok(Status::HaypileMiss);
            };
            let Some(found) = hit.version else {
                let (operation, store) = ("versions", store.describe());
                return Err(Error::Unsupported { operation, store }.into());
            };
            let is_unchanged = found == known;
            let status = if is_unchanged { Status::HaypileUnchanged } else { out.set(buffer)? };
            out_version.set(found.raw());
            Ok(status)
        })
    })
}

/// Writes a value if the entry still has this version (compare and swap). HAYPILE_NOT_STORED if it
/// has another, because the entry was written since; HAYPILE_MISS if the key has no entry any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_cas(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: i64,
    version: u64,
) -> Status {
    let options = SetOptions::cas(Version::from_raw(version));
    // SAFETY: what the header says of pointers.
    unsafe { write(cache, (key, key_bytes), (value, value_bytes), options, ttl_ms) }
}

/// Deletes an entry if it still has this version. HAYPILE_NOT_STORED if it has another, or if there is
/// none; HAYPILE_ERROR_UNSUPPORTED if the cache cannot compare and delete at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_delete_version(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    version: u64,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        let deleted = cache.enter()?.delete_version(key, Version::from_raw(version))?;
        Ok(if deleted { Status::HaypileOk } else { Status::HaypileNotStored })
    })
}

/// Deletes an entry if its value is `expected`, in one step: a lock that is an entry is released only by
/// its holder. HAYPILE_NOT_STORED if it has another value, or if there is none; HAYPILE_ERROR_UNSUPPORTED
/// if the cache cannot compare and delete at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_compare_and_delete(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    expected: *const c_void,
    expected_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (cache, key, expected) = unsafe {
            (
                object("cache", cache)?,
                bytes("key", key, key_bytes)?,
                bytes("expected", expected, expected_bytes)?,
            )
        };
        let deleted = cache.enter()?.compare_and_delete(key, expected)?;
        Ok(if deleted { Status::HaypileOk } else { Status::HaypileNotStored })
    })
}
