//! The case `stop`: a writer is stopped for a while, and others go on.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::context::TestContext;
use super::draw::Draw;
use super::kills::{audit, filled, with_readers};
use super::slot::{WriterRun, WriterSlot};

/// The writer that is stopped.
const STOPPED: usize = 1;

/// The longest time that it runs in between.
const RUNS: Duration = Duration::from_millis(60);

/// Between two looks at whether to end.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) fn run(context: &TestContext<'_>) {
    let mut slots = filled(context);
    let stopped = slots.remove(STOPPED).without_times();
    slots.insert(STOPPED, stopped);
    let mut slots = with_readers(context, || {
        thread::scope(|scope| {
            let live = |mut slot: WriterSlot| {
                scope.spawn(move || {
                    slot.run(context, WriterRun::UntilOver);
                    slot
                })
            };
            let slots: Vec<_> = slots.into_iter().map(live).collect();
            stop_and_go(context);
            context.end();
            slots.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        })
    });
    audit(context, &mut slots);
}

fn stop_and_go(context: &TestContext<'_>) {
    let mut draw = Draw::new(context.options.seed);
    let longest = u64::try_from(RUNS.as_micros()).expect("some milliseconds");
    for _ in 0..context.options.stops {
        rest(context, Duration::from_micros(draw.below(longest)) + PAUSE);
        let Some(pid) = Pid::from_raw(context.pids[STOPPED].load(Ordering::Acquire)) else {
            continue;
        };
        if context.ends() || kill_process_group(pid, Signal::STOP).is_err() {
            return;
        }
        rest(context, context.options.stop);
        // What is killed while it is stopped is killed.
        let _ = kill_process_group(pid, Signal::CONT);
        context.tally.lock().stops += 1;
        context.watcher.advance(1);
    }
}

fn rest(context: &TestContext<'_>, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time && !context.ends() {
        thread::sleep(PAUSE.min(time));
    }
}
