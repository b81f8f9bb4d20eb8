//! Untimed executions of a job before the one that is measured.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use super::drive::{Blind, Lane, Tally};
use super::error::RunnerError;
use super::part;
use crate::job::Job;
use crate::meter::SystemMeter;
use crate::subject::{Subject, SubjectError};

/// Does the warm-up of a job: its timed operations, several times, on a separate cache in a separate folder, which is
/// removed. Returns the counts of hits, failures and so on.
pub(super) fn warm_up(
    job: &Job,
    process: u32,
    lanes: &mut [Lane<'_>],
    open: impl FnOnce() -> Result<Box<dyn Subject>, SubjectError>,
) -> Result<Tally, RunnerError> {
    let executions = job.settings().warm_up;
    if executions == 0 {
        return Ok(Tally::default());
    }
    let _folder = Folder::enter(Path::new(&format!("warm-up.{process}")))?;
    let mut subject = open()?;
    let lane = lanes.first_mut().expect("a job has a thread");
    let mut tally = part::alone(&mut *subject, job.prepare(), lane, &mut Blind)?;
    let timed = part::timed(&mut *subject, &SystemMeter, job.timed(), lanes, executions)?;
    tally.add(timed.tally);
    Ok(tally)
}

/// A working directory for some time.
struct Folder {
    path: PathBuf,
    before: PathBuf,
}

impl Folder {
    fn enter(path: &Path) -> Result<Self, RunnerError> {
        let failed = |source| RunnerError::WarmUp { path: path.into(), source };
        let before = env::current_dir().map_err(failed)?;
        // Of a runner that was killed.
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        fs::create_dir(path).and_then(|()| env::set_current_dir(path)).map_err(failed)?;
        Ok(Self { path: before.join(path), before })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Where this fails, the cache that is measured is opened in the folder: it has files of its own
        // there as well, and whoever started the runner removes both.
        if env::set_current_dir(&self.before).is_ok() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
