//! System calls that failed, by name: a filter can refuse any of them, and only the name says which
//! one to allow.

use std::io;

/// A system call that failed.
#[derive(Debug, thiserror::Error)]
#[error("the system call {call} failed: {source}{}", advice(source))]
struct FailedCall {
    call: &'static str,
    source: io::Error,
}

#[cfg(target_os = "linux")]
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS) => {
            "; a filter of system calls (seccomp) or a security module may refuse it"
        }
        _ => "",
    }
}

#[cfg(not(target_os = "linux"))]
fn advice(_: &io::Error) -> &'static str {
    ""
}

/// An extension trait for results of system calls, which adds the name of the system call (such as
/// `open`) to an error.
pub(crate) trait Call<T> {
    /// Names the system call in the error, unless it is named already. The error keeps its kind.
    fn call(self, call: &'static str) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> Call<T> for Result<T, E> {
    fn call(self, call: &'static str) -> io::Result<T> {
        self.map_err(|error| {
            let source = error.into();
            if source.get_ref().and_then(|inner| inner.downcast_ref::<FailedCall>()).is_some() {
                return source;
            }
            io::Error::new(source.kind(), FailedCall { call, source })
        })
    }
}

/// Returns the operating system's error number (`errno`) of an error; `None` for an error of
/// another origin.
#[cfg(target_os = "linux")]
pub(crate) fn errno(error: &io::Error) -> Option<i32> {
    let named = error.get_ref().and_then(|inner| inner.downcast_ref::<FailedCall>());
    named.map_or(error, |named| &named.source).raw_os_error()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_first_call_and_keeps_kind_and_number() {
        let failed = |number| Err::<(), _>(io::Error::from_raw_os_error(number));
        let error = failed(libc::EPERM).call("fsync").call("open").expect_err("failed");
        assert_eq!(
            error.to_string(),
            "the system call fsync failed: Operation not permitted (os error 1); a filter of system calls \
             (seccomp) or a security module may refuse it"
        );
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(errno(&error), Some(libc::EPERM));
        let error = failed(libc::ENOENT).call("open").expect_err("failed");
        assert_eq!(
            error.to_string(),
            "the system call open failed: No such file or directory (os error 2)"
        );
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(errno(&io::Error::other("no number")), None);
    }
}
