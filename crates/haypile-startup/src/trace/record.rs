//! The record of a traced start: its files, and its calls by folder.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use haypile_measure::result::CallCounts;
use serde::{Deserialize, Serialize};

use super::call::{Kind, Known, Subject, known};
use super::ptrace::{self, Call};

/// The most files, and the most folders, that are remembered.
const MOST_PATHS: usize = 50_000;
/// The longest path that is read of a process, in bytes.
const PATH_BYTES: usize = 4096;
/// Places of the kernel's own, without files of a program or its cache.
const APART: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The use of one file by a traced start of a command: whether it was written, with its size and
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUse {
    /// Whether the file was ever opened for writing.
    pub is_written: bool,
    /// The size of the file in bytes when it was first opened.
    pub bytes: u64,
    /// The time of the file's last change before it was first opened, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// The system calls, files and folders that a traced start of a command used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTrace {
    /// The counts of all system calls on files and folders that the start made.
    pub calls: CallCounts,
    /// The number of bytes that the start read from files.
    pub read_bytes: u64,
    /// Counts of the start's system calls by folder: the folder of the file, or the folder itself
    /// if it was opened or listed.
    pub folders: BTreeMap<PathBuf, CallCounts>,
    /// The regular files that the start opened or executed.
    pub files: BTreeMap<PathBuf, FileUse>,
    /// The programs that the start executed, with the number of executions of each.
    pub programs: BTreeMap<PathBuf, u64>,
    /// Whether the traced start used more files or folders than the lists of these can hold.
    pub is_cut: bool,
}

/// A recorder of the system calls of all processes of a traced start.
#[derive(Debug)]
pub(super) struct Recorder {
    file: PathBuf,
    trace: CallTrace,
    /// The calls that were entered and not left, by process.
    pending: HashMap<i32, Pending>,
    known: HashSet<i32>,
}

#[derive(Debug)]
struct Pending {
    call: Known,
    /// The path that it names, or that its descriptor has.
    path: Option<PathBuf>,
    flags: u64,
}

