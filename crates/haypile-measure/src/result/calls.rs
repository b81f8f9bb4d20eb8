//! The system calls of a traced start for files and folders.

use serde::{Deserialize, Serialize};

/// Counts of system calls for files and folders, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCounts {
    /// Attempts to open a file or folder (open, openat, openat2, creat), whether they succeeded or not.
    pub open: u64,
    /// Calls that ask for the status of a path or of an open file (stat, lstat, fstat, newfstatat,
    /// statx), or whether a path may be used (access, faccessat).
    pub stat: u64,
    /// Calls that list the names in a folder (getdents).
    pub getdents: u64,
    /// Calls that read from a file (read, pread64, readv, preadv), not from pipes and sockets.
    pub read: u64,
}

impl CallCounts {
    /// The kinds of system calls that are counted, by their names in results.
    pub const KINDS: [&'static str; 4] = ["getdents", "stat", "open", "read"];

    /// Returns the count of one kind of system call; 0 for an unknown name.
    pub fn of(&self, kind: &str) -> u64 {
        match kind {
            "getdents" => self.getdents,
            "stat" => self.stat,
            "open" => self.open,
            "read" => self.read,
            _ => 0,
        }
    }

    /// Returns the number of system calls of all kinds together.
    pub fn all(&self) -> u64 {
        self.open + self.stat + self.getdents + self.read
    }

    /// Adds the counts of other system calls to these.
    pub fn add(&mut self, other: Self) {
        self.open += other.open;
        self.stat += other.stat;
        self.getdents += other.getdents;
        self.read += other.read;
    }
}

/// Counts of the system calls for one folder and the files in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderCalls {
    /// The path of the folder that system calls used.
    pub path: String,
    /// The counts of system calls for the folder and the files in it.
    #[serde(flatten)]
    pub calls: CallCounts,
}

/// The system calls of a command's start that was traced instead of timed, and the differences from a start in another
/// condition, such as without the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCalls {
    /// The counts of all system calls of the program's start.
    pub calls: CallCounts,
    /// The number of bytes that the program's start read from files by system calls, not through mappings.
    pub read_bytes: u64,
    /// The counts of the start's system calls by folder. Small counts are added to a folder above.
    pub folders: Vec<FolderCalls>,
    /// The number of files that this start of the command opened, and the start that it is compared with did not.
    pub only_files: u64,
    /// The paths of some of the files that only this program's start opened, the largest first.
    pub only: Vec<String>,
    /// The programs that this start of the command ran, and the start that it is compared with did not.
    pub only_programs: Vec<String>,
    /// Texts about files which show that a program's start without the cache under test has another cache of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_cache: Vec<String>,
    /// Whether the lists of files and folders were cut, because there were too many.
    #[serde(default)]
    pub is_cut: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_and_a_row_survives_its_json() {
        let calls = CallCounts { open: 1, stat: 20, getdents: 300, read: 4_000 };
        assert_eq!(CallCounts::KINDS.map(|kind| calls.of(kind)).iter().sum::<u64>(), calls.all());
        let folder = FolderCalls { path: "/usr".to_owned(), calls };
        let all = StartCalls { calls, folders: vec![folder], ..StartCalls::default() };
        let text = serde_json::to_string(&all).unwrap();
        assert!(text.contains(r#""path":"/usr","open":1"#), "{text}");
        assert_eq!(serde_json::from_str::<StartCalls>(&text).unwrap(), all);
    }
}
