//! The load of a machine while a sample was taken.

use serde::{Deserialize, Serialize};

use super::row::{Run, Sample};

/// The share (5 %) of a sample's time above which other work on the machine counts as a disturbance.
pub const DISTURBED: f64 = 0.05;

/// The time that the laboratory may take to notice the end of a sample.
const UNSEEN_NS: u64 = 5_000_000;

/// A sample that is shorter than a slice of the scheduler was disturbed or was not: its share says nothing.
const MIN_SEEN_NS: u64 = 5_000_000;

/// Other work on the machine during a sample. Fields are `None` if the system does not state them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The duration of the benchmark sample in nanoseconds, by the laboratory's clock.
    pub seen_ns: u64,
    /// The time for which the first thread of the runner waited for a processor, in nanoseconds; of several processes
    /// the longest.
    #[serde(default)]
    pub waited_ns: Option<u64>,
    /// The processor time of the runner's processes in nanoseconds, according to the kernel, which confirms the
    /// runner's own report; `None` for a runner that simulates its times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_cpu_ns: Option<u64>,
    /// The processor time that the host of a virtual machine gave to others during the sample, in nanoseconds, with a
    /// resolution of about 10 ms.
    #[serde(default)]
    pub steal_ns: Option<u64>,
    /// The time during the sample for which some task of the machine waited for a processor, in nanoseconds.
    #[serde(default)]
    pub cpu_pressure_ns: Option<u64>,
    /// The time during the sample for which some task of the machine waited for a disk, in nanoseconds.
    #[serde(default)]
    pub io_pressure_ns: Option<u64>,
    /// The time during the sample for which some task of the machine waited for memory, in nanoseconds.
    #[serde(default)]
    pub memory_pressure_ns: Option<u64>,
}

impl Sample {
    /// Returns the share of the sample's time in which other work kept it from a processor; `None` if it is too small
    /// to disturb the sample. For a single measuring thread, its waiting counts; for several threads that have a
    /// processor each, the pressure of the machine. For more threads than processors nothing is known: they wait for
    /// each other.
    pub fn disturbance(&self, cores: u64) -> Option<f64> {
        let load = self.load.as_ref().filter(|load| load.seen_ns >= MIN_SEEN_NS)?;
        let threads = self.threads();
        let share = |ns: Option<u64>, of: u64| {
            // A wait that began before counts as a whole.
            (ns.unwrap_or(0) as f64 / (load.seen_ns.saturating_mul(of)) as f64).min(1.0)
        };
        let waited = match threads {
            Some(1) | None => share(load.waited_ns, 1),
            Some(threads) if threads <= cores => share(load.cpu_pressure_ns, 1),
            Some(_) => 0.0,
        };
        let most = waited.max(share(load.steal_ns, cores.max(1)));
        Some(most).filter(|most| *most > DISTURBED)
    }

    /// Returns the time for which other work on the machine kept a sample of one thread from a processor, in
    /// nanoseconds, if the system states it; 0 for several threads, which wait for each other as well.
    pub fn kept_waiting_ns(&self) -> u64 {
        let load = self.load.as_ref().filter(|_| matches!(self.threads(), Some(1) | None));
        load.and_then(|load| load.waited_ns).unwrap_or(0)
    }

    /// Returns the share of the laboratory's own measured times that the runner reported, the smaller one of wall and
    /// processor time; `None` if the laboratory measured none.
    pub(crate) fn confirmed_share(&self) -> Option<f64> {
        let load = self.load.as_ref()?;
        let seen_cpu_ns = load.seen_cpu_ns?;
        let seen_ns = load.seen_ns.saturating_sub(load.waited_ns.unwrap_or(0));
        let share =
            |said: u64, seen: u64| said as f64 / seen.saturating_sub(UNSEEN_NS).max(1) as f64;
        Some(share(self.wall_ns, seen_ns).min(share(self.cpu_ns, seen_cpu_ns)))
    }

