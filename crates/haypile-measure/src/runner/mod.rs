//! The child's side: does one job on one subject, in this process.
//!
//! A program becomes a runner by one call of [`main`]. It is started as
//!
//! - `PROGRAM list-subjects`, and prints a line for each of its subjects: name, usage, language,
//!   version and what it is, with tabs between them;
//! - `PROGRAM run-job DIRECTORY SUBJECT`, and speaks the protocol of `docs/job.md` on its standard
//!   input and output; where several processes do the job, with `--process NUMBER` behind it;
//! - `PROGRAM run-torture ORDERS`, and is one of the processes of `docs/torture.md`.

mod assignment;
mod drive;
mod error;
mod killed;
mod latency;
mod open;
mod part;
mod report;
mod serve;
mod warm_up;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::subject::{Kind, Subjects};
use crate::torture::role::{self, Orders};
pub use assignment::Assignment;
pub use error::RunnerError;
pub use serve::serve;

/// The exit status of a runner that could not do what it was asked for.
const FAILURE: u8 = 2;

/// Runs the main program of a runner: reads its arguments and executes them. The exit status is 0
/// if the job was done, else 2, with the reason on standard error.
pub fn main(subjects: &Subjects) -> ExitCode {
    match dispatch(subjects) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(FAILURE)
        }
    }
}

fn dispatch(subjects: &Subjects) -> Result<(), RunnerError> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let verb = arguments.first().and_then(|verb| verb.to_str());
    match (verb, &arguments[..]) {
        (Some("list-subjects"), [_]) => {
            io::stdout().write_all(list(subjects).as_bytes()).map_err(RunnerError::Parent)
        }
        (Some("run-job"), [_, directory, subject, rest @ ..]) => {
            let subject = subject.to_str().and_then(|subject| subject.parse().ok());
            let subject = subject.ok_or(RunnerError::Usage)?;
            let process = process(rest)?;
            run(
                subjects,
                &Assignment { directory: Path::new(directory), subject: &subject, process },
            )
        }
        (Some("run-torture"), [_, orders @ ..]) => {
            let orders: Vec<_> =
                orders.iter().map(|order| order.to_string_lossy().into_owned()).collect();
            let orders = Orders::parse(&orders).map_err(RunnerError::Orders)?;
            let open = |orders: &Orders| role::open_subject(subjects, orders);
            role::run(&orders, &open).map_err(RunnerError::Parent)
        }
        _ => Err(RunnerError::Usage),
    }
}

/// Which of the processes of a job this is, if that is said.
fn process(arguments: &[OsString]) -> Result<Option<u32>, RunnerError> {
    match arguments {
        [] => Ok(None),
        [name, number] if name == "--process" => {
            let number = number.to_str().and_then(|number| number.parse().ok());
            number.map(Some).ok_or(RunnerError::Usage)
        }
        _ => Err(RunnerError::Usage),
    }
}

/// Does a job and speaks the runner's protocol on standard input and output. This process is killed
/// when its parent process ends.
///
/// # Errors
///
/// [`RunnerError`].
pub fn run(subjects: &Subjects, assignment: &Assignment<'_>) -> Result<(), RunnerError> {
    // Where the system refuses, a runner whose parent was killed ends after its job.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    serve(subjects, assignment, &mut io::stdin().lock(), &mut io::stdout().lock())
}

/// Returns the list of a runner's subjects (caches) as text, one per line, as `list-subjects`
/// prints it; without hidden ones.
pub fn list(subjects: &Subjects) -> String {
    let shown = subjects.kinds().filter(|kind| !kind.hidden);
    let fields = |kind: &Kind| [kind.name, kind.usage, kind.language, kind.version, kind.help];
    shown.flat_map(|kind| [fields(kind).join("\t"), "\n".to_owned()]).collect()
}
