//! Programs that run subjects.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::child::{Child, Deadline, Failure};
use super::plan::MeasureError;
use super::protocol::Work;
use crate::subject::SubjectSpec;

/// The most subjects of a runner.
const MAX_LISTED: usize = 1000;

/// The name of this program in results, as the program that ran a cache.
pub const OWN_LABEL: &str = "haypile";

/// A runner: a program that measures caches by the protocol of `docs/job.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// The path of the runner's executable file.
    pub program: PathBuf,
    /// The arguments of the runner's command that precede those of the job protocol, such as `lab` of the program
    /// `haypile`.
    pub arguments: Vec<OsString>,
    /// The name by which results call the runner.
    pub label: String,
    /// Whether the runner does several jobs in one process (`run-jobs`), if a plan asks for that.
    pub several_jobs: bool,
}

/// A subject (cache) in the list that a runner prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of the listed subject (cache): the part before the first colon.
    pub name: String,
    /// The syntax of the listed subject's name and options, such as `memory:OPTIONS`.
    pub usage: String,
    /// The programming language that the listed cache is used from.
    pub language: String,
    /// The version of the listed cache.
    pub version: String,
    /// A description of the listed subject (cache), for people.
    pub help: String,
}

impl Runner {
    /// Returns a runner (program that measures caches) that is a `haypile` program, which runs its own caches; results
    /// call it `label`.
    pub fn haypile(program: impl Into<PathBuf>, label: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            arguments: vec!["lab".into()],
            label: label.into(),
            several_jobs: false,
        }
    }

    /// Returns a runner (program that measures caches) that is this program itself, which runs its own caches.
    ///
    /// # Errors
    ///
    /// The system does not tell the path of this program.
    pub fn own() -> io::Result<Self> {
        let program = env::current_exe().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot find this program's own file: {error}"))
        })?;
        Ok(Self::haypile(program, OWN_LABEL))
    }

    /// Returns a runner (program that measures caches) that is the program of another cache; results call it by its
    /// file name.
    pub fn rival(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        let label = program.file_stem().map(|name| name.to_string_lossy().into_owned());
        let label = label.unwrap_or_else(|| program.display().to_string());
        Self { program, arguments: Vec::new(), label, several_jobs: false }
    }

    /// Returns the command that starts the runner for a job and a subject (cache), as the job's process number
    /// `process`.
    pub(super) fn job(&self, work: Work<'_>, subject: &SubjectSpec, process: u32) -> Command {
        let mut command = self.command("run-job");
        command.arg(absolute(work.job)).arg(subject.as_str());
        // A runner that knows nothing of several processes can still be one.
        if work.processes > 1 {
            command.arg("--process").arg(process.to_string());
        }
        if let Some(place) = work.place {
            command.current_dir(place);
        }
        command
    }

    /// Returns the command that starts the runner for several jobs on a subject (cache), each of which will be in the
    /// directory of `work` when its turn comes.
    pub(super) fn jobs(&self, work: Work<'_>, subject: &SubjectSpec) -> Command {
        let mut command = self.command("run-jobs");
        command.arg(absolute(work.job)).arg(subject.as_str());
        if let Some(place) = work.place {
            command.current_dir(place);
        }
        command
    }

    /// Returns the command that starts the runner with a verb of the job protocol, such as `run-job`. The caller adds
    /// the arguments of the verb.
    pub fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(self.absolute_program());
        command.args(&self.arguments).arg(verb).stdin(Stdio::piped());
        command
    }

    /// The program for a process that works elsewhere. One without a directory is looked for where
    /// programs are.
    fn absolute_program(&self) -> PathBuf {
        let has_directory = self.program.parent().is_some_and(|parent| parent != Path::new(""));
        if has_directory { absolute(&self.program) } else { self.program.clone() }
    }

    /// Asks the runner for the list of its subjects (caches), and waits for `limit` at most.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Refused`] if it says that it cannot run; [`MeasureError::NoRunner`] if it does
    /// not answer as a runner does, within `limit`.
    pub fn subjects(&self, limit: Duration) -> Result<Vec<Listed>, MeasureError> {
        let command = self.command("list-subjects");
        let program = self.program.display().to_string();
        match self.read_subjects(command, limit) {
            Ok(Ok(listed)) => Ok(listed),
            Ok(Err(RunnerRefusal(why))) => Err(MeasureError::Refused { program, why }),
            Err(wrong) => Err(MeasureError::NoRunner { program, wrong }),
        }
    }

    fn read_subjects(
        &self,
        command: Command,
        limit: Duration,
    ) -> Result<Result<Vec<Listed>, RunnerRefusal>, String> {
        let failed = |failure| match failure {
            Failure::Late(error) | Failure::Failed(error) => error,
            Failure::Interrupted => unreachable!("nobody interrupts it"),
        };
        let mut child = Child::spawn(command, &self.label).map_err(failed)?;
        let deadline = Deadline::after(limit);
        let mut listed = Vec::new();
        while let Some(line) = child.line_or_end(deadline, &|| false).map_err(failed)? {
            if let Some(why) = line.strip_prefix("error ") {
                return Ok(Err(RunnerRefusal(why.to_owned())));
            }
            let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
            let Ok([name, usage, language, version, help]) = <[String; 5]>::try_from(fields) else {
                return Err(format!("it said '{line}', and not five fields parted by tabs"));
            };
            listed.push(Listed { name, usage, language, version, help });
            if listed.len() > MAX_LISTED {
                return Err(format!("it lists more than {MAX_LISTED} subjects"));
            }
        }
        child.finish(deadline, &|| false).map_err(failed)?;
        if listed.is_empty() {
            return Err("it lists no subjects".to_owned());
        }
        Ok(Ok(listed))
    }
}

/// Why a runner says that it cannot run.
struct RunnerRefusal(String);

/// The path from the root on; where there is no working directory, as it is.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
