//! Operations on many keys. A store does them with fewer waits than one after the other.

use std::ffi::c_void;

use engine::{Found, SetOptions, Version};

use crate::cache::Cache;
use crate::call::{Failure, Status, call};
use crate::hit::Hit;
use crate::pointer::{Out, OutStruct, array, bytes, object};
use crate::ttl::ttl_of;
use crate::write::status_of;

/// For haypile_entry: write the value, whether or not the key has one.
pub const HAYPILE_MODE_SET: i32 = 0;

/// For haypile_entry: write the value if the key has none.
pub const HAYPILE_MODE_ADD: i32 = 1;

/// For haypile_entry: write the value if the key has one.
pub const HAYPILE_MODE_REPLACE: i32 = 2;

/// For haypile_entry: write the value if the entry still has the version `version`.
pub const HAYPILE_MODE_CAS: i32 = 3;

/// One of the keys of haypile_get_many() or haypile_delete_many().
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Key {
    /// The bytes of the key.
    pub key: *const c_void,
    /// The length of the key in bytes.
    pub key_bytes: usize,
}

/// One of the writes of haypile_set_many().
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Entry {
    /// The bytes of the key.
    pub key: *const c_void,
    /// The length of the key in bytes.
    pub key_bytes: usize,
    /// The bytes of the value.
    pub value: *const c_void,
    /// The length of the value in bytes.
    pub value_bytes: usize,
    /// The TTL in milliseconds, as for haypile_set(). Zero is an error.
    pub ttl_ms: i64,
    /// The version that the entry has to have with HAYPILE_MODE_CAS. Other modes ignore it.
    pub version: u64,
    /// The condition of the write: HAYPILE_MODE_SET, which is 0, HAYPILE_MODE_ADD, HAYPILE_MODE_REPLACE or
    /// HAYPILE_MODE_CAS.
    pub mode: i32,
}

/// The values of several keys that were read at once. haypile_get_many() makes them and haypile_free_values() frees
/// them. They stay after the cache is closed.
pub struct Values(Vec<Found>);

/// Returns the values of `key_count` keys, in their order; haypile_values_at() reads them. An error of any key ends
/// the call, and haypile_last_error() names its index. A key without a value is not an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_get_many(
    cache: *const Cache,
    keys: *const Key,
    key_count: usize,
    out_values: *mut *mut Values,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, cache, keys) = unsafe {
            (
                Out::new("out_values", out_values, std::ptr::null_mut())?,
                object("cache", cache)?,
                array("keys", keys, key_count)?,
            )
        };
        // SAFETY: what the header says of pointers.
        let keys = keys.iter().enumerate().map(|(index, key)| unsafe { key.bytes(index) });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let values = cache.enter()?.store().get_many(&keys)?;
        out.set(Box::into_raw(Box::new(Values(values))));
        Ok(Status::HaypileOk)
    })
}

/// Returns the value of the key with this index in haypile_get_many(), counted from zero. It stays until
/// haypile_free_values(); do not free it. HAYPILE_MISS if the key has no value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_values_at(
    values: *const Values,
    index: usize,
    out_value: *mut *const c_void,
    out_value_bytes: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, out_bytes) = unsafe {
            (
                Out::new("out_value", out_value, std::ptr::null()),
                Out::new("out_value_bytes", out_value_bytes, 0),
            )
        };
        let (out, out_bytes) = (out?, out_bytes?);
        // SAFETY: what the header says of pointers.
        let values = unsafe { object("values", values) }?;
        let Some((value, _)) = values.at(index)? else { return Ok(Status::HaypileMiss) };
        out.set(value.as_ptr().cast());
        out_bytes.set(value.len());
        Ok(Status::HaypileOk)
    })
}

/// Returns the properties of the entry with this index in haypile_get_many(); `hit_bytes` is sizeof(haypile_hit).
/// HAYPILE_MISS if the key has no value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_values_hit(
    values: *const Values,
    index: usize,
    out_hit: *mut Hit,
    hit_bytes: usize,
) -> Status {
    call(|| {
        // SAFETY: what the header says of pointers.
        let (out, values) =
            unsafe { (OutStruct::new("out_hit", out_hit, hit_bytes)?, object("values", values)?) };
        let Some((_, hit)) = values.at(index)? else { return Ok(Status::HaypileMiss) };
        out.set(&Hit::from(*hit));
        Ok(Status::HaypileOk)
    })
}

/// Frees the values that haypile_get_many() returned. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_free_values(values: *mut Values) {
    if !values.is_null() {
        // SAFETY: it came out of a box in `haypile_get_many`, and the header says that it is freed
        // once.
        drop(unsafe { Box::from_raw(values) });
    }
}

/// Writes `entry_count` entries. The writes are independent: if one fails, the others are still done.
/// `out_statuses` has room for a status of each, in their order, or is NULL: HAYPILE_OK,
/// HAYPILE_NOT_STORED, HAYPILE_MISS as from haypile_cas(), or an error. Returns the first error, whose
/// index haypile_last_error() names; HAYPILE_OK if there is none, even if a condition did not hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_set_many(
    cache: *const Cache,
    entries: *const Entry,
    entry_count: usize,
    out_statuses: *mut Status,
) -> Status {
    let outcomes = || {
        // SAFETY: what the header says of pointers.
        let (cache, entries) =
            unsafe { (object("cache", cache)?, array("entries", entries, entry_count)?) };
        // SAFETY: what the header says of pointers.
        let writes = entries.iter().map(|entry| unsafe { entry.write() }).collect::<Vec<_>>();
        let possible = writes.iter().filter_map(|write| write.as_ref().ok().copied());
        let mut written = cache.enter()?.write_many(&possible.collect::<Vec<_>>()).into_iter();
        let outcome = |write: Result<Write, Failure>| {
            let (_, _, options) = write?;
            let written = written.next().expect("a store returns one outcome per write");
            Ok(status_of(written?, options))
        };
        Ok(writes.into_iter().map(outcome).collect())
    };
    // SAFETY: what the header says of pointers.
    unsafe { many(out_statuses, entry_count, outcomes) }
}

