//! Pointers from C, checked for what can be checked.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use crate::call::Failure;

/// A pointer to which a C function writes its result. The memory may be uninitialized.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// Checks the pointer and writes `nothing` to it at once, so that the memory is initialized in every case.
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

/// Returns a reference to an object of this library that C passes as a pointer.
///
/// # Safety
///
/// `object` is null, or came from this library and is valid for `'a`.
pub(crate) unsafe fn object<'a, T>(name: &str, object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise, but for null, which is checked.
    unsafe { object.as_ref() }.ok_or_else(|| is_null(name))
}

/// Returns bytes that C passes as a pointer and a length; none if the length is zero.
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

/// Returns an array that C passes as a pointer and a number of items; empty if there are none.
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

/// A structure to which later versions of the library append fields. The program passes its size,
/// and may be older or newer than this library.
pub(crate) trait Growing: Copy {
    /// Size of the structure in its first version. No program has a smaller one.
    const FIRST_BYTES: usize;
}

fn check_size<T: Growing>(name: &str, bytes: usize) -> Result<(), Failure> {
    if bytes >= T::FIRST_BYTES {
        return Ok(());
    }
    Err(Failure::Argument(format!(
        "the size of {name} is {bytes} bytes, and that of its first version {}; pass the sizeof of the structure",
        T::FIRST_BYTES
    )))
}

/// A structure of the program to which a C function writes its result.
pub(crate) struct OutStruct<T> {
    to: NonNull<T>,
    bytes: usize,
}

impl<T: Growing> OutStruct<T> {
    /// Checks the pointer and writes zeros to the whole structure at once, even if it is larger
    /// than this library knows, and even if its size is an error.
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
        check_size::<T>(name, bytes)?;
        Ok(Self { to, bytes })
    }

    /// Writes the fields that the program knows.
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

/// Returns a structure that C passes; fields that an older program does not know are those of `nothing`.
///
/// # Safety
///
/// `from` is null, or valid for reads of `bytes`; any bytes make a `T`.
pub(crate) unsafe fn structure<T: Growing>(
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
    check_size::<T>(name, bytes)?;
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

/// Returns a text that C passes as a pointer, which ends with a zero byte.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(C)]
    struct Grown {
        first: u64,
        appended: u64,
    }

    impl Growing for Grown {
        const FIRST_BYTES: usize = 8;
    }

    const NOTHING: Grown = Grown { first: 0, appended: 70 };

    /// Has [`OutStruct`] write a structure of this size into an array of sevens; returns the array, and whether the
    /// size was accepted.
    fn written(bytes: usize) -> ([u64; 4], bool) {
        let mut to = [0x0707_0707_0707_0707; 4];
        // SAFETY: the array is larger than each size of these tests.
        let out = unsafe { OutStruct::<Grown>::new("out", to.as_mut_ptr().cast(), bytes) };
        let is_accepted = out.is_ok();
        if let Ok(out) = out {
            out.set(&Grown { first: 1, appended: 2 });
        }
        (to, is_accepted)
    }

    fn read(from: &[u64], bytes: usize) -> Result<Grown, Failure> {
        // SAFETY: the slice is as large as each size of these tests, and any bytes make the structure.
        unsafe { structure("from", from.as_ptr().cast(), bytes, NOTHING) }
    }

    #[test]
    fn programs_of_all_versions_get_the_fields_that_they_know_and_zeros() {
        const SEVENS: u64 = 0x0707_0707_0707_0707;
        assert_eq!(written(8), ([1, SEVENS, SEVENS, SEVENS], true));
        assert_eq!(written(16), ([1, 2, SEVENS, SEVENS], true));
        assert_eq!(written(24), ([1, 2, 0, SEVENS], true));
        assert_eq!(written(0), ([SEVENS; 4], false));
        let (to, is_accepted) = written(7);
        assert_eq!(to.map(u64::to_ne_bytes)[0][..7], [0; 7]);
        assert_eq!((to[1], is_accepted), (SEVENS, false));
    }

    #[test]
    fn programs_of_all_versions_pass_the_fields_that_they_know() {
        assert_eq!(read(&[1, 2, 3], 8).unwrap(), Grown { first: 1, ..NOTHING });
        assert_eq!(read(&[1, 2, 3], 16).unwrap(), Grown { first: 1, appended: 2 });
        assert_eq!(read(&[1, 2, 0], 24).unwrap(), Grown { first: 1, appended: 2 });
        for (from, bytes) in
            [([1, 2, 3], 24), ([1, 2, 1 << 63], 24), ([1, 2, 0], 7), ([1, 2, 0], 0)]
        {
            assert!(
                matches!(read(&from, bytes), Err(Failure::Argument(_))),
                "{bytes} bytes of {from:?}"
            );
        }
    }
}
