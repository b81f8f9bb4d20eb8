//! Commands that this program runs in processes of their own.

use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{FAILURE, interrupt};

/// Time between two looks at a running command.
const POLL: Duration = Duration::from_millis(20);

/// Waits for the end of a child process, and returns its exit status, or that of a failure if a
/// signal ended it. The first signal to this program asks the child to end as well: only Ctrl-C in
/// a terminal reaches both.
pub(super) fn wait(mut child: Child) -> anyhow::Result<u8> {
    let mut is_asked = false;
    loop {
        if let Some(ended) = child.try_wait()? {
            let code = ended.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.unwrap_or(FAILURE));
        }
        if interrupt::asked() && !is_asked {
            kill_process(Pid::from_child(&child), Signal::TERM)?;
            is_asked = true;
        }
        thread::sleep(POLL);
    }
}
