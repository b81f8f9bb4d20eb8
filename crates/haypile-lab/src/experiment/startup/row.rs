//! The rows of starts.

use std::fs;
use std::thread;

use haypile_measure::measure::OWN_LABEL;
use haypile_measure::result::{Parameters, ResultsError, Sample, SubjectId};
use haypile_startup::{CpuSource, MemorySource};
use serde_json::json;

use super::condition::Condition;
use super::measure::{Measured, Measuring};
use crate::experiment::cold::Cold;
use crate::experiment::parameters;

/// The parameter of starts that are watched or traced, and are none of the measurement.
const WATCHED: &str = "watched";

/// Marks the result row of a start whose processes were listed or whose system calls were traced,
/// and which therefore is not part of the timed measurement.
pub(super) fn watched(mut sample: Sample) -> Sample {
    sample.parameters.insert(WATCHED.to_owned(), json!(true));
    sample
}

/// Whether a result row is of a start whose processes were listed or whose system calls were
/// traced, instead of a timed one.
pub(super) fn is_watched(sample: &Sample) -> bool {
    sample.parameters.contains_key(WATCHED)
}

impl Measuring<'_, '_> {
    pub(super) fn parameters(&self, cold: Option<Cold>) -> Parameters {
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

    pub(super) fn blank(&self, condition: Condition, parameters: Parameters) -> Sample {
        let subject = SubjectId {
            name: condition.name().to_owned(),
            version: String::new(),
            language: String::new(),
            program: OWN_LABEL.to_owned(),
        };
        let experiment = &self.session.run.experiment;
        Sample::blank(&self.session.run, experiment, self.plan.name.clone(), parameters, subject)
    }

    pub(super) fn sample(
        &self,
        condition: Condition,
        cold: Option<Cold>,
        measured: &Measured,
    ) -> Sample {
        let Measured { report, residency, busy_ns, window_ns, load, .. } = measured;
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
            ("probes_cpu_ns", Some(report.probes_ns).filter(|ns| *ns > 0)),
            ("ready_within_ns", report.ready_within_ns),
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

    pub(super) fn keep_error(
        &mut self,
        condition: Condition,
        text: &str,
    ) -> Result<(), ResultsError> {
        let blank = self.blank(condition, self.parameters(None));
        self.session.keep(Sample { error: Some(text.to_owned()), ..blank })
    }
}

/// Returns the processor time, in nanoseconds, for which the processors of the machine were busy
/// since the system started. It counts in ticks of about 10 ms. The KDE icon cache was measured by
/// it.
pub(super) fn machine_busy_ns() -> u64 {
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
