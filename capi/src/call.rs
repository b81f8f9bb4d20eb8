//! The result of a function: a status, and the text of an error.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::{Error, OpenError};

/// Outcome of a call. Zero and above is a result; below zero is an error, whose text
/// haypile_last_error() returns. Later versions may add values of both kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// The call succeeded.
    HaypileOk = 0,
    /// There is no entry under this key.
    HaypileMiss = 1,
    /// The condition did not hold and nothing was written or deleted: haypile_add() found an entry,
    /// haypile_replace() found none, haypile_cas() or haypile_delete_version() found another version,
    /// haypile_compare_and_delete() found another value.
    HaypileNotStored = 2,
    /// The value does not fit into the buffer of haypile_get_into(); nothing was copied.
    HaypileTooSmall = 3,
    /// There is nothing more: no further key or level.
    HaypileEnd = 4,
    /// Another caller is still computing the value, and the caller's `wait_ms` is over.
    HaypilePending = 5,
    /// The entry still has the version that the caller of haypile_get_if_changed() knows.
    HaypileUnchanged = 6,
    /// A pointer is NULL, or a number is out of its range.
    HaypileErrorArgument = -1,
    /// The cache could not be opened: the URL is wrong, or what it names cannot be used.
    HaypileErrorOpen = -2,
    /// The key is longer than the cache allows.
    HaypileErrorKeyTooLong = -3,
    /// The value is larger than the cache allows. The old value stays.
    HaypileErrorValueTooLarge = -4,
    /// No memory could be allocated.
    HaypileErrorOutOfMemory = -5,
    /// haypile_incr() or haypile_decr() found a value that is not a number. The value stays.
    HaypileErrorNotACounter = -6,
    /// Another user of the cache has closed it; or a forked child cannot use it, as the rules say, and has
    /// to open it again.
    HaypileErrorClosed = -7,
    /// A computation asked for the key that it computes, and would wait for itself.
    HaypileErrorComputesItself = -8,
    /// The function that computes the value did not return zero. Nothing was stored.
    HaypileErrorCompute = -9,
    /// A cache of this kind cannot do this.
    HaypileErrorUnsupported = -10,
    /// Another process holds a part of the store that this call needs, is alive, and does not go
    /// on. If the process is known to be stopped or frozen, haypile_last_error() names its number:
    /// continue or end it. Otherwise it makes room, or lacks a processor. Nothing has changed; try again.
    HaypileErrorBusy = -11,
    /// The cache cannot make room, because every possible victim is in use. The old value stays.
    HaypileErrorFull = -12,
    /// The file or server under the cache failed; or an error without a number here occurred. The
    /// write may or may not have happened.
    HaypileErrorBackend = -13,
    /// A defect in Haypile, please report it. Close the cache.
    HaypileErrorDefect = -14,
}

/// Reason why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Argument(String),
    Open(OpenError),
    Cache(Error),
    Compute(c_int),
    OutOfMemory(usize),
    /// The object was made before a fork, and a thread of the parent may have left it locked.
    Forked,
    /// One of several keys or entries failed.
    Item(usize, Box<Failure>),
}

impl Failure {
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Argument(_)
            | Self::Cache(Error::ZeroTtl | Error::Group { .. } | Error::SizeOutOfRange { .. }) => {
                Status::HaypileErrorArgument
            }
            Self::Item(_, failure) => failure.status(),
            Self::Open(_) => Status::HaypileErrorOpen,
            Self::OutOfMemory(_) | Self::Cache(Error::OutOfMemory { .. }) => {
                Status::HaypileErrorOutOfMemory
            }
            Self::Compute(_) => Status::HaypileErrorCompute,
            Self::Cache(Error::KeyTooLong { .. }) => Status::HaypileErrorKeyTooLong,
            Self::Cache(Error::ValueTooLarge { .. }) => Status::HaypileErrorValueTooLarge,
            Self::Cache(Error::NotACounter { .. }) => Status::HaypileErrorNotACounter,
            Self::Forked | Self::Cache(Error::Closed { .. }) => Status::HaypileErrorClosed,
            Self::Cache(Error::RecursiveCompute) => Status::HaypileErrorComputesItself,
            Self::Cache(Error::Unsupported { .. }) => Status::HaypileErrorUnsupported,
            Self::Cache(Error::Busy { .. }) => Status::HaypileErrorBusy,
            Self::Cache(Error::Full { .. }) => Status::HaypileErrorFull,
            Self::Cache(_) => Status::HaypileErrorBackend,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Argument(text) => text.clone(),
            Self::Open(error) => error.to_string(),
            Self::Cache(error) => error.to_string(),
            Self::Compute(answer) => format!(
                "the value could not be computed: the function that computes it \
                 returned {answer}, and 0 stands for success"
            ),
            Self::Item(index, failure) => format!("at index {index}: {}", failure.text()),
            Self::OutOfMemory(0) => "there is no memory".to_owned(),
            Self::OutOfMemory(bytes) => format!("there is no memory for {bytes} bytes"),
            Self::Forked => {
                "this process was forked while another thread of its parent had been in a \
                             call for more than a second, and cannot use the caches of its parent; \
                             close them, and open them here"
                    .to_owned()
            }
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Cache(error)
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// The text of the last error in this thread, for people: what happened, and what to do. Empty if
/// there was none. It is never NULL, and valid until the next error in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn haypile_last_error() -> *const c_char {
    // A thread that is ending has none any more.
    LAST_ERROR.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Performs the work of a C function: no panic leaves it, and the text of a failure is kept for haypile_last_error().
pub(crate) fn call(work: impl FnOnce() -> Result<Status, Failure>) -> Status {
    // What a panic leaves half done is the engine's, whose locks are made for that.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => {
            keep(&failure.text());
            failure.status()
        }
        Err(panic) => {
            keep(&format!("a defect in haypile, please report it: {}", message_of(&*panic)));
            Status::HaypileErrorDefect
        }
    }
}

fn keep(text: &str) {
    // Keys and paths are in some texts, and a zero in one of them would end it.
    let text = CString::new(text.replace('\0', "\\0")).expect("zeros were replaced");
    let _ = LAST_ERROR.try_with(|last| last.replace(text));
}

fn message_of(panic: &(dyn Any + Send)) -> &dyn Display {
    if let Some(message) = panic.downcast_ref::<String>() {
        message
    } else if let Some(message) = panic.downcast_ref::<&str>() {
        message
    } else {
        &"it has no message"
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last_error() -> String {
        // SAFETY: it is never null, and this thread has no other error in the meantime.
        unsafe { CStr::from_ptr(haypile_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_ends_in_a_status_and_a_text() {
        let status = call(|| panic!("number {}", 7));
        assert_eq!(status, Status::HaypileErrorDefect);
        assert_eq!(last_error(), "a defect in haypile, please report it: number 7");
    }

    #[test]
    fn a_text_with_a_zero_is_whole_and_of_its_thread() {
        let status = call(|| Err(Failure::Argument("a\0b".to_owned())));
        assert_eq!(status, Status::HaypileErrorArgument);
        assert_eq!(last_error(), "a\\0b");
        std::thread::spawn(|| assert_eq!(last_error(), "")).join().unwrap();
        assert_eq!(call(|| Ok(Status::HaypileMiss)), Status::HaypileMiss);
        assert_eq!(last_error(), "a\\0b");
    }
}
