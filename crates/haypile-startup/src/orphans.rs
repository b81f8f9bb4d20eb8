//! The tree of a supervisor that was killed: its processes become children of this one, which ends
//! them. A control group would end them as well, where there is one.

use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, waitid, waitpid,
};

use super::tree::{self, Process};

/// The longest wait for killed processes to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at whether they are.
const PAUSE: Duration = Duration::from_millis(2);

/// A guard by which this process, while the guard lives, becomes the parent of a supervisor's
/// processes if the supervisor dies.
#[derive(Debug)]
pub(super) struct Orphanage {
    own: i32,
    /// Children that this process had before; they are none of the supervisor's.
    known: Vec<i32>,
}

impl Orphanage {
    /// Makes this process the parent of a supervisor's processes if the supervisor dies; `None` if
    /// the system does not permit it.
    pub(super) fn open() -> Option<Self> {
        set_child_subreaper(Some(getpid())).ok()?;
        let own = getpid().as_raw_nonzero().get();
        let all = if has_children() { tree::all() } else { Vec::new() };
        let known = all.iter().filter(|process| process.parent == own).map(|process| process.pid);
        Some(Self { own, known: known.collect() })
    }

    /// Kills all processes that this process has become the parent of, and returns whether they are
    /// gone.
    pub(super) fn close(self) -> bool {
        let deadline = Instant::now() + KILL_PATIENCE;
        while has_children() {
            let orphans = self.orphans(&tree::all());
            if orphans.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                return false;
            }
            tree::kill(|all| self.with_descendants(all));
            thread::sleep(PAUSE);
            for pid in orphans.into_iter().filter_map(Pid::from_raw) {
                // One that still ends is asked for again.
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        true
    }

    fn orphans(&self, all: &[Process]) -> Vec<i32> {
        let own = all.iter().filter(|process| process.parent == self.own);
        own.map(|process| process.pid).filter(|pid| !self.known.contains(pid)).collect()
    }

    fn with_descendants(&self, all: &[Process]) -> Vec<i32> {
        let orphans = self.orphans(all);
        let below = orphans.iter().flat_map(|orphan| tree::descendants(*orphan, all));
        let below: Vec<i32> = below.map(|process| process.pid).collect();
        orphans.into_iter().chain(below).collect()
    }
}

impl Drop for Orphanage {
    fn drop(&mut self) {
        let _ = set_child_subreaper(None);
    }
}

/// Whether this process has children, running or ended.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}
