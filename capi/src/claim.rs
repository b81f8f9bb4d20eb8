//! Computing what the cache does not have, between two calls instead of below one.

use std::ffi::c_void;
use std::mem;
use std::ptr;

use engine::{Computation, PendingCompute, Polled};

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::fork::Origin;
use crate::group::{Group, names};
use crate::pointer::{Out, bytes, is_null, object};
use crate::read::OutValue;
use crate::ttl::ttl_of;

/// The right to compute the value of a key, or a wait for the caller that has this right. haypile_try_claim() makes
/// it and ends it with a value; haypile_complete() or haypile_release() ends it otherwise, in any thread, once,
/// before the cache is closed.
pub struct Claim {
    stage: Stage,
    origin: Origin,
}

enum Stage {
    Waiting(Box<PendingCompute>),
    Computing(Box<Computation>),
}

impl Claim {
    /// Returns the computation or the wait in progress; an error in a forked child, which has neither.
    fn into_stage(self: Box<Self>) -> Result<Stage, Failure> {
        if self.origin.is_inherited() {
            mem::forget(self);
            return Err(Failure::Argument("claim belongs to the parent of this process".into()));
        }
        Ok(self.stage)
    }

    fn end(self: Box<Self>) {
        if self.origin.is_inherited() {
            mem::forget(self);
        } else {
            self.origin.free(self);
        }
    }
}

/// The arguments of haypile_try_claim().
struct Wanted<'a> {
    cache: &'a Cache,
    key: &'a [u8],
    out: OutValue,
    wait: Out<i64>,
}

impl Wanted<'_> {
    /// # Safety
    ///
    /// The pointers satisfy the rules of the header.
    unsafe fn new(
        cache: *const Cache,
        key: (*const c_void, usize),
        out: (*mut *mut c_void, *mut usize),
        out_wait_ms: *mut i64,
    ) -> Result<Self, Failure> {
        // All are written, also where one of them is null.
        // SAFETY: the caller's promise.
        let (out, wait) =
            unsafe { (OutValue::new(out.0, out.1), Out::new("out_wait_ms", out_wait_ms, 0)) };
        let (out, wait) = (out?, wait?);
        // SAFETY: as above.
        unsafe {
            Ok(Self { cache: object("cache", cache)?, key: bytes("key", key.0, key.1)?, out, wait })
        }
    }
}

