//! The times of a runner, seen from the laboratory: a runner that says less took more than it says.

use std::time::Instant;

use rustix::process::Pid;

use crate::meter::process_clock_ns;

/// A runner's own times may be shorter than those seen from here by a third, and by
/// [`SLACK_NS`]: between `go` and its first clock it starts threads, and waits for a processor.
const TIMES: (u64, u64) = (3, 2);
const SLACK_NS: u64 = 10_000_000;

/// The time between `go` and `timed`: by the laboratory's clock, and by the kernel's of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenClocks {
    pid: Pid,
    begin: Instant,
    cpu_ns: Option<u64>,
    /// Until `timed`, once that was said.
    taken: Option<(u64, Option<u64>)>,
}

impl SeenClocks {
    pub(super) fn begin(pid: Pid) -> Self {
        let cpu_ns = process_clock_ns(pid.as_raw_nonzero().get());
        Self { pid, begin: Instant::now(), cpu_ns, taken: None }
    }

    /// The process has said `timed` at a moment, and waits.
    pub(super) fn end(self, at: Option<Instant>) -> Self {
        let wall = at.unwrap_or(self.begin).saturating_duration_since(self.begin);
        let now = process_clock_ns(self.pid.as_raw_nonzero().get());
        let cpu_ns = now.zip(self.cpu_ns).map(|(now, before)| now.saturating_sub(before));
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        Self { taken: Some((wall_ns, cpu_ns)), ..self }
    }

    /// Compares what the runner says.
    pub(super) fn judge(&self, wall_ns: u64, cpu_ns: u64) -> Result<(), String> {
        let Some((seen_wall_ns, seen_cpu_ns)) = self.taken else { return Ok(()) };
        too_short("a wall time", wall_ns, seen_wall_ns)?;
        too_short("a processor time", cpu_ns, seen_cpu_ns.unwrap_or(0))
    }
}

fn too_short(what: &str, said_ns: u64, seen_ns: u64) -> Result<(), String> {
    let (times, of) = TIMES;
    if said_ns.saturating_mul(times) / of >= seen_ns.saturating_sub(SLACK_NS) {
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
            assert_eq!(too_short("a time", ms(said), ms(seen)), Ok(()), "{said} {seen}");
        }
        for (said, seen) in [(50, 100), (0, 11), (20, 41)] {
            let error = too_short("a time", ms(said), ms(seen)).unwrap_err();
            assert!(error.contains("said a time of"), "{error}");
        }
    }
}
