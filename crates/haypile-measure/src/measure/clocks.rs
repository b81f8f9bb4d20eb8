//! The laboratory's check of a runner's times: a runner that reports less took more than it reports, and none takes
//! longer than from `go` to `timed`.

use std::time::Instant;

use rustix::process::Pid;

use crate::meter::{group_clock_ns, process_clock_ns, process_waited_ns};

/// A runner's own times may be shorter than those seen from here by a third, and by these: between `go`
/// and its first clock it starts threads, and its line and ours wait for a processor.
const TIMES: (u64, u64) = (3, 2);
const CPU_SLACK_NS: u64 = 10_000_000;
const WALL_SLACK_NS: u64 = 50_000_000;
/// And longer by a twentieth, since clocks run at different rates, and by these: some count in ticks.
const LONGER: (u64, u64) = (21, 20);
const LONGER_WALL_SLACK_NS: u64 = 10_000_000;
const LONGER_CPU_SLACK_NS: u64 = 20_000_000;
/// The time of ended children is in ticks.
const GROUP_SLACK_NS: u64 = 30_000_000;

/// The time that a runner took from the start signal (`go`) to the end of its operations (`timed`), by the laboratory's
/// clock and by the kernel's processor time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenClocks {
    pid: Pid,
    begin: Instant,
    cpu_ns: Option<u64>,
    group_ns: u64,
    waited_ns: Option<u64>,
    /// Times from `go` to `timed`; `None` before the runner said `timed`.
    taken: Option<Taken>,
}

#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the unit")]
struct Taken {
    wall_ns: u64,
    cpu_ns: u64,
    /// Processor time of the process, of those that it has started, and of those of them that have ended, in
    /// nanoseconds.
    group_ns: u64,
    /// Time for which the first thread waited for a processor, in nanoseconds.
    waited_ns: u64,
}

impl SeenClocks {
    pub(super) fn begin(pid: Pid) -> Self {
        let number = pid.as_raw_nonzero().get();
        let group_ns = group_clock_ns(number);
        let (cpu_ns, waited_ns) = (process_clock_ns(number), process_waited_ns(number));
        Self { pid, begin: Instant::now(), cpu_ns, group_ns, waited_ns, taken: None }
    }

    /// Starts the measurement of the time that a runner's process takes from now, when it is sent the start signal
    /// (`go`), to the end of its operations.
    pub(super) fn go(self) -> Self {
        Self { begin: Instant::now(), ..self }
    }

    /// Ends the measurement of a runner's time from the start signal: the runner has printed `timed` at the time `at`,
    /// and waits.
    pub(super) fn end(self, at: Option<Instant>) -> Self {
        let wall = at.unwrap_or(self.begin).saturating_duration_since(self.begin);
        let number = self.pid.as_raw_nonzero().get();
        let since = |now: Option<u64>, before: Option<u64>| {
            now.zip(before).map_or(0, |(now, before)| now.saturating_sub(before))
        };
        let taken = Taken {
            wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            cpu_ns: since(process_clock_ns(number), self.cpu_ns),
            group_ns: 0,
            waited_ns: since(process_waited_ns(number), self.waited_ns),
        };
        Self { taken: Some(taken), ..self }
    }

    /// Adds the processor time of the runner's process group to the measured times, while the runner still waits. This
    /// reads all processes of the machine, and must not count as other work during the sample.
    pub(super) fn with_group(self) -> Self {
        let group_ns = group_clock_ns(self.pid.as_raw_nonzero().get());
        let group_ns = group_ns.saturating_sub(self.group_ns);
        Self { taken: self.taken.map(|taken| Taken { group_ns, ..taken }), ..self }
    }

    /// Returns the nanoseconds for which the first thread of the runner waited for a processor; `None` if the system
    /// does not state them.
    pub(super) fn waited_ns(&self) -> Option<u64> {
        self.waited_ns?;
        Some(self.taken?.waited_ns)
    }

