//! The measurement of one command, or of two: watched under each condition, then started in blocks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use haypile_measure::measure::{self, Runner, Turns};
use haypile_measure::meter::{LoadWatch, Residency};
use haypile_measure::result::{Load, ResultsError, Sample};

use super::condition::Condition;
use super::evidence::Evidence;
use super::hooks::{self, HookError};
use super::plan::{Schedule, StartPlan};
use super::row::machine_busy_ns;
use crate::experiment::Host;
use crate::experiment::cold::{Cold, ColdFiles};
use crate::experiment::session::{Session, attempt};
use crate::report::number::first;
use haypile_startup::{self as startup, StartOrders, StartReport};

/// Between two looks at the processes of a start that is watched.
const OBSERVE_MS: u64 = 10;

/// The most removed variables that an error names.
const REMOVED_NAMED: usize = 12;

/// The most times that a traced start may take as long as another one.
const TRACE_PATIENCE: u64 = 10;

/// The way in which the start of a command is observed: timed, with its processes listed, or
/// traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// The start is timed, and nothing disturbs it.
    Timed,
    /// All processes are listed, again and again.
    Polled,
    /// The start is traced, and the trace is written to this file.
    Traced(PathBuf),
}

/// The running measurement of the starts of one command with and without its cache, or of two
/// commands.
pub(super) struct Measuring<'a, 's> {
    pub(super) plan: &'a StartPlan,
    pub(super) schedule: Schedule,
    pub(super) runner: &'a Runner,
    pub(super) session: &'a mut Session<'s>,
    pub(super) host: &'a dyn Host,
    /// Whether the cache is full.
    is_primed: bool,
    pub(super) cold: ColdFiles,
    /// Number of the command among those of the run.
    number: usize,
    /// Whether the cache's files have shown that the command reads its cache.
    pub(super) is_read: bool,
    /// The times at which the watched start without the cache began and ended, in nanoseconds since
    /// 1970; `None` before that start.
    pub(super) off_ran_ns: Option<(i64, i64)>,
    /// Conditions whose files may have been dropped since they were last started.
    chilled: BTreeSet<Condition>,
    /// Output of the last start.
    output: String,
}

/// A failure that ends the measurement of a command's starts: the user has interrupted it, or a
/// start or a command around it failed.
pub(super) enum Failure {
    Interrupted,
    Failed(String),
}

/// The result of starting a command once: its report, when it ran, and how busy the machine was.
pub(super) struct Measured {
    pub(super) report: StartReport,
    pub(super) residency: Option<Residency>,
    /// The times at which the command was started and its last process ended, by the clock of file
    /// times, in nanoseconds since 1970.
    pub(super) ran_ns: (i64, i64),
    /// Processor time in nanoseconds for which the whole machine was busy while the command ran.
    pub(super) busy_ns: u64,
    pub(super) window_ns: u64,
    pub(super) load: Load,
}

/// The time of files, in nanoseconds since 1970.
fn wall_clock_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

impl From<Failure> for measure::Failure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Interrupted => Self::Interrupted,
            Failure::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<HookError> for Failure {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Interrupted => Self::Interrupted,
            HookError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(format!("{error:#}"))
    }
}

