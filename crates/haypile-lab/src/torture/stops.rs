//! A writer is stopped for a while, and others go on.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::draw::Draw;
use super::ground::Ground;
use super::kills::{audit, filled, with_readers};
use super::slot::{Life, Slot};

/// The writer that is stopped.
const STOPPED: usize = 1;

/// The longest time that it runs in between.
const RUNS: Duration = Duration::from_millis(60);

/// Between two looks at whether to end.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) fn run(ground: &Ground<'_>) {
    let mut slots = filled(ground);
    let stopped = slots.remove(STOPPED).without_times();
    slots.insert(STOPPED, stopped);
    let mut slots = with_readers(ground, || {
        thread::scope(|scope| {
            let live = |mut slot: Slot| {
                scope.spawn(move || {
                    slot.live(ground, Life::UntilOver);
                    slot
                })
            };
            let slots: Vec<_> = slots.into_iter().map(live).collect();
            stop_and_go(ground);
            ground.end();
            slots.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        })
    });
    audit(ground, &mut slots);
}

fn stop_and_go(ground: &Ground<'_>) {
    let mut draw = Draw::new(ground.options.seed);
    let longest = u64::try_from(RUNS.as_micros()).expect("some milliseconds");
    for _ in 0..ground.options.stops {
        rest(ground, Duration::from_micros(draw.below(longest)) + PAUSE);
        let Some(pid) = Pid::from_raw(ground.pids[STOPPED].load(Ordering::Acquire)) else {
            continue;
        };
        if ground.ends() || kill_process_group(pid, Signal::STOP).is_err() {
            return;
        }
        rest(ground, ground.options.stop);
        // What is killed while it is stopped is killed.
        let _ = kill_process_group(pid, Signal::CONT);
        ground.tally.lock().stops += 1;
        ground.watcher.advance(1);
    }
}

fn rest(ground: &Ground<'_>, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time && !ground.ends() {
        thread::sleep(PAUSE.min(time));
    }
}
