//! The case `all`: all processes are killed at once, and new processes find the acknowledged
//! values.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::context::TestContext;
use super::draw::Draw;
use super::kills::audit;
use super::reader;
use super::slot::{WriterRun, WriterSlot};

/// Between two looks at whether all write.
const PAUSE: Duration = Duration::from_micros(500);

pub(super) fn run(context: &TestContext<'_>) {
    let mut slots: Vec<WriterSlot> =
        (0..context.options.writers).map(|number| WriterSlot::new(context, number)).collect();
    let mut draw = Draw::new(context.options.seed);
    let longest =
        u64::try_from(context.options.longest_run.as_micros()).expect("some milliseconds");
    for _ in 0..context.options.kill_all_rounds {
        if context.ends() {
            break;
        }
        context.ready.store(0, Ordering::Relaxed);
        context.is_killing_all.store(false, Ordering::Release);
        let broken = context.broken();
        thread::scope(|scope| {
            for slot in &mut slots {
                scope.spawn(|| slot.run(context, WriterRun::KillAll));
            }
            for number in 0..context.options.readers {
                scope.spawn(move || reader::stay(context, number));
            }
            await_all(context, broken);
            thread::sleep(Duration::from_micros(draw.below(longest)));
            context.is_killing_all.store(true, Ordering::Release);
            for pid in &context.pids {
                if let Some(pid) = Pid::from_raw(pid.swap(0, Ordering::AcqRel)) {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
            }
        });
        context.watcher.advance(1);
    }
    audit(context, &mut slots);
}

/// Until every writer writes, or one of them never will: more are broken than were before.
fn await_all(context: &TestContext<'_>, broken: u64) {
    let writers = usize::try_from(context.options.writers).expect("some");
    let is_broken = || context.broken() > broken;
    while context.ready.load(Ordering::Relaxed) < writers && !context.ends() && !is_broken() {
        thread::sleep(PAUSE);
    }
}
