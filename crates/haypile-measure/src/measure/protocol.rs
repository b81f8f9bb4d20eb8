//! A job on one contender: the requested number of processes, from their start to their results.

use std::collections::BTreeMap;
use std::path::Path;

use super::child::{Child, Deadline, Failure};
use super::clocks::SeenClocks;
use super::memory::SeenMemory;
use super::plan::{Contender, RunnerLimits};
use crate::meter::LoadWatch;
use crate::result::Load;

/// The most lines of results.
const MAX_LINES: usize = 1000;

/// The length of a runner's text that messages show.
const SHOWN_CHARS: usize = 80;

/// A job for one or several processes, with the working directory of these processes.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    /// The directory that contains the job.
    pub(super) job: &'a Path,
    /// The working directory of the job's processes; `None` for the working directory of this
    /// process.
    pub(super) place: Option<&'a Path>,
    pub(super) processes: u32,
}

/// The results by name that one process of a job printed, and what the laboratory (the measuring
/// program) saw of that process.
pub(super) struct Done {
    pub(super) results: BTreeMap<String, String>,
    pub(super) seen: SeenClocks,
    pub(super) memory: Option<SeenMemory>,
}

/// The results of all processes of a job, and the other work on the machine during it.
pub(super) struct Ran {
    /// The results of each process of the job, in the order of their numbers.
    pub(super) done: Vec<Done>,
    /// Other work on the machine while the processes of the job ran, which can disturb their times.
    pub(super) load: Load,
}

/// Starts the processes of a job, lets them begin together, and collects their results. The first
/// process has the cache alone until it is ready, and again after the timed part. If one fails, all
/// are ended.
pub(super) fn run(
    contender: &Contender,
    work: Work<'_>,
    limits: &RunnerLimits,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Ran, Failure> {
    let mut processes = Vec::new();
    for number in 0..work.processes {
        let mut process = Process::start(contender, work, number)?;
        process.await_line("ready", Deadline::after(limits.prepare), is_interrupted)?;
        processes.push(process);
    }
    run_ready(&mut processes, work.job, limits, is_interrupted)
}

/// Lets the processes of a job begin, which are all ready, and collects their results.
fn run_ready(
    processes: &mut [Process],
    job: &Path,
    limits: &RunnerLimits,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Ran, Failure> {
    let deadline = Deadline::after(limits.timed);
    for process in &mut *processes {
        process.clocks = Some(SeenClocks::begin(process.child.pid()));
    }
    let watch = LoadWatch::begin();
    for process in &mut *processes {
        process.clocks = process.clocks.map(SeenClocks::go);
        process.child.say("go\n");
    }
    await_all(processes, "timed", deadline, is_interrupted)?;
    // Of all at once, for the first one to verify works while the others wait.
    let seen: Vec<_> = processes.iter_mut().map(Process::seen).collect();
    let load = watch.end(seen.iter().map(SeenClocks::waited_ns).max().flatten());
    let seen: Vec<_> = seen.into_iter().map(SeenClocks::with_group).collect();
    let memories: Vec<_> = processes.iter().map(|it| SeenMemory::of(it.child.pid(), job)).collect();
    let results = processes.iter_mut().zip(seen.into_iter().zip(memories)).map(
        |(process, (seen, memory))| {
            process.child.say("verify\n");
            Ok(Done { results: process.results(deadline, is_interrupted)?, seen, memory })
        },
    );
    Ok(Ran { done: results.collect::<Result<_, _>>()?, load })
}

/// A process of a runner that does several jobs, one after the other: it begins each when it is told to.
pub(super) struct KeptProcess(Process);

impl KeptProcess {
    /// Starts the process, which waits for its first job.
    pub(super) fn start(contender: &Contender, work: Work<'_>) -> Result<Self, Failure> {
        let runner = &contender.runner;
        let child = Child::spawn(runner.jobs(work, &contender.subject), &runner.label)?;
        Ok(Self(Process { child, number: None, clocks: None, goes_on: true }))
    }

    /// Has the process do the job that is in its directory now. Unless it `goes_on`, it has to end
    /// then. After a failure it cannot be used any more.
    pub(super) fn run(
        &mut self,
        job: &Path,
        goes_on: bool,
        limits: &RunnerLimits,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Ran, Failure> {
        let Self(process) = self;
        process.goes_on = goes_on;
        process.child.say("job\n");
        process.await_line("ready", Deadline::after(limits.prepare), is_interrupted)?;
        run_ready(std::slice::from_mut(process), job, limits, is_interrupted)
    }
}

/// Waits for a line of each, in whatever order they come: one that ends or talks nonsense is not
/// noticed only when those before it are done, who may wait for it.
fn await_all(
    processes: &mut [Process],
    due: &str,
    deadline: Deadline,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let mut waiting: Vec<&mut Process> = processes.iter_mut().collect();
    while !waiting.is_empty() {
        let mut still = Vec::new();
        for process in waiting {
            if !process.has_said(due, deadline, is_interrupted)? {
                still.push(process);
            }
        }
        waiting = still;
    }
    Ok(())
}

/// One of the processes of a job.
struct Process {
    child: Child,
    /// The number of the process, where there are several.
    number: Option<u32>,
    clocks: Option<SeenClocks>,
    /// Whether another job comes after this one.
    goes_on: bool,
}

impl Process {
    fn start(contender: &Contender, work: Work<'_>, number: u32) -> Result<Self, Failure> {
        let runner = &contender.runner;
        let command = runner.job(work, &contender.subject, number);
        let child = Child::spawn(command, &runner.label)?;
        let number = (work.processes > 1).then_some(number);
        Ok(Self { child, number, clocks: None, goes_on: false })
    }

    /// The clocks until it said `timed`.
    fn seen(&mut self) -> SeenClocks {
        self.clocks.take().expect("all have begun").end(self.child.said_at())
    }

    fn await_line(
        &mut self,
        due: &str,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        while !self.has_said(due, deadline, is_interrupted)? {}
        Ok(())
    }

    /// Whether it says this line within some moments.
    fn has_said(
        &mut self,
        due: &str,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<bool, Failure> {
        let line = self.child.line_soon(deadline, is_interrupted);
        let said = line.and_then(|line| match line {
            None => Ok(false),
            Some(line) if line == due => Ok(true),
            Some(line) => Err(refused(&line, due)),
        });
        said.map_err(|failure| self.named(failure))
    }

    /// Reads its last lines.
    fn results(
        &mut self,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let results = results(&mut self.child, deadline, is_interrupted).and_then(|results| {
            if !self.goes_on {
                self.child.finish(deadline, is_interrupted)?;
            }
            Ok(results)
        });
        results.map_err(|failure| self.named(failure))
    }

    /// A failure with the number of the process.
    fn named(&self, failure: Failure) -> Failure {
        match (failure, self.number) {
            (Failure::Late(text) | Failure::Failed(text), Some(number)) => {
                Failure::Failed(format!("process {number}: {text}"))
            }
            (failure, _) => failure,
        }
    }
}

fn results(
    child: &mut Child,
    deadline: Deadline,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut results = BTreeMap::new();
    loop {
        let line = child.line(deadline, is_interrupted)?;
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

/// The failure that an unexpected line is: its own error, or garbage.
fn refused(line: &str, due: &str) -> Failure {
    if let Some(error) = line.strip_prefix("error ") {
        return Failure::Failed(error.to_owned());
    }
    let shown: String = line.chars().take(SHOWN_CHARS).collect();
    Failure::Failed(format!("the runner said '{}' where '{due}' was due", shown.escape_debug()))
}
