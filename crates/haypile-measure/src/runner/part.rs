//! A part of a job: operations on all threads, between two looks at the clocks.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::drive::{Blind, Lane, Probe, Tally};
use super::latency::Latencies;
use crate::job::Op;
use crate::meter::Meter;
use crate::subject::{Subject, SubjectError, Worker};

/// The counts and times of a job's timed part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timed {
    pub(super) tally: Tally,
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: u64,
}

/// Does a job's operations on one thread, including those that affect the whole cache, such as
/// clearing it.
pub(super) fn alone<P: Probe>(
    subject: &mut dyn Subject,
    words: &[u32],
    lane: &mut Lane<'_>,
    probe: &mut P,
) -> Result<Tally, SubjectError> {
    let mut tally = Tally::default();
    let mut rest = words;
    loop {
        let whole = rest.iter().position(|&word| for_the_whole(word).is_some());
        let (words, after) = rest.split_at(whole.unwrap_or(rest.len()));
        if !words.is_empty() {
            tally.add(lane.drive(words, &mut *only(subject)?, probe));
        }
        let Some((&word, after)) = after.split_first() else { return Ok(tally) };
        let Some((op, operand)) = for_the_whole(word) else { unreachable!("it was found above") };
        rest = after;
        let begun = probe.begin();
        match op {
            Op::Fresh => subject.fresh()?,
            Op::Flush => subject.flush().map_err(SubjectError::Flush)?,
            Op::Clear => subject.clear().map_err(SubjectError::Clear)?,
            _ => thread::sleep(Duration::from_millis(u64::from(operand))),
        }
        probe.end(op, begun);
    }
}

/// An operation for the cache as a whole, if the word is one.
fn for_the_whole(word: u32) -> Option<(Op, u32)> {
    Op::decode(word).filter(|(op, _)| op.is_for_the_whole())
}

/// Returns one worker of a subject: a user of the cache under test on one thread.
pub(super) fn only(subject: &mut dyn Subject) -> Result<Box<dyn Worker + Send + '_>, SubjectError> {
    Ok(subject.workers(1)?.pop().expect("as many workers as were asked for"))
}

/// Does a job's timed operations `executions` times, with one thread for each list of them; returns
/// counts and times.
pub(super) fn timed(
    subject: &mut dyn Subject,
    meter: &dyn Meter,
    words: &[Vec<u32>],
    lanes: &mut [Lane<'_>],
    executions: u64,
) -> Result<Timed, SubjectError> {
    let mut timed = Timed::default();
    if let [lane] = lanes {
        let (wall_ns, cpu_ns) = (meter.wall_ns(), meter.cpu_ns());
        for _ in 0..executions {
            timed.tally.add(alone(subject, &words[0], lane, &mut Blind)?);
        }
        timed.cpu_ns = meter.cpu_ns() - cpu_ns;
        timed.wall_ns = meter.wall_ns() - wall_ns;
        return Ok(timed);
    }
    let workers = subject.workers(lanes.len())?;
    let (here, go) = (Barrier::new(lanes.len() + 1), Barrier::new(lanes.len() + 1));
    let (ends, wall_ns, cpu_ns) = thread::scope(|scope| {
        let thread = |((lane, mut worker), words): ((_, Box<dyn Worker + Send>), _)| {
            let (here, go) = (&here, &go);
            let lane: &mut Lane<'_> = lane;
            let words: &Vec<u32> = words;
            scope.spawn(move || {
                here.wait();
                go.wait();
                let mut tally = Tally::default();
                for _ in 0..executions {
                    tally.add(lane.drive(words, &mut *worker, &mut Blind));
                }
                // Each thread looks, so that the last one is not waited for.
                (tally, meter.cpu_ns(), meter.wall_ns())
            })
        };
        let threads: Vec<_> = lanes.iter_mut().zip(workers).zip(words).map(thread).collect();
        here.wait();
        let (wall_ns, cpu_ns) = (meter.wall_ns(), meter.cpu_ns());
        go.wait();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        (joined.collect::<Vec<_>>(), wall_ns, cpu_ns)
    });
    for (tally, end_cpu_ns, end_wall_ns) in ends {
        timed.tally.add(tally);
        timed.cpu_ns = timed.cpu_ns.max(end_cpu_ns - cpu_ns);
        timed.wall_ns = timed.wall_ns.max(end_wall_ns - wall_ns);
    }
    Ok(timed)
}

/// Does a job's timed operations once more, and measures the latency of each operation by itself.
pub(super) fn each<'meter>(
    subject: &mut dyn Subject,
    meter: &'meter dyn Meter,
    words: &[Vec<u32>],
    lanes: &mut [Lane<'_>],
) -> Result<(Tally, Latencies<'meter>), SubjectError> {
    let mut tally = Tally::default();
    let mut latencies = Latencies::new(meter);
    if let [lane] = lanes {
        tally.add(alone(subject, &words[0], lane, &mut latencies)?);
        return Ok((tally, latencies));
    }
    let workers = subject.workers(lanes.len())?;
    let go = Barrier::new(lanes.len());
    let parts = thread::scope(|scope| {
        let thread = |((lane, mut worker), words): ((_, Box<dyn Worker + Send>), _)| {
            let go = &go;
            let lane: &mut Lane<'_> = lane;
            let words: &Vec<u32> = words;
            scope.spawn(move || {
                let mut latencies = Latencies::new(meter);
                go.wait();
                (lane.drive(words, &mut *worker, &mut latencies), latencies)
            })
        };
        let threads: Vec<_> = lanes.iter_mut().zip(workers).zip(words).map(thread).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        joined.collect::<Vec<_>>()
    });
    for (part, part_latencies) in parts {
        tally.add(part);
        latencies.add(&part_latencies);
    }
    Ok((tally, latencies))
}
