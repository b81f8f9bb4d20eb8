//! A command of the shell that tests whether a start is ready.
//!
//! It runs on the machine that is measured, and is none of the start: its processor time is counted apart, and it rests
//! longer than it runs, so that it takes at most a quarter of a processor.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;

use super::orders::StartOrders;

/// The shortest rest between two runs.
const LEAST_PAUSE: Duration = Duration::from_millis(10);
/// The length of a rest, in runs before it.
const PAUSE_FACTOR: u32 = 3;
/// The longest rest.
const MOST_PAUSE: Duration = Duration::from_secs(1);
/// Between two looks at a run before the start.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// The repeated runs of the user's readiness command, which succeeds as soon as the started command is ready.
#[derive(Debug)]
pub(super) struct Probe {
    /// The process of a run under way, and when it began.
    running: Option<(i32, Instant)>,
    next: Instant,
    /// The moment at which the last failed run began; the start if no run has failed.
    failed_at: Instant,
    success: Option<Success>,
}

/// The first run of the readiness command (which tests whether the started command is ready) that succeeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Success {
    /// The time at which the readiness command was known to succeed.
    pub(super) at: Instant,
    /// The uncertainty of the time at which the command was ready: the time since the last failing run of the readiness
    /// command began.
    pub(super) within: Duration,
}

impl Probe {
    pub(super) fn begin(start: Instant) -> Self {
        Self { running: None, next: start, failed_at: start, success: None }
    }

    /// Returns the process id of the readiness command if it is running now; it is not a part of the measured process
    /// tree.
    pub(super) fn pid(&self) -> Option<i32> {
        self.running.map(|(pid, _)| pid)
    }

    /// Returns the first success of the readiness command, which shows that the started command is ready; `None` before
    /// it.
    pub(super) fn success(&self) -> Option<Success> {
        self.success
    }

    /// Returns the time at which the readiness command is run next; `None` while it is running.
    pub(super) fn next(&self) -> Option<Instant> {
        self.running.is_none().then_some(self.next)
    }

    /// Runs the readiness command if its interval is over, or at once for the last time.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(super) fn run(
        &mut self,
        (orders, command): (&StartOrders, &str),
        now: Instant,
        is_last: bool,
    ) -> Result<(), String> {
        if self.running.is_some() || self.success.is_some() || !(is_last || now >= self.next) {
            return Ok(());
        }
        let probe = shell(orders, command).spawn().map_err(|error| not_started(command, &error))?;
        self.running = i32::try_from(probe.id()).ok().map(|pid| (pid, now));
        Ok(())
    }

    /// Records that a process has ended, and returns whether that process was a run of the readiness command.
    pub(super) fn ended(&mut self, pid: i32, is_success: bool, now: Instant) -> bool {
        let Some((_, begun)) = self.running.filter(|(own, _)| *own == pid) else { return false };
        self.running = None;
        self.next = now + pause_after(now - begun);
        if is_success {
            self.success.get_or_insert(Success { at: now, within: now - self.failed_at });
        } else {
            self.failed_at = begun;
        }
        true
    }
}

fn pause_after(run: Duration) -> Duration {
    (run * PAUSE_FACTOR).clamp(LEAST_PAUSE, MOST_PAUSE)
}

fn not_started(command: &str, error: &io::Error) -> String {
    format!("'{command}' cannot be started: {error}")
}

/// Whether the readiness command already succeeds before the measured command is started, so that it shows nothing. It
/// may take as long as a start.
pub(super) fn succeeds_already(
    orders: &StartOrders,
    command: &str,
    stop: &impl AsFd,
) -> Result<bool, String> {
    let lost = |error: io::Error| not_started(command, &error);
    let mut probe = shell(orders, command).spawn().map_err(lost)?;
    let deadline = Instant::now() + Duration::from_millis(orders.timeout_ms);
    let pause = Timespec::try_from(LOOK_PAUSE).map_err(|error| error.to_string())?;
    let reason = loop {
        if let Some(status) = probe.try_wait().map_err(lost)? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            break format!(
                "'{command}' of --ready took longer than {} before the start; --timeout gives it \
                 more time",
                orders.timeout()
            );
        }
        if poll(&mut [PollFd::new(stop, PollFlags::IN)], Some(&pause)).is_ok_and(|ready| ready > 0)
        {
            break "stopped".to_owned();
        }
    };
    if let Some(group) = i32::try_from(probe.id()).ok().and_then(Pid::from_raw) {
        // It may have ended in the meantime.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = probe.wait();
    Err(reason)
}

fn shell(orders: &StartOrders, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).env_clear().envs(&orders.environment);
    shell.current_dir(&orders.directory);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own: it is not part of the tree.
    shell.process_group(0);
    shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_rests_three_times_as_long_and_a_success_tells_how_exact_it_is() {
        let ms = Duration::from_millis;
        assert_eq!([1, 40, 5_000].map(|it| pause_after(ms(it))), [10, 120, 1_000].map(ms));
        let start = Instant::now();
        let mut probe = Probe::begin(start);
        probe.running = Some((7, start + ms(5)));
        assert!(!probe.ended(8, true, start + ms(6)), "another process");
        assert!(probe.ended(7, false, start + ms(25)));
        assert_eq!(probe.next(), Some(start + ms(85)));
        probe.running = Some((9, start + ms(85)));
        assert_eq!((probe.next(), probe.pid()), (None, Some(9)));
        assert!(probe.ended(9, true, start + ms(95)));
        let success = probe.success().unwrap();
        assert_eq!((success.at, success.within), (start + ms(95), ms(90)));
    }
}
