//! Starts that are not timed: watched for disturbances of the measurement, and traced for the causes of a difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use haypile_measure::result::Sample;
use haypile_startup::CallTrace;

use super::condition::Condition;
use super::evidence::{Evidence, Use};
use super::measure::{Failure, Measuring, Watch};
use super::row::watched;
use super::traces;

impl Measuring<'_, '_> {
    /// Starts the command once under each condition, listing its processes, and once more to trace
    /// its system calls. Returns the conditions that can be measured.
    pub(super) fn watch(&mut self, conditions: &[Condition]) -> Result<Vec<Condition>, Failure> {
        if let Some(setup) = &self.plan.setup {
            self.hook(self.plan.reference(), ("--setup", setup), "")?;
        }
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
        usable.sort();
        if self.schedule.traces {
            self.trace(&usable)?;
        }
        self.cold.add(&self.plan.cache);
        self.cold.add(&self.plan.cold_paths);
        if let Some(text) = self.cold.left_out().filter(|_| self.schedule.cold.is_some()) {
            self.host.note(&format!("warning: starts may not be cold: {text}"));
        }
        Ok(usable)
    }

    fn watch_one(&mut self, condition: Condition) -> Result<(), Failure> {
        let evidence = Evidence::new(&self.plan.cache);
        if condition.is_primed() {
            self.prime()?;
        }
        let before = evidence.as_ref().map(Evidence::before).transpose()?;
        let measured = self.start(condition, None, &Watch::Polled)?;
        if condition == Condition::Off {
            self.off_ran_ns = Some(measured.ran_ns);
        }
        for _ in 1..self.schedule.warmup {
            self.start(condition, None, &Watch::Timed)?;
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
                        "the cache is empty after it was primed: no bytes are in \
                         --cache"
                            .to_owned(),
                    ));
                }
                Use::Unknown => self.host.note(&format!(
                    "{name}: the cache's files cannot be dropped from memory, so that it is unknown \
                     whether the command read them; put them on a disk to know"
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
                Ok(_) => "nothing was counted in it; processes that only read with mode=ro count \
                     nothing"
                    .to_owned(),
                Err(error) => error.to_string(),
            };
            let span = span.display();
            self.host.note(&format!("warning: the cache of --span {span} was not used: {reason}"));
        }
        self.cold.add_used(report.files.iter().map(PathBuf::as_path));
        if let Some(process) = &report.ignores_children {
            let but = if report.is_cpu_incomplete {
                "the figures lack it"
            } else {
                "the control group counts it"
            };
            self.host.note(&format!(
                "warning: the process {process} ignores the end of its children (SIGCHLD), so that \
                 the kernel does not add up their CPU time: {but}"
            ));
        }
        if !report.outside.is_empty() {
            self.host.note(&format!(
                "warning: processes that began outside of the command's process tree are not \
                 measured: {} (dbus-run-session keeps what D-Bus starts in the tree)",
                report.outside.join(", ")
            ));
        }
        self.session.keep(watched(self.sample(condition, None, &measured)))?;
        Ok(())
    }

    /// Traces a start of each condition: its files have the first places among those that are dropped, and what one
    /// condition does and the other does not is kept for the report.
    fn trace(&mut self, usable: &[Condition]) -> Result<(), Failure> {
        let mut all = BTreeMap::new();
        for condition in usable.iter().copied().filter(|condition| !condition.is_control()) {
            match self.trace_one(condition) {
                Ok((trace, begun_ns)) => {
                    let read = trace.files.iter().filter(|(_, file)| !file.is_written);
                    self.cold.add_used(read.map(|(path, _)| path.as_path()));
                    all.insert(condition, (trace, begun_ns));
                }
                Err(Failure::Failed(text)) => {
                    let name = &self.plan.name;
                    self.host.note(&format!(
                        "the start of {name} ({condition}) could not be traced, so that \
                         differences are not explained: {text}"
                    ));
                }
                Err(interrupted) => return Err(interrupted),
            }
            self.host.advance(1);
        }
        let other = Condition::LACKING.into_iter().find(|it| all.contains_key(it));
        for (condition, (trace, begun_ns)) in &all {
            let against = if condition.is_reference() { other } else { Some(Condition::With) };
            let against = against.and_then(|it| all.get(&it)).map(|(trace, _)| trace);
            let scratch = &self.plan.directory;
            let mut calls = traces::calls(trace, against, scratch);
            if *condition == Condition::Off {
                let since = self.off_ran_ns.map(|(from, to)| (from, to.min(*begun_ns)));
                calls.own_cache =
                    traces::own_cache((trace, against), &self.plan.cache, (since, scratch));
                for text in &calls.own_cache {
                    let name = &self.plan.name;
                    self.host.note(&format!(
                        "warning: the start of {name} without a cache may use one: {text}"
                    ));
                }
            }
            let blank = self.blank(*condition, self.parameters(None));
            self.session.keep(watched(Sample { calls: Some(Box::new(calls)), ..blank }))?;
        }
        Ok(())
    }

    /// Traces a start of a condition, as it is measured. Returns the trace and the time at which the start began.
    fn trace_one(&mut self, condition: Condition) -> Result<(CallTrace, i64), Failure> {
        let file = tempfile::NamedTempFile::new().map_err(anyhow::Error::from)?;
        let started = self.start(condition, None, &Watch::Traced(file.path().to_owned()));
        let text = fs::read(file.path()).map_err(anyhow::Error::from)?;
        match (started, serde_json::from_slice(&text)) {
            (Ok(measured), Ok(trace)) => Ok((trace, measured.ran_ns.0)),
            (Ok(_), Err(_)) => Err(Failure::Failed("the start left no trace".to_owned())),
            (Err(failure), _) => Err(failure),
        }
    }
}
