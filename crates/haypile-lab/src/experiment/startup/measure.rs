//! Measures one command, or two: looks at it under each condition, then starts it in blocks.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use haypile_measure::measure::{self, OWN_LABEL, Runner, Turns};
use haypile_measure::meter::{LoadWatch, Residency};
use haypile_measure::result::{Load, Parameters, ResultsError, Sample, SubjectId};
use serde_json::{Value, json};

use super::condition::Condition;
use super::evidence::{Evidence, Use};
use super::hooks::{self, HookError};
use super::plan::{Schedule, StartPlan};
use crate::experiment::cold::{Cold, ColdFiles};
use crate::experiment::session::{Session, attempt};
use crate::experiment::{Host, parameters};
use haypile_startup::{self as startup, CpuSource, MemorySource, StartOrders, StartReport};

/// Between two looks at the processes of a start that is watched.
const OBSERVE_MS: u64 = 10;

/// Measures one command.
pub(super) struct Measuring<'a, 's> {
    pub(super) plan: &'a StartPlan,
    schedule: Schedule,
    pub(super) runner: &'a Runner,
    session: &'a mut Session<'s>,
    host: &'a dyn Host,
    /// Whether the cache is full.
    is_primed: bool,
    cold: ColdFiles,
    /// Number of the command among those of the run.
    number: usize,
    /// Whether the cache's use is proved, by its files.
    is_read: bool,
    /// Output of the last start.
    output: String,
}

/// A failure that ends a command's measurement.
enum Failure {
    Interrupted,
    Failed(String),
}

