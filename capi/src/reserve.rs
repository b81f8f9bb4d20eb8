//! Writes into the place that the value will have.

use std::ffi::c_void;
use std::ptr;

use engine::OwnedReservation;

use crate::cache::Cache;
use crate::call::{Status, call};
use crate::fork::Origin;
use crate::many::options_of;
use crate::pointer::{Out, bytes, is_null, object};
use crate::ttl::ttl_of;
use crate::write::status_of;

/// A prepared write that waits for its value. haypile_reserve() makes it; haypile_commit()
/// or haypile_cancel() ends it, in any thread, before the cache is closed.
pub struct Reservation {
    reserved: OwnedReservation,
    origin: Origin,
}

/// Any thread may commit or drop a write that another thread has prepared.
const _: fn() = || {
    fn moves_between_threads<T: Send>() {}
    moves_between_threads::<OwnedReservation>();
};

/// Prepares a write of exactly `value_bytes`, so that a program can produce the value where it will
/// be kept. The caller writes all bytes of `out_buffer`, which are unspecified at first, and then
/// calls haypile_commit(). `mode` is one of HAYPILE_MODE_SET, HAYPILE_MODE_ADD, HAYPILE_MODE_REPLACE
/// and HAYPILE_MODE_CAS, and `version` is for the last of these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_reserve(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    value_bytes: usize,
    ttl_ms: i64,
    mode: i32,
    version: u64,
    out_reservation: *mut *mut Reservation,
    out_buffer: *mut *mut c_void,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, buffer) = unsafe {
            (
                Out::new("out_reservation", out_reservation, ptr::null_mut()),
                Out::new("out_buffer", out_buffer, ptr::null_mut()),
            )
        };
        let (out, out_buffer) = (out?, buffer?);
        // SAFETY: what the header says of pointers.
        let (cache, key) = unsafe { (object("cache", cache)?, bytes("key", key, key_bytes)?) };
        let options = options_of(mode, version)?.with_ttl(ttl_of(ttl_ms)?);
        let reserved = cache.enter()?.reserve_owned(key, value_bytes, options)?;
        let mut reservation = Box::new(Reservation { reserved, origin: cache.origin });
        out_buffer.set(reservation.reserved.buffer().as_mut_ptr().cast());
        out.set(Box::into_raw(reservation));
        Ok(Status::HaypileOk)
    })
}

/// Makes the entry visible if the condition of the write holds now, and starts its TTL. It frees the
/// reservation in every case, and nobody may use its buffer any more. HAYPILE_NOT_STORED if the
/// condition does not hold; HAYPILE_MISS as from haypile_cas().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_commit(reservation: *mut Reservation) -> Status {
    call(|| {
        if reservation.is_null() {
            return Err(is_null("reservation"));
        }
        // SAFETY: it came out of a box in `haypile_reserve`, and the header says that it is ended
        // once.
        let reservation = unsafe { Box::from_raw(reservation) };
        let _inside = match reservation.origin.enter() {
            Ok(inside) => inside,
            Err(failure) => {
                reservation.origin.free(reservation);
                return Err(failure);
            }
        };
        let options = reservation.reserved.options();
        Ok(status_of(reservation.reserved.commit()?, options))
    })
}

/// Drops a reservation without writing. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_cancel(reservation: *mut Reservation) {
    if !reservation.is_null() {
        // SAFETY: it came out of a box in `haypile_reserve`, and the header says that it is ended
        // once.
        let reservation = unsafe { Box::from_raw(reservation) };
        reservation.origin.free(reservation);
    }
}
