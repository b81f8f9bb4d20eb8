//! A job on one contender: as many processes as are asked for, from their start to their results.

use std::collections::BTreeMap;
use std::path::Path;

use super::child::{Child, Deadline, Failure};
use super::plan::{Contender, Limits, Observer};
use super::server;

/// The most lines of results.
const MAX_LINES: usize = 1000;

/// How much of what a runner says is shown.
const SHOWN_CHARS: usize = 80;

/// What processes do, and where.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    /// The directory of the job.
    pub(super) job: &'a Path,
    /// The working directory, if it is not that of this process.
    pub(super) place: Option<&'a Path>,
    pub(super) processes: usize,
}

/// What the processes said.
#[derive(Debug)]
pub(super) struct Done {
    /// The results of each process by name.
    pub(super) results: Vec<BTreeMap<String, String>>,
    pub(super) server_cpu_ns: Option<u64>,
}

/// Starts the processes, lets them begin together, and collects what they say.
pub(super) fn run(
    contender: &Contender,
    work: Work<'_>,
    limits: &Limits,
    observer: &dyn Observer,
) -> Result<Done, Failure> {
    let runner = &contender.runner;
    let start = |_| Child::spawn(runner.job(work, &contender.subject), &runner.label);
    let mut children = (0..work.processes).map(start).collect::<Result<Vec<_>, _>>()?;
    let deadline = children[0].deadline(limits.prepare);
    await_all(&mut children, "ready", deadline, observer)?;
    let server_before = server_cpu_ns(contender)?;
    let deadline = children[0].deadline(limits.timed);
    for child in &mut children {
        child.say("go\n");
    }
    await_all(&mut children, "timed", deadline, observer)?;
    let server_after = server_cpu_ns(contender)?;
    for child in &mut children {
        child.say("verify\n");
    }
    let results = children.iter_mut().map(|child| {
        let results = results(child, deadline, observer)?;
        child.finish(deadline, observer)?;
        Ok(results)
    });
    let server_cpu_ns = server_before.zip(server_after);
    Ok(Done {
        results: results.collect::<Result<_, Failure>>()?,
        server_cpu_ns: server_cpu_ns.map(|(before, after)| after.saturating_sub(before)),
    })
}

fn server_cpu_ns(contender: &Contender) -> Result<Option<u64>, Failure> {
    let Some(pid) = contender.server_pid else { return Ok(None) };
    let gone = || Failure::Failed(format!("there is no server with the process number {pid}"));
    server::cpu_ns(pid).ok_or_else(gone).map(Some)
}

fn await_all(
    children: &mut [Child],
    due: &str,
    deadline: Deadline,
    observer: &dyn Observer,
) -> Result<(), Failure> {
    for child in children {
        let line = child.line(deadline, observer)?;
        if line != due {
            return Err(refused(&line, due));
        }
    }
    Ok(())
}

fn results(
    child: &mut Child,
    deadline: Deadline,
    observer: &dyn Observer,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut results = BTreeMap::new();
    loop {
        let line = child.line(deadline, observer)?;
        if line == "end" {
            return Ok(results);
        }
        let is_name = |name: &str| {
            let known =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            !name.is_empty() && name.bytes().all(known)
        };
        let Some((name, value)) = line.split_once(' ').filter(|(name, _)| is_name(name)) else {
            return Err(refused(&line, "NAME VALUE"));
        };
        if name == "error" {
            return Err(refused(&line, ""));
        }
        if results.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::Failed(format!("the runner said {name} twice")));
        }
        if results.len() > MAX_LINES {
            return Err(Failure::Failed(format!("the runner gave more than {MAX_LINES} results")));
        }
    }
}

/// What a line says that is not the one that is due: its own error, or garbage.
fn refused(line: &str, due: &str) -> Failure {
    if let Some(error) = line.strip_prefix("error ") {
        return Failure::Failed(error.to_owned());
    }
    let shown: String = line.chars().take(SHOWN_CHARS).collect();
    Failure::Failed(format!("the runner said '{}' where '{due}' was due", shown.escape_debug()))
}