impl<'a, 's> Measuring<'a, 's> {
    pub(super) fn new(
        (plan, number): (&'a StartPlan, usize),
        schedule: Schedule,
        runner: &'a Runner,
        session: &'a mut Session<'s>,
    ) -> Self
    where
        's: 'a,
    {
        let host = session.host;
        Self {
            plan,
            schedule,
            runner,
            session,
            host,
            is_primed: false,
            cold: ColdFiles::default(),
            number,
            is_read: false,
            off_ran_ns: None,
            chilled: BTreeSet::new(),
            output: String::new(),
        }
    }

    /// Watches one start of the command under each condition (such as without its cache), then
    /// measures warm and, if asked for, cold starts. Each block has warm and cold starts, so that a
    /// change of the machine affects both.
    ///
    /// # Errors
    ///
    /// Results cannot be written, or the user has stopped it.
    pub(super) fn measure(&mut self) -> anyhow::Result<()> {
        let conditions = self.plan.conditions();
        let caches: Vec<Option<Cold>> =
            [None].into_iter().chain(self.schedule.cold.map(Some)).collect();
        let rounds = self.schedule.blocks * caches.len() as u64;
        let looks = 1 + u64::from(self.schedule.traces);
        self.host.begin(
            conditions.len() as u64 * (looks + rounds),
            format!("starting {}", self.plan.name),
        )?;
        let usable = match attempt(self.watch(&conditions))? {
            Ok(usable) => usable,
            Err(text) => return Ok(self.keep_error(self.plan.reference(), &text)?),
        };
        let turns = |at| Turns::new(self.schedule.seed, 2 * self.number + at, usable.len());
        let mut turns: Vec<Turns> = (0..caches.len()).map(turns).collect();
        for block in 0..self.schedule.blocks {
            let mut position = 0;
            for (cold, turns) in caches.iter().zip(&mut turns) {
                for turn in turns.next_block() {
                    let sample = self.timed(usable[turn], *cold)?;
                    self.session.keep(Sample { block, position, ..sample })?;
                    self.host.advance(1);
                    position += 1;
                }
            }
        }
        if self.schedule.draws {
            self.draw(&usable, &caches)?;
        }
        Ok(())
    }

    /// Returns the row of a timed start.
    fn timed(&mut self, condition: Condition, cold: Option<Cold>) -> anyhow::Result<Sample> {
        Ok(match attempt(self.start(condition, cold, &Watch::Timed))? {
            Ok(measured) => self.sample(condition, cold, &measured),
            Err(text) => {
                let blank = self.blank(condition, self.parameters(cold));
                Sample { error: Some(text), ..blank }
            }
        })
    }

    /// Runs the cleanup command of the user after the measurement, even after a failure; does
    /// nothing without one.
    ///
    /// # Errors
    ///
    /// It fails.
    pub(super) fn clean_up(&self) -> anyhow::Result<()> {
        let Some(cleanup) = &self.plan.cleanup else { return Ok(()) };
        // A user who has interrupted the measurement wants it to be cleaned up nevertheless.
        let command = ("--cleanup", cleanup.as_str());
        match hooks::run(
            self.plan,
            self.plan.reference(),
            command,
            "",
            self.schedule.timeout,
            &|| false,
        ) {
            Ok(()) | Err(HookError::Interrupted) => Ok(()),
            Err(HookError::Failed(text)) => bail!(text),
        }
    }

    /// Fills the cache of the measured command, unless it is full.
    pub(super) fn prime(&mut self) -> Result<(), Failure> {
        if self.is_primed {
            return Ok(());
        }
        if let Some(prime) = &self.plan.prime {
            self.hook(Condition::With, ("--prime", prime), "")?;
        } else {
            self.prepare(Condition::With)?;
            let report = self.supervise(Condition::With, &Watch::Timed);
            let concluded = self.conclude(Condition::With);
            let report = report?;
            concluded?;
            if let Some(error) = report.error {
                let text = format!("the start that fills the cache: {error}");
                return Err(Failure::Failed(self.explained(text, report.reaped)));
            }
        }
        self.is_primed = true;
        Ok(())
    }

    /// Starts the command once under a condition, with the user's commands before and after. A warm
    /// start whose files were dropped from memory is preceded by an untimed one.
    pub(super) fn start(
        &mut self,
        condition: Condition,
        cold: Option<Cold>,
        watch: &Watch,
    ) -> Result<Measured, Failure> {
        if cold.is_none() && self.chilled.contains(&condition.repeated()) {
            self.start_once(condition, None, &Watch::Timed)?;
        }
        self.start_once(condition, cold, watch)
    }

    fn start_once(
        &mut self,
        condition: Condition,
        cold: Option<Cold>,
        watch: &Watch,
    ) -> Result<Measured, Failure> {
        if condition.is_primed() {
            self.prime()?;
        } else if condition == Condition::Fill {
            self.is_primed = false;
            self.clear()?;
        }
        self.prepare(condition)?;
        let residency = cold.map(|how| self.cold.drop(how)).transpose()?;
        if cold.is_some() {
            self.chilled.extend(self.plan.conditions().into_iter().map(Condition::repeated));
        }
        let (busy, begin) = (machine_busy_ns(), Instant::now());
        let load = LoadWatch::begin();
        let begun_ns = wall_clock_ns();
        let report = self.supervise(condition, watch);
        let ran_ns = (begun_ns, wall_clock_ns());
        let waited_ns = report.as_ref().ok().and_then(|report| report.waited_ns);
        let load = load.end(waited_ns);
        let busy_ns = machine_busy_ns().saturating_sub(busy);
        let window_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Also of a start that was interrupted: it undoes what came before.
        let concluded = self.conclude(condition);
        let report = report?;
        concluded?;
        if let Some(error) = report.error {
            return Err(Failure::Failed(self.explained(error, report.reaped)));
        }
        self.chilled.remove(&condition.repeated());
        if condition == Condition::Fill {
            // Where a command of its own fills the cache, this start may not have filled it.
            self.is_primed = self.plan.prime.is_none();
        }
        self.output.clone_from(&report.output);
        if let Some(verify) = self.plan.verify.as_ref().filter(|_| condition.is_primed()) {
            self.hook(condition, ("--verify", verify), &self.output)?;
        }
        Ok(Measured { report, residency, ran_ns, busy_ns, window_ns, load })
    }

    /// Empties the cache. A command that changes none of its files has not done so.
    fn clear(&self) -> Result<(), Failure> {
        let Some(clear) = &self.plan.clear else { return Ok(()) };
        let evidence = Evidence::new(&self.plan.cache);
        let before = evidence.as_ref().map(Evidence::state);
        self.hook(Condition::Fill, ("--clear", clear), "")?;
        let after = evidence.as_ref().map(Evidence::state);
        if before.as_ref().is_some_and(|before| before.bytes() > 0) && before == after {
            return Err(Failure::Failed(format!(
                "--clear '{clear}' emptied nothing: it left all files of --cache as they were"
            )));
        }
        Ok(())
    }

    /// Returns an error of a start with what was taken away from the program, which may be its cause if it has run.
    fn explained(&self, error: String, reaped: u64) -> String {
        let removed = &self.plan.removed;
        if removed.is_empty() || reaped == 0 {
            return error;
        }
        let named = first(removed, REMOVED_NAMED);
        format!(
            "{error} (its environment lacks {named} of yours: --keep-env keeps all, --env NAME one)"
        )
    }

    fn supervise(&self, condition: Condition, watch: &Watch) -> Result<StartReport, Failure> {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2);
        let place = tempfile::tempdir().map_err(anyhow::Error::from)?;
        let mut command = self.plan.command(condition).to_vec();
        let mut timeout_ms = ms(self.schedule.timeout).max(1);
        if let Watch::Traced(file) = watch {
            command = self.traced(file, command);
            timeout_ms = timeout_ms.saturating_mul(TRACE_PATIENCE);
        }
        let orders = StartOrders {
            command,
            environment: self.plan.environment(condition),
            directory: self.plan.directory.clone(),
            input: self.plan.input.clone(),
            ready: self.plan.ready.clone(),
            accepted: self.plan.accepted.clone(),
            timeout_ms,
            grace_ms: ms(self.schedule.grace),
            settle_ms: self.schedule.settle.map_or(0, ms),
            observe_ms: (*watch == Watch::Polled).then_some(OBSERVE_MS),
            group: None,
            span: self.plan.span.clone(),
            max_processes: self.schedule.max_processes as usize,
            report: place.path().join("report"),
        };
        let report = startup::start(self.runner, &orders, &|| self.host.is_interrupted())?;
        report.ok_or(Failure::Interrupted)
    }

