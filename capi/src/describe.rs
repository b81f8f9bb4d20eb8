//! Questions about a whole cache, and its size.

use std::ffi::{CString, c_char};
use std::ptr;

use engine::Writers;

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::pointer::{Growing, Out, OutStruct, object};

/// Limits of a cache. Later versions append fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Limits {
    /// The length of the longest key, in bytes.
    pub max_key_bytes: u64,
    /// The length of the longest value under an empty key, in bytes. A longer key can leave less.
    pub max_value_bytes: u64,
    /// The bound on the whole cache in bytes; zero if there is none or it is not known.
    pub capacity_bytes: u64,
}

impl Growing for Limits {
    const FIRST_BYTES: usize = 24;
}

/// Returns the limits of a cache; `limits_bytes` is sizeof(haypile_limits).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_limits(
    cache: *const Cache,
    out_limits: *mut Limits,
    limits_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, cache) = unsafe {
            (OutStruct::new("out_limits", out_limits, limits_bytes)?, object("cache", cache)?)
        };
        let limits = cache.enter()?.store().limits();
        out.set(&Limits {
            max_key_bytes: limits.max_key_bytes as u64,
            max_value_bytes: limits.max_value_bytes,
            capacity_bytes: limits.capacity_bytes.unwrap_or(0),
        });
        Ok(Status::HaypileOk)
    })
}

/// Returns the number of entries, in the cache's namespace if it has one. Some of them may have expired.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_len(cache: *const Cache, out_entries: *mut u64) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, cache) =
            unsafe { (Out::new("out_entries", out_entries, 0)?, object("cache", cache)?) };
        out.set(cache.enter()?.len()?);
        Ok(Status::HaypileOk)
    })
}

/// Returns the bytes that the entries occupy: keys, values and metadata.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_bytes(cache: *const Cache, out_bytes: *mut u64) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, cache) =
            unsafe { (Out::new("out_bytes", out_bytes, 0)?, object("cache", cache)?) };
        out.set(cache.enter()?.store().bytes()?);
        Ok(Status::HaypileOk)
    })
}

/// Makes a cache larger or smaller while it is in use. Entries that no longer fit are evicted before
/// it returns. HAYPILE_ERROR_UNSUPPORTED if a cache of this kind cannot do this;
/// HAYPILE_ERROR_ARGUMENT for a size that it cannot have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_resize(cache: *const Cache, size_bytes: u64) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let cache = unsafe { object("cache", cache) }?;
        cache.enter()?.resize(size_bytes)?;
        Ok(Status::HaypileOk)
    })
}

/// Returns the URL of a cache with its defaults and without passwords, as text that ends with a zero
/// and that the caller frees with haypile_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_url(cache: *const Cache, out_text: *mut *mut c_char) -> Status {
    // SAFETY: what the header says of pointers.
    unsafe { describe(cache, out_text, |cache| Ok(cache.store().describe())) }
}

/// Returns problems that failed no operation: a server that does not answer, a saved cache that is
/// damaged, a `size=` that an existing file ignores, a file without a place for this process to write,
/// computed values that are too large to be stored. Text for people, one a line, empty if there are none;
/// some stay in it when they are over. It ends with a zero, and the caller frees it with haypile_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_warnings(
    cache: *const Cache,
    out_text: *mut *mut c_char,
) -> Status {
    // SAFETY: what the header says of pointers.
    unsafe { describe(cache, out_text, |cache| Ok(cache.warnings().join("\n"))) }
}

/// Returns the levels of a cache that this user does not have alone, so that others may have written their entries: a
/// server, or a file that belongs to another user, or that others may write or read. A program asks before it loads
/// what runs code, such as a Storable of Perl or a pickle of Python. Text for people, one a line, empty if there are
/// none. It ends with a zero, and the caller frees it with haypile_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_writable_by_others(
    cache: *const Cache,
    out_text: *mut *mut c_char,
) -> Status {
    let others = |cache: &engine::Cache| {
        let levels = cache.store().writers();
        let texts: Vec<_> = levels.into_iter().filter_map(|level| others_of(&level)).collect();
        Ok(texts.join("\n"))
    };
    // SAFETY: what the header says of pointers.
    unsafe { describe(cache, out_text, others) }
}

/// The permission bits of a file's group, and of all other users.
const OF_OTHERS: u32 = 0o077;

/// Returns the name of a level if users other than this one can write to it.
fn others_of(level: &Writers) -> Option<String> {
    // SAFETY: it only asks.
    let user = unsafe { libc::geteuid() };
    match level {
        Writers::File { owner, mode, .. } if *owner == user && mode & OF_OTHERS == 0 => None,
        Writers::File { path, owner, mode } => {
            Some(format!("{} (owner {owner}, mode {mode:o})", path.display()))
        }
        Writers::Anyone { store } => Some(store.clone()),
        other => Some(format!("{other:?}")),
    }
}

/// Returns the statistics of each level in the text format of Prometheus. It ends with a zero, and
/// the caller frees it with haypile_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_prometheus(
    cache: *const Cache,
    out_text: *mut *mut c_char,
) -> Status {
    // SAFETY: what the header says of pointers.
    unsafe { describe(cache, out_text, engine::Cache::prometheus) }
}

/// # Safety
///
/// The pointers satisfy the rules of the header.
unsafe fn describe(
    cache: *const Cache,
    out_text: *mut *mut c_char,
    text: impl FnOnce(&engine::Cache) -> engine::Result<String>,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, cache) =
            unsafe { (Out::new("out_text", out_text, ptr::null_mut())?, object("cache", cache)?) };
        let text = text(&*cache.enter()?)?.replace('\0', "\\0");
        let text = CString::new(text).expect("zeros were replaced");
        // SAFETY: it ends with a zero.
        let copy = unsafe { libc::strdup(text.as_ptr()) };
        if copy.is_null() {
            return Err(Failure::OutOfMemory(text.as_bytes_with_nul().len()));
        }
        out.set(copy);
        Ok(Status::HaypileOk)
    })
}