    /// Returns the number of threads of all processes together; `None` where the case does not say it.
    fn threads(&self) -> Option<u64> {
        let number = |name: &str| self.parameters.get(name).and_then(serde_json::Value::as_u64);
        Some(number("threads")?.saturating_mul(number("processes").unwrap_or(1)))
    }
}

/// Returns a warning if other work disturbed samples of a run; `None` for a test build, whose times mean nothing.
pub fn disturbance_of(run: &Run, samples: &[Sample]) -> Option<String> {
    if run.program.debug { None } else { disturbance(samples, run.machine.cores) }
}

/// Returns a warning about samples that other work on the machine has disturbed, if there are some.
pub fn disturbance<'a>(
    samples: impl IntoIterator<Item = &'a Sample>,
    cores: u64,
) -> Option<String> {
    let (mut all, mut disturbed, mut most) = (0_u64, 0_u64, (0.0, None));
    for sample in samples {
        all += 1;
        if let Some(share) = sample.disturbance(cores) {
            disturbed += 1;
            if share > most.0 {
                most = (share, Some(sample));
            }
        }
    }
    let sample = most.1?;
    Some(format!(
        "other work disturbed {disturbed} of {all} samples: they waited for a processor for more than 5 % of \
         their time, {} of {} for {:.0} %",
        sample.case,
        sample.subject.name,
        most.0 * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Parameters, SubjectId};

    fn sample(threads: Option<u64>, load: Load) -> Sample {
        let subject = SubjectId {
            name: "memory".to_owned(),
            version: String::new(),
            language: String::new(),
            program: String::new(),
        };
        let mut parameters = Parameters::new();
        parameters.extend(threads.map(|threads| ("threads".to_owned(), threads.into())));
        let run = Run::begin("micro", String::new(), 1);
        Sample { load: Some(load), ..Sample::blank(&run, "micro", "get-hit", parameters, subject) }
    }

    #[test]
    fn a_thread_that_waited_was_disturbed() {
        let load = |waited: u64, steal: u64, pressure: u64| Load {
            seen_ns: 1000 * 10_000,
            waited_ns: Some(waited * 10_000),
            steal_ns: Some(steal * 10_000),
            cpu_pressure_ns: Some(pressure * 10_000),
            ..Load::default()
        };
        assert_eq!(sample(Some(1), load(50, 100, 900)).disturbance(2), None);
        assert_eq!(sample(Some(1), load(60, 0, 0)).disturbance(2), Some(0.06));
        assert_eq!(sample(Some(1), load(0, 120, 0)).disturbance(2), Some(0.06));
        assert_eq!(
            sample(Some(2), load(60, 0, 0)).disturbance(2),
            None,
            "the first one only waits"
        );
        assert_eq!(sample(Some(2), load(0, 0, 300)).disturbance(2), Some(0.3));
        assert_eq!(
            sample(Some(3), load(0, 0, 300)).disturbance(2),
            None,
            "they are too many themselves"
        );
        assert_eq!(sample(None, load(70, 0, 300)).disturbance(2), Some(0.07));
        assert_eq!(sample(None, load(7000, 0, 0)).disturbance(2), Some(1.0));
        assert_eq!(sample(Some(1), Load::default()).disturbance(2), None);
        let short = Load { seen_ns: 100_000, waited_ns: Some(100_000), ..Load::default() };
        assert_eq!(sample(Some(1), short).disturbance(2), None);
        let samples = [
            sample(Some(1), load(60, 0, 0)),
            sample(Some(1), load(400, 0, 0)),
            sample(Some(1), load(0, 0, 0)),
        ];
        let warning = disturbance(&samples, 2).unwrap();
        assert!(warning.starts_with("other work disturbed 2 of 3 samples"), "{warning}");
        assert!(warning.ends_with("get-hit of memory for 40 %"), "{warning}");
        assert_eq!(disturbance(&samples[2..], 2), None);
    }
}
