//! Buffering of operations, and writing them to the file.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use haypile_policy::recording::{End, Payload, RecordedEntry};
use parking_lot::{Mutex, MutexGuard};

use super::file::{RecordFile, Stop};
use super::{RecordOptions, RecordingState};
use crate::clock::Clock;

/// The time that operations may stay in a buffer while others are recorded.
const FLUSH_NS: u64 = 2_000_000_000;

/// Blocks of other buffers that may be written while operations stay in a buffer: a reader has to
/// hold that many to restore the order of operations.
const MAX_BEHIND: u32 = 64;

/// Operations of a buffer between two checks whether the process has forked, each of which costs a
/// system call.
const OPERATIONS_PER_CHECK: u32 = 64;

/// Buffers per processor: threads that share one contend.
const STRIPES_PER_PROCESSOR: usize = 4;
const MAX_STRIPES: usize = 128;

const ACTIVE: u8 = 0;
const CLOSED: u8 = 1;
const FULL: u8 = 2;
const FAILED: u8 = 3;

/// The next thread number, in order of first recorded operations.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The operations of one thread, or of a few, that are not in the file yet. It has its own cache
/// lines.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe(Mutex<Buffer>);

#[derive(Debug)]
struct Buffer {
    payload: Payload,
    /// The number of blocks of other buffers that were written since the first operation.
    behind: u32,
    until_check: u32,
}

#[derive(Debug)]
struct RecorderOutput {
    file: RecordFile,
    /// A buffer for the next block while the current one is written.
    spare: Vec<u8>,
    error: Option<String>,
}

/// A recorder of a store's operations. Locks are taken in this order: `output`, then a stripe.
#[derive(Debug)]
pub(super) struct Recorder {
    stripes: Box<[Stripe]>,
    output: Mutex<RecorderOutput>,
    state: AtomicU8,
    /// The next time at which buffers that are not full are flushed.
    due_ns: AtomicU64,
    options: RecordOptions,
    clock: Arc<dyn Clock>,
}

impl Recorder {
    pub(super) fn create(options: RecordOptions, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let file = RecordFile::create(&options, &*clock)?;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let stripes = (processors * STRIPES_PER_PROCESSOR).next_power_of_two().min(MAX_STRIPES);
        let buffer = || Buffer {
            payload: Payload::new(options.hash_keys),
            behind: 0,
            until_check: OPERATIONS_PER_CHECK,
        };
        Ok(Self {
            stripes: (0..stripes).map(|_| Stripe(Mutex::new(buffer()))).collect(),
            due_ns: AtomicU64::new(file.origin_ns().saturating_add(FLUSH_NS)),
            output: Mutex::new(RecorderOutput { file, spare: Vec::new(), error: None }),
            state: AtomicU8::new(ACTIVE),
            options,
            clock,
        })
    }

    /// Records an operation that a store has just done.
    #[inline]
    pub(super) fn record(&self, entry: &RecordedEntry<'_>) {
        let number = thread_number() & (self.stripes.len() - 1);
        while self.state.load(Ordering::Relaxed) == ACTIVE {
            let mut buffer = self.stripes[number].0.lock();
            if buffer.payload.is_full() {
                drop(buffer);
                self.flush_full(number);
                continue;
            }
            // Read under the lock, so that the times of a buffer ascend.
            let now_ns = self.clock.now_ns();
            buffer.payload.push(now_ns, entry);
            buffer.until_check -= 1;
            if buffer.until_check == 0 || now_ns >= self.due_ns.load(Ordering::Relaxed) {
                buffer.until_check = OPERATIONS_PER_CHECK;
                drop(buffer);
                self.check(now_ns);
            }
            return;
        }
    }

    /// Checks now and then whether the process has forked, and whether buffers are due.
    #[cold]
    fn check(&self, now_ns: u64) {
        // The thread that holds the output does the same check.
        let Some(mut output) = self.output.try_lock() else { return };
        if self.is_recording(&mut output) && now_ns >= self.due_ns.load(Ordering::Relaxed) {
            self.flush_all(&mut output);
            if let Err(error) = output.file.check_name() {
                self.fail(&mut output, &error);
            }
        }
    }

    /// Writes all operations that were recorded before the call to the file of the recording.
    pub(super) fn flush(&self) {
        let mut output = self.output.lock();
        if self.is_recording(&mut output) {
            self.flush_all(&mut output);
        }
    }

