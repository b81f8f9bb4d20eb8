//! A job from its directory to its results.

use std::io::{BufRead, Read, Write};
use std::sync::Arc;

use super::assignment::Assignment;
use super::drive::{Blind, Lane, Tally};
use super::error::RunnerError;
use super::killed;
use super::open;
use super::part::{self, Timed};
use super::report::{JobReport, one_line};
use super::warm_up::warm_up;
use crate::job::{Interlude, Job, Timing};
use crate::meter::{Memory, Meter, SystemMeter, forget_peak, process_cpu_ns, process_memory_bytes};
use crate::subject::{Found, Room, Subject, SubjectError, Subjects};

/// The longest line that is read of what the starter says.
const MAX_LINE_BYTES: u64 = 80;

/// Does a job and speaks the runner's protocol (`docs/job.md`): the process that started the runner
/// writes `input` and reads `output`. Errors are written to `output`, and returned.
///
/// # Errors
///
/// [`RunnerError`].
pub fn serve(
    subjects: &Subjects,
    assignment: &Assignment<'_>,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<(), RunnerError> {
    let result = attempt(subjects, assignment, input, output);
    if let Err(error) = &result {
        // Where nobody listens any more, there is nobody to tell.
        let _ = say(output, &format!("error {}\n", one_line(&error.to_string())));
    }
    result
}

fn attempt(
    subjects: &Subjects,
    assignment: &Assignment<'_>,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<(), RunnerError> {
    let process = assignment.process.unwrap_or(0);
    let job = Job::read_for(assignment.directory, process)?;
    let mut lanes: Vec<Lane<'_>> = job.timed().iter().map(|_| Lane::new(&job)).collect();
    forget_peak();
    let before = SystemMeter.memory();
    let settings = job.settings();
    let processes = settings.processes;
    if processes > 1 && assignment.process.is_none() {
        return Err(RunnerError::WhichProcess { processes });
    }
    let is_first = process == 0;
    let room = Room {
        processes,
        found: match settings.timing {
            Timing::Total | Timing::Each if is_first => Found::Nothing,
            _ => Found::Cache,
        },
        origin: settings.origin,
        ..Room::new(settings.capacity_bytes, settings.capacity_entries)
    };
    let open = || subjects.open(assignment.subject, &room);
    let is_killed = settings.interlude == Interlude::Killed;
    let only_prepares = is_killed && killed::only_prepares();
    let mut session = if settings.timing == Timing::Open {
        say(output, "ready\n")?;
        await_line(input, "go")?;
        Session::begin_with_opening(&job, &mut lanes, before, open)?
    } else {
        let mut session = if is_killed && !only_prepares {
            let (report, others) = killed::prepare()?;
            let left = Room { processes: 2, found: Found::Cache, ..room };
            let subject = subjects.open(assignment.subject, &left)?;
            Session { others, report, ..Session::new(&job, is_first, subject, before) }
        } else {
            let alone = Room { processes: 1, found: Found::Nothing, ..room };
            let warmed =
                warm_up(&job, process, &mut lanes, || subjects.open(assignment.subject, &alone))?;
            let mut session = Session::new(&job, is_first, open()?, before);
            session.others = warmed;
            session.prepare(&mut lanes)?;
            session
        };
        if only_prepares {
            say(output, &killed::prepared(session.report, session.others).text())?;
            // It is killed while it waits for a line that does not come.
            return await_line(input, "go");
        }
        say(output, "ready\n")?;
        await_line(input, "go")?;
        session.measure(&mut lanes)?;
        session
    };
    say(output, "timed\n")?;
    await_line(input, "verify")?;
    session.look_again(&mut lanes)?;
    say(output, &session.report(&lanes).text())
}

/// A subject that does a job.
struct Session<'job> {
    job: &'job Job,
    /// Whether this is the process that verifies what all have written.
    is_first: bool,
    subject: Box<dyn Subject>,
    meter: Arc<dyn Meter>,
    before: Option<Memory>,
    after: Option<Memory>,
    timed: Timed,
    /// The processor time of the subject's server before the timed part.
    server_cpu_ns: Option<u64>,
    /// The outcomes outside of the timed part.
    others: Tally,
    report: JobReport,
}

impl<'job> Session<'job> {
    fn new(
        job: &'job Job,
        is_first: bool,
        subject: Box<dyn Subject>,
        before: Option<Memory>,
    ) -> Self {
        let (meter, before) = match subject.meter() {
            Some(meter) => (Arc::clone(&meter), meter.memory()),
            None => (Arc::new(SystemMeter) as _, before),
        };
        let (timed, others, report) = (Timed::default(), Tally::default(), JobReport::default());
        Self {
            job,
            is_first,
            subject,
            meter,
            before,
            after: None,
            timed,
            server_cpu_ns: None,
            others,
            report,
        }
    }