/// Returns the value of a key, or the right to compute it, as haypile_get_or_compute() does without calling a function
/// of the program: a caller that gets the right computes the value itself, between two calls. It is for interpreters,
/// whose code may leave by longjmp(), and for event loops.
///
/// Begin with `*claim` NULL, and pass the same `claim` to each further call:
///
///     haypile_claim *claim = NULL;
///     int64_t wait_ms;
///     while ((status = haypile_try_claim(cache, "user:7", 6, HAYPILE_TTL_OF_CACHE, &claim, &value, &value_bytes, &wait_ms))
///            == HAYPILE_PENDING)
///         wait_a_moment(wait_ms);
///     if (status == HAYPILE_MISS) {
///         value = ask_the_data_base(&value_bytes);
///         status = haypile_complete(claim, value, value_bytes, NULL, 0);
///     }
///
/// HAYPILE_OK with the value, which the caller frees with haypile_free(); `*claim` is NULL then, as after an error.
/// HAYPILE_MISS if this caller has to compute the value; nobody else of those who share the cache does until
/// haypile_complete() or haypile_release(), or the end of its process. HAYPILE_PENDING if another caller computes it:
/// call again within `out_wait_ms`, which is more than zero, with the same key; haypile_release() gives up. The waits
/// are bounded as those of haypile_get_or_compute() are; a claim that waits for itself, because its holder asks for
/// the same key, waits up to that bound.
///
/// A child of a fork that inherits a claim can only release it, which changes nothing for its parent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_try_claim(
    cache: *const Cache,
    key: *const c_void,
    key_bytes: usize,
    ttl_ms: i64,
    claim: *mut *mut Claim,
    out_value: *mut *mut c_void,
    out_value_bytes: *mut usize,
    out_wait_ms: *mut i64,
) -> Status {
    call(|| {
        if claim.is_null() {
            return Err(is_null("claim"));
        }
        // SAFETY: what the header says of pointers.
        let held = unsafe { ptr::replace(claim, ptr::null_mut()) };
        // SAFETY: it came out of a box below, and ends here or goes on in another one.
        let held = (!held.is_null()).then(|| unsafe { Box::from_raw(held) });
        // SAFETY: what the header says of pointers.
        let wanted = unsafe {
            Wanted::new(cache, (key, key_bytes), (out_value, out_value_bytes), out_wait_ms)
        };
        let Wanted { out, wait, cache, key } = match wanted {
            Ok(wanted) => wanted,
            Err(error) => {
                held.into_iter().for_each(Claim::end);
                return Err(error);
            }
        };
        let entered = cache.enter()?;
        let pending = match held.map(Claim::into_stage).transpose()? {
            None => PendingCompute::begin(&entered, key, ttl_of(ttl_ms)?)?,
            Some(Stage::Waiting(pending)) => *pending,
            Some(Stage::Computing(_)) => {
                return Err(Failure::Argument("claim is to compute, and does not wait".into()));
            }
        };
        let (status, stage) = match pending.poll()? {
            Polled::Value(value) => return out.set(&value),
            Polled::Compute(computation) => (Status::HaypileMiss, Stage::Computing(computation)),
            Polled::Wait(pending, at_most) => {
                let at_most = i64::try_from(at_most.as_millis()).unwrap_or(i64::MAX);
                wait.set(at_most.max(1));
                (Status::HaypilePending, Stage::Waiting(pending))
            }
        };
        let made = Box::into_raw(Box::new(Claim { stage, origin: Origin::of(&entered) }));
        // SAFETY: it was checked and read above.
        unsafe { claim.write(made) };
        Ok(status)
    })
}

/// Stores a computed value, unless its key has changed since the computation began, hands it to all who wait for it,
/// and frees the claim. It goes into `group_count` groups; NULL and zero for none. HAYPILE_OK also if the cache did
/// not store the value. An error leaves nothing stored, and frees the claim as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_complete(
    claim: *mut Claim,
    value: *const c_void,
    value_bytes: usize,
    groups: *const Group,
    group_count: usize,
) -> Status {
    call(|| {
        if claim.is_null() {
            return Err(is_null("claim"));
        }
        // SAFETY: it came out of a box in `haypile_try_claim`, and the header says that it ends once.
        let claim = unsafe { Box::from_raw(claim) };
        // SAFETY: what the header says of pointers.
        let given = unsafe {
            bytes("value", value, value_bytes)
                .and_then(|value| Ok((value, names(groups, group_count)?)))
        };
        let (value, groups) = match given {
            Ok(given) => given,
            Err(error) => {
                claim.end();
                return Err(error);
            }
        };
        let origin = claim.origin;
        let stage = claim.into_stage()?;
        // Until what it was has ended, whatever that was.
        let _inside = origin.enter()?;
        match stage {
            Stage::Waiting(_) => Err(Failure::Argument("claim waits for another caller".into())),
            Stage::Computing(computation) => {
                if groups.is_empty() {
                    computation.store(value);
                } else {
                    computation.store_in_groups(value, groups)?;
                }
                Ok(Status::HaypileOk)
            }
        }
    })
}

/// Ends a claim without a value; one of the waiting callers computes instead. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_release(claim: *mut Claim) {
    call(|| {
        if !claim.is_null() {
            // SAFETY: it came out of a box in `haypile_try_claim`, and the header says that it ends once.
            unsafe { Box::from_raw(claim) }.end();
        }
        Ok(Status::HaypileOk)
    });
}