impl Recorder {
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            trace: CallTrace::default(),
            pending: HashMap::new(),
            known: HashSet::new(),
        }
    }

    /// Whether the process of the traced command has begun.
    pub(super) fn has_begun(&self) -> bool {
        !self.trace.programs.is_empty() || !self.known.is_empty()
    }

    /// Records a process as seen, and returns whether it was new.
    pub(super) fn is_new(&mut self, pid: i32) -> bool {
        self.known.insert(pid)
    }

    /// Returns the traced processes and threads that have not ended.
    pub(super) fn living(&self) -> impl Iterator<Item = i32> {
        self.known.iter().copied()
    }

    pub(super) fn forget(&mut self, pid: i32) {
        self.pending.remove(&pid);
        // Its number may be used again.
        self.known.remove(&pid);
    }

    /// Writes the recorded calls and files to the trace file.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        let text = serde_json::to_vec(&self.trace)?;
        fs::write(&self.file, text).with_context(|| self.file.display().to_string())
    }

    /// Records that a traced process begins to execute another program: the program and its loader
    /// count as used files.
    pub(super) fn at_exec(&mut self, pid: i32) {
        self.known.insert(pid);
        self.pending.remove(&pid);
        if let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) {
            *self.trace.programs.entry(program).or_default() += 1;
        }
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
        for path in paths {
            let path = Path::new(path);
            if let Ok(metadata) = fs::metadata(path) {
                self.used(path, &metadata, false);
            }
        }
    }

    /// Records that a traced process enters or leaves a system call.
    pub(super) fn at_call(&mut self, pid: i32) {
        match ptrace::call(pid) {
            Some(Call::Enter { number, arguments, is_native: true }) => {
                let Some(call) = known(number) else { return };
                let path = path(pid, call.subject, &arguments);
                let flags = call.flags.map_or(0, |at| arguments[at]);
                self.pending.insert(pid, Pending { call, path, flags });
            }
            Some(Call::Leave(result)) => {
                if let Some(pending) = self.pending.remove(&pid) {
                    self.count(pid, pending, result);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, pid: i32, pending: Pending, result: Option<u64>) {
        let Pending { call, path, flags } = pending;
        let path = path.filter(|path| is_counted(path));
        let bump: fn(&mut CallCounts) -> &mut u64 = match call.kind {
            Kind::Open => |counts| &mut counts.open,
            Kind::Stat => |counts| &mut counts.stat,
            Kind::List => |counts| &mut counts.getdents,
            Kind::Read => |counts| &mut counts.read,
        };
        // Of pipes, sockets and the kernel's own files, nothing is to be told.
        let Some(mut path) = path else { return };
        let mut is_folder = call.kind == Kind::List;
        if call.kind == Kind::Open
            && let Some(descriptor) = result
        {
            let link = format!("/proc/{pid}/fd/{descriptor}");
            if let (Ok(real), Ok(metadata)) = (fs::read_link(&link), fs::metadata(&link)) {
                is_folder = metadata.is_dir();
                let writes = i32::try_from(flags).unwrap_or(0) & libc::O_ACCMODE;
                self.used(&real, &metadata, writes != libc::O_RDONLY);
                path = real;
            }
        }
        *bump(&mut self.trace.calls) += 1;
        if call.kind == Kind::Read {
            self.trace.read_bytes += result.unwrap_or(0);
        }
        let folder = if is_folder { Some(path.as_path()) } else { path.parent() };
        let Some(folder) = folder else { return };
        if let Some(counts) = self.trace.folders.get_mut(folder) {
            *bump(counts) += 1;
        } else if self.trace.folders.len() < MOST_PATHS {
            *bump(self.trace.folders.entry(folder.to_owned()).or_default()) += 1;
        } else {
            self.trace.is_cut = true;
        }
    }

    fn used(&mut self, path: &Path, metadata: &fs::Metadata, is_written: bool) {
        if !metadata.is_file() || !is_counted(path) {
            return;
        }
        if let Some(file) = self.trace.files.get_mut(path) {
            file.is_written |= is_written;
        } else if self.trace.files.len() < MOST_PATHS {
            let changed_ns = metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec();
            let file = FileUse { is_written, bytes: metadata.len(), changed_ns };
            self.trace.files.insert(path.to_owned(), file);
        } else {
            self.trace.is_cut = true;
        }
    }
}

fn is_counted(path: &Path) -> bool {
    path.is_absolute() && !APART.iter().any(|apart| path.starts_with(apart))
}

/// Returns what a call is about, as an absolute path; `None` for what is not a file or folder.
fn path(pid: i32, subject: Subject, arguments: &[u64; 6]) -> Option<PathBuf> {
    // A descriptor is a number of 32 bits, in an argument of 64.
    let descriptor =
        |at: usize| u32::try_from(arguments[at] & 0xFFFF_FFFF).map_or(-1, u32::cast_signed);
    let open = |descriptor: i32| fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok();
    let (folder, named) = match subject {
        Subject::Descriptor(at) => return open(descriptor(at)),
        Subject::Path(at) => (libc::AT_FDCWD, text(pid, arguments[at])?),
        Subject::At(at) => (descriptor(at), text(pid, arguments[at + 1]).unwrap_or_default()),
    };
    if named.is_absolute() {
        return Some(plain(&named));
    }
    let base = if folder == libc::AT_FDCWD {
        fs::read_link(format!("/proc/{pid}/cwd")).ok()?
    } else {
        open(folder)?
    };
    Some(plain(&base.join(named)))
}

/// Reads a path from the memory of a process.
fn text(pid: i32, address: u64) -> Option<PathBuf> {
    if address == 0 {
        return None;
    }
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut text = Vec::new();
    // A read ends at the end of a page: what is behind it may not be there.
    let mut at = address;
    while text.len() < PATH_BYTES {
        let mut part = [0; 256];
        let room = 256 - usize::try_from(at % 256).unwrap_or(0);
        let read = match memory.read_at(&mut part[..room], at) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        if let Some(end) = part[..read].iter().position(|byte| *byte == 0) {
            text.extend(&part[..end]);
            return Some(PathBuf::from(OsString::from_vec(text)));
        }
        if read == 0 {
            return None;
        }
        text.extend(&part[..read]);
        at += read as u64;
    }
    None
}

/// Removes `.` and `..`, by the text: links stay as they are.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain_and_the_kernels_own_do_not_count() {
        assert_eq!(plain(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(plain(Path::new("/../x")), Path::new("/x"));
        assert!(is_counted(Path::new("/usr/lib")) && !is_counted(Path::new("/proc/self/maps")));
        assert!(!is_counted(Path::new("pipe:[7]")));
    }

    #[test]
    fn a_text_is_read_from_the_memory_of_a_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        let long = format!("/{}\0", "x".repeat(1_000));
        let read = text(own, long.as_ptr() as u64).unwrap();
        assert_eq!(read.as_os_str().len(), 1_001);
        assert_eq!(text(own, 0), None);
        assert_eq!(text(own, 8), None);
    }
}
