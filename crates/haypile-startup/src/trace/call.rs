//! System calls that ask for files and folders.

/// The purpose of a traced system call: opening a file, asking for its status, listing a folder or reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Opening a file or folder.
    Open,
    /// Asking for the status of a path, or whether it may be used.
    Stat,
    /// Reading names of a folder.
    List,
    /// Reading from a file.
    Read,
}

/// The argument of a system call that names its file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A path, in the argument at this index.
    Path(usize),
    /// The call names a path relative to an open folder: the argument at this index is the folder's descriptor, the next
    /// one the path.
    At(usize),
    /// A descriptor, in the argument at this index.
    Descriptor(usize),
}

/// A kind of system call that a trace counts: its purpose, and the argument with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) kind: Kind,
    pub(super) subject: Subject,
    /// The index of the system call's argument with the flags of `open`; `None` for other system calls.
    pub(super) flags: Option<usize>,
}

/// Returns the purpose of a system call and its argument that names the file, by the call's number; `None` if such
/// calls are not counted.
pub(super) fn known(number: i64) -> Option<Known> {
    use Kind::{List, Open, Read, Stat};
    use Subject::{At, Descriptor, Path};
    let of = |kind, subject, flags| Some(Known { kind, subject, flags });
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_open => return of(Open, Path(0), Some(1)),
        libc::SYS_creat => return of(Open, Path(0), None),
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_access => return of(Stat, Path(0), None),
        libc::SYS_getdents => return of(List, Descriptor(0), None),
        _ => {}
    }
    match number {
        libc::SYS_openat => of(Open, At(0), Some(2)),
        // Its flags are in memory: it counts as one that reads.
        libc::SYS_openat2 => of(Open, At(0), None),
        libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_faccessat | libc::SYS_faccessat2 => {
            of(Stat, At(0), None)
        }
        libc::SYS_fstat => of(Stat, Descriptor(0), None),
        libc::SYS_getdents64 => of(List, Descriptor(0), None),
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2 => of(Read, Descriptor(0), None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_kinds_are_known_and_others_are_not() {
        let kind = |number| known(number).map(|it| it.kind);
        assert_eq!(kind(libc::SYS_openat), Some(Kind::Open));
        assert_eq!(kind(libc::SYS_newfstatat), Some(Kind::Stat));
        assert_eq!(kind(libc::SYS_getdents64), Some(Kind::List));
        assert_eq!(kind(libc::SYS_pread64), Some(Kind::Read));
        assert_eq!(kind(libc::SYS_write), None);
    }
}
