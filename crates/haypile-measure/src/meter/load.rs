//! Other work on the machine while something is measured.

use std::fs;
use std::time::Instant;

use rustix::param::clock_ticks_per_second;

use crate::result::Load;

/// A measurement of other work on the machine, from the beginning to the end of a sample.
#[derive(Clone, Copy, Debug)]
pub struct LoadWatch {
    begin: Instant,
    before: MachineCounters,
}

impl LoadWatch {
    /// Reads the machine's counters of load, with which [`end`](Self::end) compares them.
    pub fn begin() -> Self {
        let before = MachineCounters::read();
        Self { begin: Instant::now(), before }
    }

    /// Returns the load (other work on the machine) since the beginning; `waited_ns` is the time for which the
    /// measuring runner waited for a processor, if known.
    pub fn end(self, waited_ns: Option<u64>) -> Load {
        let seen_ns = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (before, after) = (self.before, MachineCounters::read());
        let since = |of: fn(&MachineCounters) -> Option<u64>| {
            Some(of(&after)?.saturating_sub(of(&before)?))
        };
        Load {
            seen_ns,
            waited_ns,
            seen_cpu_ns: None,
            steal_ns: since(|it| it.steal_ns),
            cpu_pressure_ns: since(|it| it.cpu_pressure_ns),
            io_pressure_ns: since(|it| it.io_pressure_ns),
            memory_pressure_ns: since(|it| it.memory_pressure_ns),
        }
    }
}

/// Counters of the whole machine since it was started; `None` where the system does not tell.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit")]
struct MachineCounters {
    steal_ns: Option<u64>,
    cpu_pressure_ns: Option<u64>,
    io_pressure_ns: Option<u64>,
    memory_pressure_ns: Option<u64>,
}

impl MachineCounters {
    fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let pressure = |of: &str| some_ns(&read(&format!("/proc/pressure/{of}"))?);
        Self {
            steal_ns: read("/proc/stat").as_deref().and_then(steal_ns),
            cpu_pressure_ns: pressure("cpu"),
            io_pressure_ns: pressure("io"),
            memory_pressure_ns: pressure("memory"),
        }
    }
}

/// The time of all processors that the host of a virtual machine gave to others: the eighth number of
/// the first line, in ticks (`proc_stat(5)`).
fn steal_ns(stat: &str) -> Option<u64> {
    let mut fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let ticks: u64 = fields.nth(7)?.parse().ok()?;
    ticks.checked_mul(1_000_000_000 / clock_ticks_per_second().max(1))
}

/// For how long some task could not go on, in a file of `/proc/pressure`, which counts microseconds
/// (the kernel's `Documentation/accounting/psi.rst`).
fn some_ns(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number_of_all_processors() {
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        assert_eq!(steal_ns("cpu  1 2 4 100 200 8 16 32 0 0\ncpu0 1\n"), Some(32 * tick_ns));
        for wrong in ["", "cpu  1 2 4 100 200 8 16", "cpu0 1 2 3 4 5 6 7 8", "cpu  a b c d e f g h"]
        {
            assert_eq!(steal_ns(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        let text =
            "some avg10=62.73 avg60=85.33 avg300=84.15 total=2378\nfull avg10=0.00 total=7\n";
        assert_eq!(some_ns(text), Some(2_378_000));
        assert_eq!(some_ns("full avg10=0.00 total=7\n"), None);
        assert_eq!(some_ns("some avg10=1 total=x"), None);
    }

    #[test]
    fn a_watch_sees_time_pass() {
        let load = LoadWatch::begin().end(Some(7));
        assert_eq!(load.waited_ns, Some(7));
        assert!(load.seen_ns > 0);
    }
}
