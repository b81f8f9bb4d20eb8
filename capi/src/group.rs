//! Writing entries into groups, and invalidating all entries of a group.

use std::ffi::c_void;

use engine::SetOptions;

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::compute::{Compute, Wanted, answer};
use crate::lease::Lease;
use crate::pointer::{array, bytes, object};
use crate::ttl::ttl_of;
use crate::write::status_of;

/// The name of a group: 1 to 250 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Group {
    /// The bytes of the name of the group.
    pub name: *const c_void,
    /// The length of the name in bytes.
    pub name_bytes: usize,
}

/// Writes a value as haypile_set() does, into `group_count` groups, at most 64. haypile_invalidate() then makes all
/// entries of a group a miss:
///
///     haypile_group groups[] = {{"user:7", 6}, {"pages", 5}};
///     haypile_set_in_groups(cache, "page:/ann", 9, page, page_bytes, HAYPILE_TTL_OF_CACHE, groups, 2, &lease);
///     haypile_invalidate(cache, "user:7", 6);
///
/// `lease` is NULL, or a lease on the key: then HAYPILE_NOT_STORED if the key has changed since it was granted, or one
/// of these groups was invalidated. Later haypile_touch(), haypile_incr() and haypile_decr() keep the groups; any
/// other write of the key has those that it names, or none. HAYPILE_ERROR_UNSUPPORTED if the cache has no groups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_set_in_groups(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: i64,
    groups: *const Group,
    group_count: usize,
    lease: *const Lease,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (cache, key, value, names) = unsafe {
            (
                object("cache", cache)?,
                bytes("key", key, key_bytes)?,
                bytes("value", value, value_bytes)?,
                names(groups, group_count)?,
            )
        };
        let options = if lease.is_null() {
            SetOptions::set()
        } else {
            // SAFETY: what the header says of pointers.
            let lease = unsafe { object("lease", lease) }?;
            SetOptions::leased(engine::Lease::from_bytes(lease.bytes))
        };
        let options = options.with_ttl(ttl_of(ttl_ms)?);
        let written = cache.enter()?.in_groups(names)?.write(key, value, options)?;
        Ok(status_of(written, options))
    })
}

/// Returns the value of a key, or computes it and stores it in groups, as haypile_get_or_compute() does. A value
/// whose computation began before one of the groups was invalidated is not stored; later callers do not wait for it,
/// but compute. In a cache without groups, such as a server, each call computes and stores nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_or_compute_in_groups(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    ttl_ms: i64,
    groups: *const Group,
    group_count: usize,
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
        // SAFETY: as above.
        let names = unsafe { names(groups, group_count)? };
        let cache = cache.enter()?.in_groups(names)?;
        answer(&out, cache.get_or_try_compute(key, ttl_of(ttl_ms)?, || computation.run()))
    })
}

/// Returns the names of groups.
///
/// # Safety
///
/// The pointers satisfy the rules of the header.
pub(crate) unsafe fn names<'a>(
    groups: *const Group,
    count: usize,
) -> Result<Vec<&'a [u8]>, Failure> {
    // SAFETY: the caller's promise.
    let groups = unsafe { array("groups", groups, count)? };
    // SAFETY: as above.
    let name = |group: &Group| unsafe { bytes("name", group.name, group.name_bytes) };
    groups.iter().map(name).collect()
}

/// Makes every entry of a group a miss, for all processes that share the cache, and every value that is computed from
/// what was read before. It takes the same time for one entry as for a million.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_invalidate(
    cache: *const Cache,
    group: *const c_void,
    group_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (cache, group) =
            unsafe { (object("cache", cache)?, bytes("group", group, group_bytes)?) };
        cache.enter()?.invalidate(group)?;
        Ok(Status::HaypileOk)
    })
}
