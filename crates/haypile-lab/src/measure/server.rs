//! The processor time of a server.

use std::fs;

use rustix::param::clock_ticks_per_second;

/// The processor time that a process has taken so far, in nanoseconds; `None` where there is no
/// such process. The system counts it in ticks of about 10 ms.
pub(super) fn cpu_ns(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks(&stat)?;
    Some(ticks.saturating_mul(1_000_000_000 / clock_ticks_per_second().max(1)))
}

/// Ticks in user space and in the kernel. The name of the process may hold blanks and brackets,
/// and ends at the last bracket.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    fields.next()?.ok()?.checked_add(fields.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_behind_the_name() {
        let stat = "42 (a ) b (c) R 1 42 42 0 -1 4194304 100 0 0 0 17 5 0 0 20 0 1 0 300 1000 10";
        assert_eq!(ticks(stat), Some(22));
        for wrong in ["", "42 (a", "42 (a) R 1 2", "42 (a) R 1 2 3 4 5 6 7 8 9 0 x y"] {
            assert_eq!(ticks(wrong), None, "{wrong}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_is_there_has_a_time() {
        assert!(cpu_ns(std::process::id()).is_some());
        assert_eq!(cpu_ns(u32::MAX), None);
    }
}
