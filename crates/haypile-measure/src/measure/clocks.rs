//! The times of a runner, seen from the laboratory: a runner that says less took more than it says.

use std::time::Instant;

use rustix::process::Pid;

use crate::meter::{process_clock_ns, process_waited_ns};

/// A runner's own times may be shorter than those seen from here by a third, and by these: between `go`
/// and its first clock it starts threads, and its line and ours wait for a processor.
const TIMES: (u64, u64) = (3, 2);
const CPU_SLACK_NS: u64 = 10_000_000;
const WALL_SLACK_NS: u64 = 50_000_000;

/// The time between `go` and `timed`: by the laboratory's clock, and by the kernel's of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenClocks {
    pid: Pid,
    begin: Instant,
    cpu_ns: Option<u64>,
    waited_ns: Option<u64>,
    /// Until `timed`, once that was said.
    taken: Option<Taken>,
}

#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the unit")]
struct Taken {
    wall_ns: u64,
    cpu_ns: u64,
    /// For this long the first thread waited for a processor.
    waited_ns: u64,
}

impl SeenClocks {
    pub(super) fn begin(pid: Pid) -> Self {
        let number = pid.as_raw_nonzero().get();
        let (cpu_ns, waited_ns) = (process_clock_ns(number), process_waited_ns(number));
        Self { pid, begin: Instant::now(), cpu_ns, waited_ns, taken: None }
    }

    /// The process has said `timed` at a moment, and waits.
    pub(super) fn end(self, at: Option<Instant>) -> Self {
        let wall = at.unwrap_or(self.begin).saturating_duration_since(self.begin);
        let number = self.pid.as_raw_nonzero().get();
        let since = |now: Option<u64>, before: Option<u64>| {
            now.zip(before).map_or(0, |(now, before)| now.saturating_sub(before))
        };
        let taken = Taken {
            wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            cpu_ns: since(process_clock_ns(number), self.cpu_ns),
            waited_ns: since(process_waited_ns(number), self.waited_ns),
        };
        Self { taken: Some(taken), ..self }
    }

    /// For how long the first thread waited for a processor, where the system tells.
    pub(super) fn waited_ns(&self) -> Option<u64> {
        self.waited_ns?;
        Some(self.taken?.waited_ns)
    }

    /// Compares what the runner says.
    pub(super) fn judge(&self, wall_ns: u64, cpu_ns: u64) -> Result<(), String> {
        let Some(taken) = self.taken else { return Ok(()) };
        let wall_slack_ns = WALL_SLACK_NS.saturating_add(taken.waited_ns);
        too_short("a wall time", wall_ns, taken.wall_ns, wall_slack_ns)?;
        too_short("a processor time", cpu_ns, taken.cpu_ns, CPU_SLACK_NS)
    }
}

fn too_short(what: &str, said_ns: u64, seen_ns: u64, slack_ns: u64) -> Result<(), String> {
    let (times, of) = TIMES;
    if said_ns.saturating_mul(times) / of >= seen_ns.saturating_sub(slack_ns) {
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
            waited_ns: None,
            taken: Some(Taken { wall_ns, cpu_ns, waited_ns }),
        };
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(seen(ms(500), ms(10), ms(440)).judge(ms(10), ms(10)), Ok(()));
        assert!(seen(ms(500), ms(10), ms(0)).judge(ms(10), ms(10)).unwrap_err().contains("wall"));
        assert!(seen(ms(500), ms(100), ms(440)).judge(ms(10), ms(10)).is_err());
    }
}
