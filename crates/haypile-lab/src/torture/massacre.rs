//! Everybody is killed at once, and new processes find what was acknowledged.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::draw::Draw;
use super::ground::Ground;
use super::kills::audit;
use super::reader;
use super::slot::{Life, Slot};

/// Between two looks at whether all write.
const PAUSE: Duration = Duration::from_micros(500);

pub(super) fn run(ground: &Ground<'_>) {
    let mut slots: Vec<Slot> =
        (0..ground.options.writers).map(|number| Slot::new(ground, number)).collect();
    let mut draw = Draw::new(ground.options.seed);
    let longest = u64::try_from(ground.options.life.as_micros()).expect("some milliseconds");
    for _ in 0..ground.options.massacres {
        if ground.ends() {
            break;
        }
        ground.ready.store(0, Ordering::Relaxed);
        ground.is_massacre.store(false, Ordering::Release);
        let broken = ground.broken();
        thread::scope(|scope| {
            for slot in &mut slots {
                scope.spawn(|| slot.live(ground, Life::Massacre));
            }
            for number in 0..ground.options.readers {
                scope.spawn(move || reader::stay(ground, number));
            }
            await_all(ground, broken);
            thread::sleep(Duration::from_micros(draw.below(longest)));
            ground.is_massacre.store(true, Ordering::Release);
            for pid in &ground.pids {
                if let Some(pid) = Pid::from_raw(pid.swap(0, Ordering::AcqRel)) {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
            }
        });
        ground.watcher.advance(1);
    }
    audit(ground, &mut slots);
}

/// Until every writer writes, or one of them never will: more are broken than were before.
fn await_all(ground: &Ground<'_>, broken: u64) {
    let writers = usize::try_from(ground.options.writers).expect("some");
    let is_broken = || ground.broken() > broken;
    while ground.ready.load(Ordering::Relaxed) < writers && !ground.ends() && !is_broken() {
        thread::sleep(PAUSE);
    }
}
