//! The cases `keep` and `evict`: writers are killed one by one, and others go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::context::TestContext;
use super::reader;
use super::slot::{WriterRun, WriterSlot};

/// One of this number of writers is killed early, perhaps while it opens.
const EARLY_ONE_OF: u64 = 8;

/// The longest run of these.
const EARLY: Duration = Duration::from_millis(8);

/// A cache counts as full when this multiple of its size was written.
const FILLINGS: u64 = 2;

/// Between two looks at whether it is full.
const PAUSE: Duration = Duration::from_millis(1);

/// Runs the torture case `keep` (the cache has room for all entries) or `evict` (it is full), with kills of writer
/// processes, or without them as a control run.
pub(super) fn run(context: &TestContext<'_>, is_control: bool) {
    let slots = filled(context);
    let left = AtomicU64::new(context.options.kills);
    let mut slots = with_readers(context, || {
        thread::scope(|scope| {
            let mut slots = slots.into_iter();
            let mut survivor = slots.next().expect("the plan has two writers");
            let survivor = scope.spawn(move || {
                survivor.run(context, WriterRun::UntilOver);
                survivor
            });
            let victims: Vec<_> = slots
                .map(|slot| scope.spawn(|| die_again(context, slot, &left, is_control)))
                .collect();
            let join =
                |thread: thread::ScopedJoinHandle<'_, WriterSlot>| thread.join().expect("no panic");
            let mut slots: Vec<WriterSlot> = victims.into_iter().map(join).collect();
            context.end();
            slots.push(join(survivor));
            slots
        })
    });
    audit(context, &mut slots);
}

fn die_again(
    context: &TestContext<'_>,
    mut slot: WriterSlot,
    left: &AtomicU64,
    is_control: bool,
) -> WriterSlot {
    let take = |left: u64| left.checked_sub(1);
    while !context.ends() && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        let is_early = slot.is_one_of(EARLY_ONE_OF);
        let after = slot.moment(if is_early { EARLY } else { context.options.longest_run });
        slot.run(
            context,
            match (is_control, is_early) {
                (true, _) => WriterRun::Ends(after),
                (false, true) => WriterRun::KilledEarly(after),
                (false, false) => WriterRun::Killed(after),
            },
        );
        context.watcher.advance(1);
    }
    slot
}

/// Starts all writer processes, and waits until the cache is full if the case needs that.
pub(super) fn filled(context: &TestContext<'_>) -> Vec<WriterSlot> {
    let slots = (0..context.options.writers).map(|number| WriterSlot::new(context, number));
    if !context.stage.evicts {
        return slots.collect();
    }
    let begun = Instant::now();
    let due = context.options.capacity_bytes * FILLINGS;
    thread::scope(|scope| {
        let fill = |mut slot: WriterSlot| {
            scope.spawn(move || {
                slot.run(context, WriterRun::UntilOver);
                slot
            })
        };
        let slots: Vec<_> = slots.map(fill).collect();
        // A cache that cannot be filled is tortured as it is: it may refuse what it has no room for.
        while context.written_bytes.load(Ordering::Relaxed) < due
            && begun.elapsed() < context.options.timeout
            && !context.ends()
            && !slots.iter().all(thread::ScopedJoinHandle::is_finished)
        {
            thread::sleep(PAUSE);
        }
        context.end();
        let slots = slots.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        if !context.has_given_up() {
            context.is_over.store(false, Ordering::Relaxed);
        }
        slots
    })
}

/// Performs `work` while reader processes read the cache, and then ends these.
pub(super) fn with_readers<T>(context: &TestContext<'_>, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        for number in 0..context.options.readers {
            scope.spawn(move || reader::stay(context, number));
        }
        scope.spawn(|| reader::come_and_go(context));
        let result = work();
        context.end();
        result
    })
}

/// Starts a new process for each writer, which compares all keys with the acknowledged writes of its predecessor.
pub(super) fn audit(context: &TestContext<'_>, slots: &mut [WriterSlot]) {
    for slot in slots {
        if context.has_given_up() || context.watcher.is_interrupted() {
            return;
        }
        slot.run(context, WriterRun::Audit);
    }
}