/// A start with what was around it.
struct Measured {
    report: StartReport,
    residency: Option<Residency>,
    /// Processor time that the whole machine was busy in the meantime, and how long that was.
    busy_ns: u64,
    window_ns: u64,
    load: Load,
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
            output: String::new(),
        }
    }

    /// Watches the command, and measures it warm and, if asked for, cold.
    ///
    /// # Errors
    ///
    /// Results cannot be written, or the user has stopped it.
    pub(super) fn measure(&mut self) -> anyhow::Result<()> {
        let conditions = self.plan.conditions();
        let caches: Vec<Option<Cold>> =
            [None].into_iter().chain(self.schedule.cold.map(Some)).collect();
        let steps = conditions.len() as u64 * (1 + self.schedule.blocks * caches.len() as u64);
        self.host.begin(steps, format!("starting {}", self.plan.name))?;
        let usable = match attempt(self.watch(&conditions))? {
            Ok(usable) => usable,
            Err(text) => return Ok(self.keep_error(self.plan.reference(), &text)?),
        };
        for (at, cold) in caches.into_iter().enumerate() {
            let mut turns = Turns::new(self.schedule.seed, 2 * self.number + at, usable.len());
            for block in 0..self.schedule.blocks {
                for (position, turn) in turns.next_block().into_iter().enumerate() {
                    let condition = usable[turn];
                    let sample = match attempt(self.start(condition, cold, None))? {
                        Ok(measured) => self.sample(condition, cold, &measured),
                        Err(text) => {
                            let blank = self.blank(condition, self.parameters(cold));
                            Sample { error: Some(text), ..blank }
                        }
                    };
                    self.session.keep(Sample { block, position: position as u64, ..sample })?;
                    self.host.advance(1);
                }
            }
        }
        Ok(())
    }

    /// Runs the command that ends the measurement, where there is one, even after a failure.
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

    /// Starts the command once under each condition, and looks closely. Returns the conditions that
    /// can be measured.
    fn watch(&mut self, conditions: &[Condition]) -> Result<Vec<Condition>, Failure> {
        if let Some(setup) = &self.plan.setup {
            self.hook(self.plan.reference(), ("--setup", setup), "")?;
        }
        self.cold.add(&self.plan.cold_paths);
        let mut usable = Vec::new();
        // The one that fills the cache comes first, and 'with' finds it full.
        let mut order = conditions.to_vec();
        order.sort_by_key(|condition| *condition != Condition::Fill);
        for condition in order {
            if condition.is_control() {
                usable.push(condition);
                continue;
            }
            match self.watch_one(condition) {
                Ok(()) => usable.push(condition),
                Err(Failure::Failed(text)) if !condition.is_reference() => {
                    self.keep_error(condition, &text)?;
                }
                Err(failure) => return Err(failure),
            }
            self.host.advance(1);
        }
        self.cold.add(&self.plan.cache);
        if self.schedule.cold.is_some() && self.cold.is_cut {
            self.host.note("warning: --cold drops the first 50,000 files only");
        }
        usable.sort();
        Ok(usable)
    }

    fn watch_one(&mut self, condition: Condition) -> Result<(), Failure> {
        let evidence = Evidence::new(&self.plan.cache);
        if condition.is_primed() {
            self.prime()?;
        }
        let before = evidence.as_ref().map(Evidence::before).transpose()?;
        let measured = self.start(condition, None, Some(OBSERVE_MS))?;
        for _ in 1..self.schedule.warmup {
            self.start(condition, None, None)?;
        }
        if let Some(before) = before.filter(|_| condition == Condition::With) {
            let name = &self.plan.name;
            match Evidence::after(&before) {
                Use::Read => self.is_read = true,
                Use::Unread => {
                    return Err(Failure::Failed(format!(
                        "the cache was never read: {name} left its files (--cache) untouched"
                    )));
                }
                Use::Empty => {
                    return Err(Failure::Failed(
                        "the cache is empty after it was primed: no bytes are in --cache".to_owned(),
                    ));
                }
                Use::Unknown => self.host.note(&format!(
                    "{name}: the files of the cache stay in memory, so that reading them leaves no trace"
                )),
            }
        }
        let report = &measured.report;
        if let Some(span) = self
            .plan
            .span
            .as_ref()
            .filter(|_| condition == Condition::With && report.span_operations.is_none())
        {
            let reason = match haypile::file::FileStat::of(span) {
                Ok(_) => {
                    "nothing was counted in it; processes that only read with mode=ro count nothing"
                        .to_owned()
                }
                Err(error) => error.to_string(),
            };
            let span = span.display();
            self.host.note(&format!("warning: --span {span} has no operations: {reason}"));
        }
        self.cold.add(&report.files);
        if let Some(process) = &report.ignores_children {
            let but = if report.is_cpu_incomplete {
                "CPU incomplete"
            } else {
                "the control group counts"
            };
            self.host.note(&format!(
                "warning: {process} ignores the end of its children, which loses their usage: {but}"
            ));
        }
        if !report.outside.is_empty() {
            self.host.note(&format!(
                "warning: began outside of the tree, and is not measured: {} (dbus-run-session keeps \
                 what D-Bus starts in the tree)",
                report.outside.join(", ")
            ));
        }
        let mut sample = self.sample(condition, None, &measured);
        sample.parameters.insert("watched".to_owned(), Value::Bool(true));
        sample.timeline.clone_from(&measured.report.timeline);
        self.session.keep(sample)?;
        Ok(())
    }

    /// Fills the cache, unless it is full.
    fn prime(&mut self) -> Result<(), Failure> {
        if self.is_primed {
            return Ok(());
        }
        if let Some(prime) = &self.plan.prime {
            self.hook(Condition::With, ("--prime", prime), "")?;
        } else {
            self.prepare(Condition::With)?;
            let report = self.supervise(Condition::With, None);
            let concluded = self.conclude(Condition::With);
            let report = report?;
            concluded?;
            if let Some(error) = report.error {
                return Err(Failure::Failed(format!("the start that fills the cache: {error}")));
            }
        }
        self.is_primed = true;
        Ok(())
    }

    /// Starts the command under a condition, with the commands around it.
    fn start(
        &mut self,
        condition: Condition,
        cold: Option<Cold>,
        observe_ms: Option<u64>,
    ) -> Result<Measured, Failure> {
        if condition.is_primed() {
            self.prime()?;
        } else if condition == Condition::Fill {
            self.is_primed = false;
            self.clear()?;
        }
        self.prepare(condition)?;
        let residency = cold.map(|how| self.cold.drop(how)).transpose()?;
        let (busy, begin) = (machine_busy_ns(), Instant::now());
        let watch = LoadWatch::begin();
        let report = self.supervise(condition, observe_ms);
        let waited_ns = report.as_ref().ok().and_then(|report| report.waited_ns);
        let load = watch.end(waited_ns);
        let busy_ns = machine_busy_ns().saturating_sub(busy);
        let window_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Also of a start that was interrupted: it undoes what came before.
        let concluded = self.conclude(condition);
        let report = report?;
        concluded?;
        if let Some(error) = report.error {
            return Err(Failure::Failed(error));
        }
        if condition == Condition::Fill {
            // Where a command of its own fills the cache, this start may not have filled it.
            self.is_primed = self.plan.prime.is_none();
        }
        self.output.clone_from(&report.output);
        if let Some(verify) = self.plan.verify.as_ref().filter(|_| condition.is_primed()) {
            self.hook(condition, ("--verify", verify), &self.output)?;
        }
        Ok(Measured { report, residency, busy_ns, window_ns, load })
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

    fn supervise(
        &self,
        condition: Condition,
        observe_ms: Option<u64>,
    ) -> Result<StartReport, Failure> {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2);
        let place = tempfile::tempdir().map_err(anyhow::Error::from)?;
        let orders = StartOrders {
            command: self.plan.command(condition).to_vec(),
            environment: self.plan.environment(condition),
            directory: self.plan.directory.clone(),
            input: self.plan.input.clone(),
            ready: self.plan.ready.clone(),
            accepted: self.plan.accepted.clone(),
            timeout_ms: ms(self.schedule.timeout).max(1),
            settle_ms: self.schedule.settle.map_or(0, ms),
            observe_ms,
            group: None,
            span: self.plan.span.clone(),
            max_processes: self.schedule.max_processes as usize,
            report: place.path().join("report"),
        };
        let report = startup::start(self.runner, &orders, &|| self.host.is_interrupted())?;
        report.ok_or(Failure::Interrupted)
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

    fn hook(
        &self,
        condition: Condition,
        command: (&str, &str),
        input: &str,
    ) -> Result<(), Failure> {
        let limit = self.schedule.timeout;
        let is_interrupted = || self.host.is_interrupted();
        Ok(hooks::run(self.plan, condition, command, input, limit, &is_interrupted)?)
    }

    fn parameters(&self, cold: Option<Cold>) -> Parameters {
        let page_cache = match cold {
            None => "warm",
            Some(Cold::Fadvise) => "cold",
            Some(Cold::Drop) => "cold (all of the machine)",
        };
        let ready = self.plan.ready.to_string();
        if let Some([a, b]) = self.plan.pair() {
            let mut all = parameters([("a", json!(a)), ("b", json!(b)), ("ready", json!(ready))]);
            all.extend(self.plan.settings.clone());
            return all;
        }
        // The folder has another name in each run.
        let ready = ready.replace(&*self.plan.directory.to_string_lossy(), "{scratch}");
        parameters([("page_cache", json!(page_cache)), ("ready", json!(ready))])
    }

    fn blank(&self, condition: Condition, parameters: Parameters) -> Sample {
        let subject = SubjectId {
            name: condition.name().to_owned(),
            version: String::new(),
            language: String::new(),
            program: OWN_LABEL.to_owned(),
        };
        let experiment = &self.session.run.experiment;
        Sample::blank(&self.session.run, experiment, self.plan.name.clone(), parameters, subject)
    }

    fn sample(&self, condition: Condition, cold: Option<Cold>, measured: &Measured) -> Sample {
        let Measured { report, residency, busy_ns, window_ns, load } = measured;
        let mut sample = self.blank(condition, self.parameters(cold));
        sample.load = Some(load.clone());
        sample.operations = 1;
        sample.wall_ns = report.ready_ns;
        sample.cpu_ns = report.cpu_ns;
        sample.memory_bytes = Some(report.memory_bytes);
        let flag = |is_so: bool| u64::from(is_so);
        let is_verified = condition.is_primed() && (self.plan.verify.is_some() || self.is_read);
        let counts = [
            ("minor_faults", Some(report.minor_faults)),
            ("major_faults", Some(report.major_faults)),
            ("read_bytes", Some(report.read_bytes)),
            ("disk_read_bytes", Some(report.disk_read_bytes)),
            ("machine_busy_ns", Some((*busy_ns).min(window_ns.saturating_mul(processors())))),
            ("machine_window_ns", Some(*window_ns)),
            ("left_running", Some(report.left_running)),
            ("exit_code", report.exit_code.and_then(|code| u64::try_from(code).ok())),
            ("settled_ns", report.settled_ns),
            ("span_ns", report.span_ns),
            ("span_operations", report.span_operations),
            ("cold_file_bytes", residency.map(|it| it.file_bytes)),
            ("cold_resident_bytes", residency.map(|it| it.resident_bytes)),
            ("group_cpu_ns", report.group_cpu_ns),
            ("cpu_by_group", Some(flag(report.cpu_source == CpuSource::Group))),
            ("cpu_by_clocks", Some(flag(report.cpu_source == CpuSource::Clocks))),
            ("cpu_incomplete", Some(flag(report.is_cpu_incomplete))),
            ("memory_by_group", Some(flag(report.memory_source == MemorySource::Group))),
            ("use_verified", condition.is_primed().then_some(flag(is_verified))),
        ];
        let known = counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?)));
        sample.counts = known.collect();
        sample
    }

    fn keep_error(&mut self, condition: Condition, text: &str) -> Result<(), ResultsError> {
        let blank = self.blank(condition, self.parameters(None));
        self.session.keep(Sample { error: Some(text.to_owned()), ..blank })
    }
}

/// Processor time that was not idle, of all processors since the system started; the KDE icon cache
/// was measured so. It counts in ticks of about 10 ms.
fn machine_busy_ns() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    busy_ticks(&stat).unwrap_or(0)
        * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

fn processors() -> u64 {
    thread::available_parallelism().map_or(1, |number| number.get() as u64)
}

/// user, nice, system, idle, iowait, irq, softirq, steal: `proc_stat(5)`.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|it| it.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6].iter().map(|at| fields.get(*at));
    busy.sum::<Option<u64>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_waiting_for_disks_are_not_work() {
        assert_eq!(busy_ticks("cpu  1 2 4 100 200 8 16 300 0 0\ncpu0 1\n"), Some(31));
        assert_eq!(busy_ticks("cpu  1 2\n"), None);
        assert_eq!(busy_ticks(""), None);
    }
}