    /// Opens the subject and does the timed part in one.
    fn begin_with_opening(
        job: &'job Job,
        lanes: &mut [Lane<'_>],
        before: Option<Memory>,
        open: impl FnOnce() -> Result<Box<dyn Subject>, SubjectError>,
    ) -> Result<Self, SubjectError> {
        let lane = lanes.first_mut().expect("a job has a thread");
        let opened = open::measure(&SystemMeter, &job.timed()[0], lane, open)?;
        let mut session = Self::new(job, true, opened.subject, before);
        session.timed = opened.timed;
        session.report.lines(opened.lines);
        session.after = session.meter.memory();
        Ok(session)
    }

    fn prepare(&mut self, lanes: &mut [Lane<'_>]) -> Result<(), SubjectError> {
        // Refused now rather than after all the work that comes first.
        drop(self.subject.workers(lanes.len())?);
        let lane = lanes.first_mut().expect("a job has a thread");
        let tally = part::alone(&mut *self.subject, self.job.prepare(), lane, &mut Blind)?;
        self.others.add(tally);
        if self.job.settings().verify_before && self.is_first {
            self.verify("verified_before", lane)?;
        }
        if self.job.settings().interlude == Interlude::Cold {
            let residency = self.subject.cool().map_err(SubjectError::Cool)?;
            self.report.line("file_bytes", residency.file_bytes);
            self.report.line("resident_bytes", residency.resident_bytes);
        }
        Ok(())
    }

    /// Verifies; returns the number of keys that were written in the timed part alone.
    fn verify(&mut self, name: &str, lane: &mut Lane<'_>) -> Result<u64, SubjectError> {
        if self.subject.pretends() {
            return Ok(0);
        }
        let (verified, tally) = lane.verify(&mut *part::only(&mut *self.subject)?);
        self.others.add(tally);
        self.report.line(name, verified.all);
        Ok(verified.new)
    }

    fn measure(&mut self, lanes: &mut [Lane<'_>]) -> Result<(), SubjectError> {
        let settings = self.job.settings();
        // What all processes have it do: the first one says it.
        let server = self.subject.server_pid().filter(|_| self.is_first);
        self.server_cpu_ns = server.and_then(process_cpu_ns);
        let (subject, words) = (&mut *self.subject, self.job.timed());
        self.timed = part::timed(subject, &*self.meter, words, lanes, settings.executions)?;
        self.after = self.meter.memory();
        Ok(())
    }

    fn look_again(&mut self, lanes: &mut [Lane<'_>]) -> Result<(), SubjectError> {
        let settings = self.job.settings();
        if let (Some(pid), true) = (self.subject.server_pid(), self.is_first) {
            let (cpu_ns, bytes) = (process_cpu_ns(pid), process_memory_bytes(pid));
            if let (Some(before), Some(after)) = (self.server_cpu_ns, cpu_ns) {
                self.report.line("server_cpu_ns", after.saturating_sub(before));
            }
            // A server is a part of the cache.
            if let (Some(after), Some(bytes)) = (&mut self.after, bytes) {
                after.resident_bytes += bytes;
                after.peak_bytes += bytes;
            }
        }
        self.subject.check().map_err(SubjectError::Lost)?;
        if settings.verify_after && self.is_first {
            let lane = lanes.first_mut().expect("a job has a thread");
            let new = self.verify("verified_after", lane)?;
            self.report.line("verified_new", new);
        }
        if settings.timing == Timing::Each {
            let (subject, words) = (&mut *self.subject, self.job.timed());
            let (tally, latencies) = part::each(subject, &*self.meter, words, lanes)?;
            self.others.add(tally);
            self.report.lines(latencies.lines());
        }
        // It may have been lost since.
        self.subject.check().map_err(SubjectError::Lost)
    }

    fn report(mut self, lanes: &[Lane<'_>]) -> JobReport {
        let mut report = JobReport::default();
        report.timed(&self.timed, self.others);
        if self.job.settings().warm_up > 0 {
            report.line("warm_up", self.job.settings().warm_up);
        }
        report.lines(self.report.take());
        report.line("version", self.subject.version());
        report.line("language", self.subject.language());
        report.memory(self.before, self.after);
        if let Some(entries) = self.subject.entries() {
            report.line("entries", entries);
        }
        for (name, number) in self.subject.counts() {
            report.line(name, number);
        }
        if self.subject.pretends() {
            report.line("pretends", 1);
        }
        if let Some(error) = lanes.iter().find_map(|lane| lane.first_error.as_ref()) {
            report.line("first_error", error);
        }
        report
    }
}

fn say(output: &mut dyn Write, text: &str) -> Result<(), RunnerError> {
    let written = output.write_all(text.as_bytes());
    written.and_then(|()| output.flush()).map_err(RunnerError::Parent)
}

fn await_line(input: &mut dyn BufRead, due: &'static str) -> Result<(), RunnerError> {
    let mut line = Vec::new();
    input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(RunnerError::Parent)?;
    match line.trim_ascii_end() {
        line if line == due.as_bytes() => Ok(()),
        b"" => Err(RunnerError::NotDue { due, got: "its end".to_owned() }),
        other => Err(RunnerError::NotDue { due, got: String::from_utf8_lossy(other).into_owned() }),
    }
}