    /// Returns the command that traces a command.
    fn traced(&self, file: &Path, command: Vec<String>) -> Vec<String> {
        let tracer = self.runner.command("run-trace");
        let words = [tracer.get_program()].into_iter().chain(tracer.get_args());
        let words = words.chain([file.as_os_str()]).map(|it| it.to_string_lossy().into_owned());
        words.chain(["--".to_owned()]).chain(command).collect()
    }

    fn prepare(&self, condition: Condition) -> Result<(), Failure> {
        let prepare = self.plan.prepare.as_ref();
        prepare.map_or(Ok(()), |prepare| self.hook(condition, ("--prepare", prepare), ""))
    }

    fn conclude(&self, condition: Condition) -> Result<(), Failure> {
        let Some(conclude) = &self.plan.conclude else { return Ok(()) };
        let command = ("--conclude", conclude.as_str());
        Ok(hooks::run(self.plan, condition, command, "", self.schedule.timeout, &|| false)?)
    }

    pub(super) fn hook(
        &self,
        condition: Condition,
        command: (&str, &str),
        input: &str,
    ) -> Result<(), Failure> {
        let limit = self.schedule.timeout;
        let is_interrupted = || self.host.is_interrupted();
        Ok(hooks::run(self.plan, condition, command, input, limit, &is_interrupted)?)
    }
}
