//! Values that are read in place.

use std::ffi::c_void;
use std::ptr;

use engine::OwnedPinned;

use crate::cache::Cache;
use crate::call::{Status, call};
use crate::fork::Origin;
use crate::hit::Hit;
use crate::pointer::{Out, OutStruct, bytes, object};

/// A value that was read and stays readable until haypile_unpin(), which any thread may call. Threads may read it
/// at once. It may outlive its cache.
pub struct Pinned {
    value: OwnedPinned,
    origin: Origin,
}

/// Any thread may release a value that another thread has pinned.
const _: fn() = || {
    fn moves_between_threads<T: Send + Sync>() {}
    moves_between_threads::<OwnedPinned>();
};

/// Returns the value of a key in place, in the memory of the cache, if possible, and otherwise a copy. The value
/// does not change until haypile_unpin(), even if its entry is overwritten, deleted or evicted; but
/// the cache cannot use its room in the meantime. A forked child must not read a value that its parent
/// has pinned. HAYPILE_MISS if the key has no value; `out_pinned` is NULL then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_pinned(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    out_pinned: *mut *mut Pinned,
    out_value: *mut *const c_void,
    out_value_bytes: *mut usize,
) -> Status {
    let get = |cache: &engine::Cache, key: &[u8]| cache.get_pinned_owned(key);
    // SAFETY: what the header says of pointers.
    unsafe { pin(cache, (key, key_bytes), out_pinned, (out_value, out_value_bytes), get) }
}

/// Returns the value of a key like haypile_get_pinned(), for a program that keeps many values for long: a `file:`
/// cache keeps short values in place as well, where haypile_get_pinned() copies them because that is faster.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_in_place(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    out_pinned: *mut *mut Pinned,
    out_value: *mut *const c_void,
    out_value_bytes: *mut usize,
) -> Status {
    let get = |cache: &engine::Cache, key: &[u8]| cache.get_in_place_owned(key);
    // SAFETY: what the header says of pointers.
    unsafe { pin(cache, (key, key_bytes), out_pinned, (out_value, out_value_bytes), get) }
}

/// Returns the properties that the entry of a pinned value had when it was read; `hit_bytes` is sizeof(haypile_hit).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_pinned_hit(
    pinned: *const Pinned,
    out_hit: *mut Hit,
    hit_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, pinned) =
            unsafe { (OutStruct::new("out_hit", out_hit, hit_bytes)?, object("pinned", pinned)?) };
        out.set(&Hit::from(pinned.value.hit()));
        Ok(Status::HaypileOk)
    })
}

/// Releases a pinned value; nobody may read its bytes any more. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_unpin(pinned: *mut Pinned) {
    if !pinned.is_null() {
        // SAFETY: it came out of a box in `pin`, and the header says that it is ended once.
        let pinned = unsafe { Box::from_raw(pinned) };
        pinned.origin.free(pinned);
    }
}

/// # Safety
///
/// The pointers satisfy the rules of the header.
unsafe fn pin(
    cache: *const Cache,
    key: (*const c_void, usize),
    out_pinned: *mut *mut Pinned,
    out_value: (*mut *const c_void, *mut usize),
    get: impl FnOnce(&engine::Cache, &[u8]) -> engine::Result<Option<OwnedPinned>>,
) -> Status {
    call(|| {
        // All are written, even if one of them is null.
        // SAFETY: the caller's promise.
        let (out_pinned, value, value_bytes) = unsafe {
            (
                Out::new("out_pinned", out_pinned, ptr::null_mut()),
                Out::new("out_value", out_value.0, ptr::null()),
                Out::new("out_value_bytes", out_value.1, 0),
            )
        };
        let (out_pinned, value, value_bytes) = (out_pinned?, value?, value_bytes?);
        // SAFETY: the caller's promise.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key.0, key.1)?) };
        let Some(found) = get(&*cache.enter()?, key)? else { return Ok(Status::HaypileMiss) };
        // Boxed before its bytes are lent, which could be inside.
        let pinned = Box::new(Pinned { value: found, origin: cache.origin });
        value.set(pinned.value.as_ptr().cast());
        value_bytes.set(pinned.value.len());
        out_pinned.set(Box::into_raw(pinned));
        Ok(Status::HaypileOk)
    })
}
