//! Recordings of caches with `record=PATH`: `docs/format-recording.md`.
//!
//! Several files, one of each process, are one trace: their operations are merged by time. Within a
//! file they are brought into the order of time as well, which its blocks promise to a reader that
//! keeps a few of them. [`requests`] says what becomes of the operations.
//!
//! A file that ends in the middle of a block, or has a damaged one, is read up to there, and the
//! report says so: that is how a process leaves it that is killed or still runs.

mod group;
mod requests;
mod stream;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use haypile_policy::recording::{End, Kind};

use super::super::input::Input;
use super::super::{Sink, TraceError};
use super::entries::Entries;
pub use group::group;
use requests::Requests;
use stream::Stream;

/// Notes that a report has; further ones are only counted.
const NOTES: usize = 10;

/// A summary of the recordings of caches from which a trace was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// Number of recording files in the trace.
    pub files: u64,
    /// Number of recorded cache operations in all recordings.
    pub operations: u64,
    /// Number of reads that the recorded cache answered.
    pub hits: u64,
    /// Number of reads that the recorded cache did not answer.
    pub misses: u64,
    /// Number of recordings that ended because their file reached its maximum size.
    pub full: u64,
    /// Number of recordings without an end mark: their process was killed, their disk failed, or they are still being
    /// written.
    pub unfinished: u64,
    /// Whether any of the recordings contains hashes of keys instead of the keys.
    pub hashed_keys: bool,
}

impl RecordingSummary {
    fn count(&mut self, kind: Kind) {
        self.operations += 1;
        match kind {
            Kind::Hit => self.hits += 1,
            Kind::Miss => self.misses += 1,
            _ => {}
        }
    }
}

/// Reads several recordings of caches as one trace, and passes its requests to the sink of `entries`.
pub(super) fn read<S: Sink + ?Sized>(
    inputs: Vec<Input<'_>>,
    entries: &mut Entries<'_, S>,
) -> Result<(), TraceError> {
    let mut summary = RecordingSummary::default();
    let mut notes = Vec::new();
    let mut streams = Vec::new();
    for input in inputs {
        summary.files += 1;
        match Stream::open(input)? {
            Ok(stream) => streams.push(stream),
            Err(note) => {
                summary.unfinished += 1;
                notes.push(note);
            }
        }
    }
    let mut requests = Requests::default();
    // The next operation of each stream, the earliest first; at the same time in their order.
    let mut next = BinaryHeap::with_capacity(streams.len());
    for (number, stream) in streams.iter_mut().enumerate() {
        summary.hashed_keys |= stream.has_hashed_keys();
        next.extend(stream.next_time_ns()?.map(|time_ns| Reverse((time_ns, number))));
    }
    while let Some(mut first) = next.peek_mut() {
        let stream = &mut streams[first.0.1];
        let (operation, key) = stream.take();
        summary.count(operation.kind);
        requests.operation(operation, key, entries)?;
        match stream.next_time_ns()? {
            Some(time_ns) => first.0.0 = time_ns,
            None => {
                std::collections::binary_heap::PeekMut::pop(first);
            }
        }
    }
    requests.finish(entries)?;
    for stream in streams {
        entries.report.bytes_read += stream.bytes_read();
        match stream.end() {
            Some(End::Closed) => {}
            Some(End::Full) => {
                summary.full += 1;
                notes.push(format!(
                    "{}: the recording ended when it reached its record_max",
                    stream.path().display()
                ));
            }
            None => summary.unfinished += 1,
        }
        notes.extend(stream.into_note());
    }
    if notes.len() > NOTES {
        let more = notes.len() - NOTES;
        notes.truncate(NOTES);
        notes.push(format!("and {more} more"));
    }
    entries.report.notes = notes;
    entries.report.recording = Some(summary);
    Ok(())
}