    /// Ends the recording: writes all recorded operations and the end block to its file. Later
    /// operations are not recorded.
    pub(super) fn close(&self) {
        let mut output = self.output.lock();
        if !output.file.is_ours() {
            // A forked process that has not recorded anything of its own.
            self.state.store(CLOSED, Ordering::Relaxed);
            return;
        }
        if self.state.load(Ordering::Relaxed) != ACTIVE {
            return;
        }
        self.flush_all(&mut output);
        if self.state.load(Ordering::Relaxed) == ACTIVE {
            self.state.store(CLOSED, Ordering::Relaxed);
            self.end(&mut output, End::Closed);
        }
    }

    pub(super) fn state(&self) -> RecordingState {
        match self.state.load(Ordering::Relaxed) {
            ACTIVE => RecordingState::Active,
            CLOSED => RecordingState::Closed,
            FULL => RecordingState::Full,
            _ => {
                let error = self.output.lock().error.clone().unwrap_or_default();
                RecordingState::Failed { error }
            }
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.output.lock().file.path().to_path_buf()
    }

    pub(super) fn written_bytes(&self) -> u64 {
        self.output.lock().file.written_bytes()
    }

    #[cold]
    fn flush_full(&self, number: usize) {
        let mut output = self.output.lock();
        if self.is_recording(&mut output) && self.stripes[number].0.lock().payload.is_full() {
            self.flush_stripe(&mut output, number);
        }
    }

    /// Whether operations are recorded. Creates a new file in a forked process.
    fn is_recording(&self, output: &mut MutexGuard<'_, RecorderOutput>) -> bool {
        if self.state.load(Ordering::Relaxed) != ACTIVE {
            return false;
        }
        if output.file.is_ours() {
            return true;
        }
        // The buffers' operations are the parent's, which writes them; the child's first few
        // operations among them are lost.
        for stripe in &self.stripes {
            stripe.0.lock().payload.discard();
        }
        match RecordFile::create(&self.options, &*self.clock) {
            Ok(file) => output.file = file,
            Err(error) => self.fail(output, &error),
        }
        false
    }

    fn flush_all(&self, output: &mut MutexGuard<'_, RecorderOutput>) {
        self.due_ns.store(self.clock.now_ns().saturating_add(FLUSH_NS), Ordering::Relaxed);
        for number in 0..self.stripes.len() {
            self.flush_stripe(output, number);
        }
    }

    /// Writes the block of a buffer, and then those of buffers that have fallen behind.
    fn flush_stripe(&self, output: &mut MutexGuard<'_, RecorderOutput>, number: usize) {
        let mut next = Some(number);
        while let Some(number) = next.take() {
            let origin_ns = output.file.origin_ns();
            // Read before any buffer: operations that are recorded later have later times.
            let mut floor_ns = self.clock.now_ns();
            let mut header = {
                let mut buffer = self.stripes[number].0.lock();
                if buffer.payload.records() == 0 || self.state.load(Ordering::Relaxed) != ACTIVE {
                    return;
                }
                buffer.behind = 0;
                let stripe = u32::try_from(number).expect("the number of stripes is small");
                buffer.payload.take(&mut output.spare, stripe, origin_ns)
            };
            for (other, stripe) in self.stripes.iter().enumerate() {
                let mut buffer = stripe.0.lock();
                if buffer.payload.records() > 0 {
                    floor_ns = floor_ns.min(buffer.payload.first_ns());
                    buffer.behind += 1;
                    if buffer.behind >= MAX_BEHIND && other != number {
                        next = Some(other);
                    }
                }
            }
            header.floor_ns = floor_ns.saturating_sub(origin_ns);
            let RecorderOutput { file, spare, .. } = &mut **output;
            match file.block(header, spare) {
                Ok(()) => {}
                Err(Stop::Full) => {
                    self.state.store(FULL, Ordering::Relaxed);
                    self.end(output, End::Full);
                }
                Err(Stop::Failed(error)) => self.fail(output, &error),
            }
        }
    }

    fn end(&self, output: &mut MutexGuard<'_, RecorderOutput>, end: End) {
        let floor_ns = self.clock.now_ns().saturating_sub(output.file.origin_ns());
        if let Err(error) = output.file.end(end, floor_ns) {
            self.fail(output, &error);
        }
        self.release();
    }

    fn fail(&self, output: &mut MutexGuard<'_, RecorderOutput>, error: &io::Error) {
        self.state.store(FAILED, Ordering::Relaxed);
        output.error = Some(format!("{}: {error}", output.file.path().display()));
        self.release();
    }

    /// Frees the buffers.
    fn release(&self) {
        for stripe in &self.stripes {
            stripe.0.lock().payload = Payload::new(self.options.hash_keys);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

#[inline]
fn thread_number() -> usize {
    THREAD.with(|number| {
        if number.get() == usize::MAX {
            number.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

#[cfg(test)]
mod tests;
