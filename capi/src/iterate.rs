//! Iteration over keys.

use std::ffi::c_void;
use std::ptr;
use std::vec;

use engine::Cursor;

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::fork::Origin;
use crate::pointer::{Out, is_null, object};

/// The number of positions in a store that one page of keys covers.
const KEYS_PER_PAGE: usize = 256;

/// An iteration over the keys of a cache. haypile_list_keys() makes it and haypile_free_keys() frees it. One thread
/// at a time may use it. It may outlive its cache, but ends with HAYPILE_ERROR_CLOSED then.
pub struct Keys {
    cache: engine::Cache,
    origin: Origin,
    page: vec::IntoIter<Vec<u8>>,
    /// The current key, which the C program reads.
    key: Vec<u8>,
    next: Option<Cursor>,
}

/// Begins an iteration over the keys of a cache, in no particular order. It holds no lock between two
/// calls. A key that has an entry from the beginning to the end is returned at least once; one that
/// is written or deleted in the meantime may be returned or not. An entry may be gone when its key is
/// returned. With `namespace=` in its URL, a cache has only the keys of that namespace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_list_keys(
    cache: *const Cache,
    out_keys: *mut *mut Keys,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, cache) =
            unsafe { (Out::new("out_keys", out_keys, ptr::null_mut())?, object("cache", cache)?) };
        let keys = Keys {
            cache: cache.enter()?.clone(),
            origin: cache.origin,
            page: Vec::new().into_iter(),
            key: Vec::new(),
            next: Some(Cursor::default()),
        };
        out.set(Box::into_raw(Box::new(keys)));
        Ok(Status::HaypileOk)
    })
}

/// Returns the next key. It stays until the next call with these keys; do not free it. HAYPILE_END if
/// every key was returned; HAYPILE_ERROR_UNSUPPORTED from caches that cannot list their keys. After
/// any other error the next call tries again from the same position.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_next_key(
    keys: *mut Keys,
    out_key: *mut *const c_void,
    out_key_bytes: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, out_bytes) = unsafe {
            (Out::new("out_key", out_key, ptr::null()), Out::new("out_key_bytes", out_key_bytes, 0))
        };
        let (out, out_bytes) = (out?, out_bytes?);
        // SAFETY: what the header says of pointers; one thread uses it.
        let keys = unsafe { keys.as_mut() }.ok_or_else(|| is_null("keys"))?;
        if !keys.advance()? {
            return Ok(Status::HaypileEnd);
        }
        out.set(keys.key.as_ptr().cast());
        out_bytes.set(keys.key.len());
        Ok(Status::HaypileOk)
    })
}

/// Ends an iteration. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_free_keys(keys: *mut Keys) {
    if !keys.is_null() {
        // SAFETY: it came out of a box in `haypile_list_keys`, and the header says that it is freed
        // once.
        let keys = unsafe { Box::from_raw(keys) };
        keys.origin.free(keys);
    }
}

impl Keys {
    /// Advances to the next key; returns whether there is one.
    fn advance(&mut self) -> Result<bool, Failure> {
        loop {
            if let Some(key) = self.page.next() {
                self.key = key;
                return Ok(true);
            }
            let Some(from) = self.next else { return Ok(false) };
            // The position stays where it is if this fails.
            let inside = self.origin.enter()?;
            let page = self.cache.store().keys(from, KEYS_PER_PAGE)?;
            drop(inside);
            self.page = page.keys.into_iter();
            self.next = page.next;
        }
    }
}
