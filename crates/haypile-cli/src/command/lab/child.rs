//! Commands that this program runs in processes of their own.

use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt;

/// Time between two looks at a running command.
const POLL: Duration = Duration::from_millis(20);

/// Waits for the end of a command. The first signal to this program asks the command to end as well: only Ctrl-C of a
/// terminal reaches both.
pub(super) fn wait(mut child: Child) -> anyhow::Result<ExitStatus> {
    let mut is_asked = false;
    loop {
        if let Some(ended) = child.try_wait()? {
            return Ok(ended);
        }
        if interrupt::asked() && !is_asked {
            kill_process(Pid::from_child(&child), Signal::TERM)?;
            is_asked = true;
        }
        thread::sleep(POLL);
    }
}
