//! Reasons why a file cannot be opened, made or used.

use std::io;
use std::path::{Path, PathBuf};

use crate::compress::{Compression, Method};
use crate::file::format::header::HeaderError;
use crate::file::format::layout::MAX_OWNER_SLOTS;
use crate::file::platform::memory_limit::MemoryLimit;

/// The reason why a cache file could not be opened or created. Its text follows the URL and ": ".
#[derive(Debug, thiserror::Error)]
pub(in crate::file) enum FileError {
    #[error("{} cannot be used as a cache: {source}", path.display())]
    Header { path: PathBuf, source: HeaderError },
    #[error(
        "{} does not exist, and a cache that is opened only for reading is not created; open it \
         once for writing",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("{} is a {what} and not an ordinary file; name another path", path.display())]
    NoFile { path: PathBuf, what: &'static str },
    #[error(
        "{} lies on {name}, {}; put it on a local one, such as /dev/shm or /var/tmp, or allow it \
         with allow_network=yes if no other machine uses the file",
        path.display(),
        "a network file system, where processes of several machines would destroy the mapped file"
    )]
    Network { path: PathBuf, name: &'static str },
    #[error(
        "{} lies on {name}, which may be a network file system, where processes of several \
         machines would destroy the mapped file; put it on a local one, such as /dev/shm or \
         /var/tmp, or allow it with allow_network=yes if no other machine uses the file",
        path.display()
    )]
    PerhapsNetwork { path: PathBuf, name: &'static str },
    #[error(
        "{} belongs to another user (uid {uid}), which could make this program read anything; \
         remove it, choose another path, or allow that with allow_shared=yes",
        path.display()
    )]
    Foreign { path: PathBuf, uid: u32 },
    #[error(
        "{} can be written by users other than its owner (mode {mode:o}), which could make this \
         program read anything; chmod it to 600, or allow that with allow_shared=yes",
        path.display()
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error(
        "{} was made with {} and is opened with {}; leave compress= out to use the \
         file's own, or replace it with recreate=yes, which empties it",
        path.display(), compression(*made), compression(*wanted)
    )]
    Compression { path: PathBuf, made: Option<Method>, wanted: Option<Method> },
    #[error(
        "there is no room for {bytes} bytes at {}: {source}; choose a smaller size= or another \
         path",
        path.display()
    )]
    NoRoom { path: PathBuf, bytes: u64, source: io::Error },
    #[error(
        "{} would have {bytes} bytes, and this process may write files of at most {limit_bytes} \
         (RLIMIT_FSIZE); choose a smaller size=, or raise that limit (ulimit -f)",
        path.display()
    )]
    FileSizeLimit { path: PathBuf, bytes: u64, limit_bytes: u64 },
    #[error(
        "there is no memory for {bytes} bytes at {}: {limit}, and the kernel kills processes that \
         exceed it; choose a smaller size= or a path on a disk, or raise that limit",
        path.display()
    )]
    MemoryLimit { path: PathBuf, bytes: u64, limit: MemoryLimit },
    #[error(
        "{} lies on btrfs, which needs free space for each page that is written, and has \
         {free_bytes} bytes of it; this process only reads the cache until {needed_bytes} bytes \
         are free, because a write could block forever; free some space, or put the cache on \
         another file system",
        path.display()
    )]
    LowSpace { path: PathBuf, free_bytes: u64, needed_bytes: u64 },
    #[error(
        "{} is a sparse file, such as a copy that omits zeros, and reading its holes would take \
         memory of its file system; open it once for writing, which fills the holes",
        .0.display()
    )]
    Holes(PathBuf),
    #[error("{} is being replaced by another process; try again", .0.display())]
    Replacing(PathBuf),
    #[error("{}", attaching(path, *process))]
    Attaching { path: PathBuf, process: Option<u64> },
    #[error(
        "all {slots} places for processes that write {} are taken; this process only reads the \
         cache until another one ends; a file of 64 MiB has {} places, and mode=ro needs none",
        path.display(), MAX_OWNER_SLOTS
    )]
    Crowded { path: PathBuf, slots: u32 },
    #[error(
        "a process that may only read {} has locked the places of processes that write; this \
         process only reads the cache until that one ends; chmod the file to 600, so that other \
         users cannot do that",
        .0.display()
    )]
    LockedOut(PathBuf),
    #[error(
        "{} names another file since this process changed its root directory (chroot); open the \
         cache after that change",
        .0.display()
    )]
    Chroot(PathBuf),
    #[error("{} was removed; its entries are lost when the last process that uses it ends", .0.display())]
    Removed(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn compression(method: Option<Method>) -> String {
    let name = |method| match Compression::from(method) {
        Compression::Lz4 => "compress=lz4".to_owned(),
        Compression::Zstd { .. } => "compress=zstd".to_owned(),
    };
    method.map_or_else(|| "no compression".to_owned(), name)
}

fn attaching(path: &Path, process: Option<u64>) -> String {
    let path = path.display();
    match process {
        Some(process) => format!(
            "process {process} has been opening {path} for more than two seconds; continue or end \
             that process, and try again"
        ),
        None => format!(
            "a process that may only read {path} has locked it against those that write; end that \
             process, or chmod the file to 600"
        ),
    }
}
