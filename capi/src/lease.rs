//! Leases: a write under one is refused if its key has changed since it was granted.

use std::ffi::c_void;

use engine::SetOptions;

use crate::cache::Cache;
use crate::call::{Status, call};
use crate::pointer::{Out, bytes, object};
use crate::write::write;

/// A lease: the right to store a value, until its key changes. Its bytes may be copied, and used by another process
/// that shares the cache.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Lease {
    /// The encoded lease; only the cache can interpret it.
    pub bytes: [u8; 32],
}

/// Grants a lease on a key, for haypile_set_leased(). Take it after a miss, before you ask elsewhere for the value:
///
///     haypile_lease lease;
///     if (haypile_get(cache, "user:7", 6, &value, &value_bytes) == HAYPILE_MISS) {
///         haypile_get_lease(cache, "user:7", 6, &lease);
///         ask_the_data_base(name, &name_bytes);
///         haypile_set_leased(cache, "user:7", 6, name, name_bytes, HAYPILE_TTL_OF_CACHE, &lease);
///     }
///
/// A lease changes nothing and needs not be given back. haypile_get_or_compute() takes leases by itself.
/// HAYPILE_ERROR_UNSUPPORTED if the cache cannot tell whether a key has changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_lease(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    out_lease: *mut Lease,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let out = unsafe { Out::new("out_lease", out_lease, Lease { bytes: [0; 32] }) }?;
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        out.set(Lease { bytes: cache.enter()?.lease(key)?.to_bytes() });
        Ok(Status::HaypileOk)
    })
}

/// Writes a value under a lease. HAYPILE_NOT_STORED if anybody has deleted or written the key since the lease was
/// granted, in any process, or may have; nothing is written then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_set_leased(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: i64,
    lease: *const Lease,
) -> Status {
    // SAFETY: what the header says of pointers.
    let lease = match unsafe { object("lease", lease) } {
        Ok(lease) => engine::Lease::from_bytes(lease.bytes),
        Err(error) => return call(|| Err(error)),
    };
    let options = SetOptions::leased(lease);
    // SAFETY: what the header says of pointers.
    unsafe { write(cache, (key, key_bytes), (value, value_bytes), options, ttl_ms) }
}
