//! A cache from its opening to its end.

use std::ffi::c_char;
use std::ops::Deref;
use std::ptr;

use engine::ForkGate;
use engine::{Durability, Registry};

use crate::call::{Failure, Status, call};
use crate::fork::{Origin, register};
use crate::pointer::{Out, object, text};

/// An open cache. haypile_open() makes it and haypile_close() ends it.
pub struct Cache {
    engine: engine::Cache,
    pub(crate) origin: Origin,
}

impl Cache {
    /// Enters the cache for one call; an error in a forked child that cannot use it.
    pub(crate) fn enter(&self) -> Result<Entered<'_>, Failure> {
        Ok(Entered { _inside: self.origin.enter()?, engine: &self.engine })
    }
}

/// A guard of a call's use of the cache; a fork waits until it is dropped.
pub(crate) struct Entered<'a> {
    _inside: Option<ForkGate>,
    engine: &'a engine::Cache,
}

impl Deref for Entered<'_> {
    type Target = engine::Cache;

    fn deref(&self) -> &engine::Cache {
        self.engine
    }
}

/// Returns the registry of all URL schemes that C programs can open: the engine's, and those of servers.
fn registry() -> Registry {
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    registry
}

/// The version of this library, as in "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn haypile_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Opens the cache of this URL, UTF-8 text that ends with a zero: "memory:size=64MiB",
/// "file:///var/tmp/app.haypile?size=1GiB&namespace=pages", "memcached://127.0.0.1:11211",
/// "redis://127.0.0.1:6379/0", or several levels, the fastest first:
/// "memory://?size=16MiB -> memcached://127.0.0.1:11211".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_open(url: *const c_char, out_cache: *mut *mut Cache) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, url) =
            unsafe { (Out::new("out_cache", out_cache, ptr::null_mut())?, text("url", url)?) };
        register()?;
        let engine = engine::Cache::new(registry().open(url)?);
        let origin = Origin::of(&engine);
        out.set(Box::into_raw(Box::new(Cache { engine, origin })));
        Ok(Status::HaypileOk)
    })
}

/// Ends a cache and frees it, also where an error is given: that what is saved at the end could not
/// be saved. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_close(cache: *mut Cache) -> Status {
    call(|| {
        if cache.is_null() {
            return Ok(Status::HaypileOk);
        }
        // SAFETY: it came out of a box in `haypile_open`, and the header says that it is closed
        // once.
        let cache = unsafe { Box::from_raw(cache) };
        let origin = cache.origin;
        // A child that must not use the cache has nothing to end.
        let closed = cache.enter().map_or(Ok(()), |cache| cache.close());
        origin.free(cache);
        closed?;
        Ok(Status::HaypileOk)
    })
}

/// Returns when all earlier writes are visible to all users of the cache; with `durable`, when they
/// are on disk. HAYPILE_ERROR_UNSUPPORTED if there is no file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_flush(cache: *const Cache, durable: bool) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let cache = unsafe { object("cache", cache) }?;
        cache.enter()?.flush(if durable { Durability::Disk } else { Durability::Visible })?;
        Ok(Status::HaypileOk)
    })
}

/// Deletes every entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_clear(cache: *const Cache) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let cache = unsafe { object("cache", cache) }?;
        cache.enter()?.clear()?;
        Ok(Status::HaypileOk)
    })
}