    /// Returns the processor time of the runner's process in nanoseconds, according to the kernel.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        self.cpu_ns?;
        Some(self.taken?.cpu_ns)
    }

    /// Checks the times that a runner reports about itself and its server against the kernel's; returns an error that
    /// states the difference.
    pub(super) fn judge(&self, wall_ns: u64, cpu_ns: u64, server_ns: u64) -> Result<(), String> {
        let Some(taken) = self.taken else { return Ok(()) };
        let wall_slack_ns = WALL_SLACK_NS.saturating_add(taken.waited_ns);
        too_short("a wall time", wall_ns, taken.wall_ns, wall_slack_ns)?;
        too_short("a processor time", cpu_ns, taken.cpu_ns, CPU_SLACK_NS)?;
        too_long("a wall time", wall_ns, taken.wall_ns, LONGER_WALL_SLACK_NS)?;
        // Who counts helpers as well is right.
        let most_ns = taken.cpu_ns.max(taken.group_ns);
        too_long("a processor time", cpu_ns, most_ns, LONGER_CPU_SLACK_NS)?;
        let all_ns = cpu_ns.saturating_add(server_ns);
        if is_too_short(all_ns, taken.group_ns, GROUP_SLACK_NS) {
            return Err(format!(
                "the runner said a processor time of {all_ns} ns, and it and the processes that it started took \
                 {} ns from 'go' to 'timed': another process did its work",
                taken.group_ns
            ));
        }
        Ok(())
    }
}

fn is_too_short(said_ns: u64, seen_ns: u64, slack_ns: u64) -> bool {
    let (times, of) = TIMES;
    said_ns.saturating_mul(times) / of < seen_ns.saturating_sub(slack_ns)
}

fn too_long(what: &str, said_ns: u64, seen_ns: u64, slack_ns: u64) -> Result<(), String> {
    let (times, of) = LONGER;
    let most_ns = seen_ns.saturating_mul(times) / of;
    if said_ns <= most_ns.saturating_add(slack_ns) {
        return Ok(());
    }
    Err(format!(
        "the runner said {what} of {said_ns} ns, and from 'go' to 'timed' it was {seen_ns} ns: nothing takes \
         longer than that"
    ))
}

fn too_short(what: &str, said_ns: u64, seen_ns: u64, slack_ns: u64) -> Result<(), String> {
    if !is_too_short(said_ns, seen_ns, slack_ns) {
        return Ok(());
    }
    Err(format!(
        "the runner said {what} of {said_ns} ns, and from 'go' to 'timed' it was {seen_ns} ns: its clock \
         is wrong, or it did work that it did not time"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_much_shorter_than_those_seen_are_wrong() {
        let ms = |ms: u64| ms * 1_000_000;
        for (said, seen) in [(100, 100), (100, 150), (0, 10), (20, 39), (100, 1)] {
            assert_eq!(too_short("a time", ms(said), ms(seen), ms(10)), Ok(()), "{said} {seen}");
        }
        for (said, seen) in [(50, 100), (0, 11), (20, 41)] {
            let error = too_short("a time", ms(said), ms(seen), ms(10)).unwrap_err();
            assert!(error.contains("said a time of"), "{error}");
        }
    }

    #[test]
    fn waiting_for_a_processor_is_no_work() {
        let seen = |wall_ns, cpu_ns, waited_ns| SeenClocks {
            pid: Pid::INIT,
            begin: Instant::now(),
            cpu_ns: None,
            group_ns: 0,
            waited_ns: None,
            taken: Some(Taken { wall_ns, cpu_ns, group_ns: cpu_ns, waited_ns }),
        };
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(seen(ms(500), ms(10), ms(440)).judge(ms(10), ms(10), 0), Ok(()));
        let error = seen(ms(500), ms(10), ms(0)).judge(ms(10), ms(10), 0).unwrap_err();
        assert!(error.contains("wall"), "{error}");
        assert!(seen(ms(500), ms(100), ms(440)).judge(ms(10), ms(10), 0).is_err());
    }

    #[test]
    fn times_that_are_longer_than_those_seen_and_the_work_of_helpers_are_wrong() {
        let ms = |ms: u64| ms * 1_000_000;
        for (said, seen) in [(100, 100), (110, 100), (10, 0), (0, 100)] {
            assert_eq!(too_long("a time", ms(said), ms(seen), ms(10)), Ok(()), "{said} {seen}");
        }
        for (said, seen) in [(116, 100), (11, 0), (118, 1)] {
            let error = too_long("a time", ms(said), ms(seen), ms(10)).unwrap_err();
            assert!(error.contains("nothing takes longer"), "{error}");
        }
        let seen = SeenClocks {
            pid: Pid::INIT,
            begin: Instant::now(),
            cpu_ns: None,
            group_ns: 0,
            waited_ns: None,
            taken: Some(Taken {
                wall_ns: ms(300),
                cpu_ns: ms(1),
                group_ns: ms(250),
                ..Taken::default()
            }),
        };
        let error = seen.judge(ms(300), ms(1), 0).unwrap_err();
        assert!(error.contains("another process did its work"), "{error}");
        assert_eq!(seen.judge(ms(300), ms(1), ms(249)), Ok(()), "a server has a time of its own");
        assert_eq!(seen.judge(ms(300), ms(250), 0), Ok(()), "it has counted its helpers");
    }
}
