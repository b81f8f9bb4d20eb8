//! Pointers from C, checked for what can be checked.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
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