/// Deletes `key_count` entries. The deletions are independent: if one fails, the others are still
/// done. `out_statuses` has room for a status of each, in their order, or is NULL: HAYPILE_OK,
/// HAYPILE_MISS if there was no entry, or an error. Returns the first error, whose index
/// haypile_last_error() names; HAYPILE_OK if there is none, even if an entry was missing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haypile_delete_many(
    cache: *const Cache,
    keys: *const Key,
    key_count: usize,
    out_statuses: *mut Status,
) -> Status {
    let outcomes = || {
        // SAFETY: what the header says of pointers.
        let (cache, keys) = unsafe { (object("cache", cache)?, array("keys", keys, key_count)?) };
        // SAFETY: what the header says of pointers.
        let keys = keys.iter().map(|key| unsafe { bytes("key", key.key, key.key_bytes) });
        let keys = keys.collect::<Vec<_>>();
        let possible = keys.iter().filter_map(|key| key.as_ref().ok().copied());
        let mut deleted = cache.enter()?.delete_many(&possible.collect::<Vec<_>>()).into_iter();
        let outcome = |key: Result<&[u8], Failure>| {
            key?;
            let deleted = deleted.next().expect("a store returns one outcome per key");
            Ok(if deleted? { Status::HaypileOk } else { Status::HaypileMiss })
        };
        Ok(keys.into_iter().map(outcome).collect())
    };
    // SAFETY: what the header says of pointers.
    unsafe { many(out_statuses, key_count, outcomes) }
}

type Write<'a> = (&'a [u8], &'a [u8], SetOptions);

impl Key {
    /// # Safety
    ///
    /// That of [`bytes`].
    unsafe fn bytes<'a>(&self, index: usize) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller's promise.
        let key = unsafe { bytes("key", self.key, self.key_bytes) };
        key.map_err(|failure| Failure::Item(index, Box::new(failure)))
    }
}

impl Entry {
    /// # Safety
    ///
    /// That of [`bytes`] for the key and the value.
    unsafe fn write<'a>(&self) -> Result<Write<'a>, Failure> {
        // SAFETY: the caller's promise.
        let (key, value) = unsafe {
            (bytes("key", self.key, self.key_bytes)?, bytes("value", self.value, self.value_bytes)?)
        };
        Ok((key, value, options_of(self.mode, self.version)?.with_ttl(ttl_of(self.ttl_ms)?)))
    }
}

impl Values {
    fn at(&self, index: usize) -> Result<&Found, Failure> {
        self.0.get(index).ok_or_else(|| {
            let count = self.0.len();
            Failure::Argument(format!("there is no index {index} in {count} values"))
        })
    }
}

/// Returns the write options of a HAYPILE_MODE and a version.
pub(crate) fn options_of(mode: i32, version: u64) -> Result<SetOptions, Failure> {
    match mode {
        HAYPILE_MODE_SET => Ok(SetOptions::set()),
        HAYPILE_MODE_ADD => Ok(SetOptions::add()),
        HAYPILE_MODE_REPLACE => Ok(SetOptions::replace()),
        HAYPILE_MODE_CAS => Ok(SetOptions::cas(Version::from_raw(version))),
        _ => Err(Failure::Argument(format!(
            "unknown mode {mode} (known: HAYPILE_MODE_SET, HAYPILE_MODE_ADD, \
             HAYPILE_MODE_REPLACE, HAYPILE_MODE_CAS)"
        ))),
    }
}

/// Writes the outcome of each item to `out_statuses`, and returns the first error. If the whole call
/// fails, each item has its status.
///
/// # Safety
///
/// `out_statuses` is null or valid for `count` writes.
unsafe fn many(
    out_statuses: *mut Status,
    count: usize,
    outcomes: impl FnOnce() -> Result<Vec<Result<Status, Failure>>, Failure>,
) -> Status {
    // A number that no array can have is refused, and nothing is written.
    let room = if out_statuses.is_null() || count > isize::MAX.unsigned_abs() / size_of::<Status>()
    {
        0
    } else {
        count
    };
    let write = |index: usize, status: Status| {
        if index < room {
            // SAFETY: the caller's promise.
            unsafe { out_statuses.add(index).write(status) };
        }
    };
    let mut is_answered = false;
    let status = call(|| {
        let mut first = None;
        for (index, outcome) in outcomes()?.into_iter().enumerate() {
            match outcome {
                Ok(status) => write(index, status),
                Err(failure) => {
                    write(index, failure.status());
                    first.get_or_insert_with(|| Failure::Item(index, Box::new(failure)));
                }
            }
        }
        is_answered = true;
        first.map_or(Ok(Status::HaypileOk), Err)
    });
    if !is_answered {
        for index in 0..room {
            write(index, status);
        }
    }
    status
}
