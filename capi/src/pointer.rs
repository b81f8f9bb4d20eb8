//! Pointers from C, checked for what can be checked.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use crate::call::Failure;

/// Where a function writes what it gives. It may point to memory that was never written.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// Writes `nothing` at once, so that something is there in every case.
    ///
    /// # Safety
    ///
    /// `to` is null, or valid for a write of a `T` as long as this lives.
    pub(crate) unsafe fn new(name: &str, to: *mut T, nothing: T) -> Result<Self, Failure> {
        let out = Self(NonNull::new(to).ok_or_else(|| is_null(name))?);
        out.set(nothing);
        Ok(out)
    }

    pub(crate) fn set(&self, value: T) {
        // SAFETY: `new` was promised that it is valid.
        unsafe { self.0.write(value) }
    }
}

/// Turns a pointer to an object of ours into a reference.
///
/// # Safety
///
/// `object` is null, or came from this library and is valid for `'a`.
pub(crate) unsafe fn object<'a, T>(name: &str, object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise, but for null, which is checked.
    unsafe { object.as_ref() }.ok_or_else(|| is_null(name))
}

/// Bytes of C, none where the length is zero.
///
/// # Safety
///
/// `data` is null, or valid for reads of `length` bytes that nobody changes during `'a`.
pub(crate) unsafe fn bytes<'a>(
    name: &str,
    data: *const c_void,
    length: usize,
) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(is_null(name));
    }
    if isize::try_from(length).is_err() {
        return Err(Failure::Argument(format!(
            "{name} cannot have {length} bytes; is its length a negative number?"
        )));
    }
    // SAFETY: not null, not too long, and else the caller's promise.
    Ok(unsafe { slice::from_raw_parts(data.cast(), length) })
}

/// An array of C, none where it has no items.
///
/// # Safety
///
/// `items` is null, or valid for reads of `count` items that nobody changes during `'a`.
pub(crate) unsafe fn array<'a, T>(
    name: &str,
    items: *const T,
    count: usize,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return Err(is_null(name));
    }
    if count > isize::MAX.unsigned_abs() / size_of::<T>() {
        return Err(Failure::Argument(format!(
            "{name} cannot have {count} items; is its number of items a negative number?"
        )));
    }
    // SAFETY: not null, not too long, and else the caller's promise.
    Ok(unsafe { slice::from_raw_parts(items, count) })
}

/// A structure of C that may be older or newer than this library.
pub(crate) struct OutStruct<T> {
    to: NonNull<T>,
    bytes: usize,
}

impl<T: Copy> OutStruct<T> {
    /// Writes zeros at once.
    ///
    /// # Safety
    ///
    /// `to` is null, or valid for a write of `bytes` as long as this lives.
    pub(crate) unsafe fn new(name: &str, to: *mut T, bytes: usize) -> Result<Self, Failure> {
        let to = NonNull::new(to).ok_or_else(|| is_null(name))?;
        if isize::try_from(bytes).is_err() {
            return Err(Failure::Argument(format!("{name} cannot have {bytes} bytes")));
        }
        // SAFETY: not null, and else the caller's promise.
        unsafe { to.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self { to, bytes })
    }

    /// Writes as many fields as the caller knows.
    pub(crate) fn set(&self, value: &T) {
        let known_bytes = self.bytes.min(size_of::<T>());
        // SAFETY: both have that many bytes.
        unsafe {
            ptr::copy_nonoverlapping(
                ptr::from_ref(value).cast::<u8>(),
                self.to.cast::<u8>().as_ptr(),
                known_bytes,
            );
        }
    }
}

/// Returns a structure of the caller; fields that an older caller does not know are those of `nothing`.
///
/// # Safety
///
/// `from` is null, or valid for reads of `bytes`; any bytes make a `T`.
pub(crate) unsafe fn structure<T: Copy>(
    name: &str,
    from: *const T,
    bytes: usize,
    nothing: T,
) -> Result<T, Failure> {
    // SAFETY: the caller's promise.
    let given: &[u8] = unsafe { array(name, from.cast(), bytes)? };
    if from.is_null() {
        return Err(is_null(name));
    }
    let (known, unknown) = given.split_at(bytes.min(size_of::<T>()));
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Failure::Argument(format!(
            "{name} has fields that this version of the library does not know; leave them zero"
        )));
    }
    let mut value = nothing;
    // SAFETY: both have that many bytes, and any bytes make a `T`.
    unsafe {
        ptr::copy_nonoverlapping(known.as_ptr(), (&raw mut value).cast::<u8>(), known.len());
    }
    Ok(value)
}

/// A text of C.
///
/// # Safety
///
/// `text` is null, or ends with a zero and is not changed during `'a`.
pub(crate) unsafe fn text<'a>(name: &str, text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(is_null(name));
    }
    // SAFETY: not null, and else the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|error| Failure::Argument(format!("{name} is not UTF-8: {error}")))
}

pub(crate) fn is_null(name: &str) -> Failure {
    Failure::Argument(format!("{name} is NULL"))
}
