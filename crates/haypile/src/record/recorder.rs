//! Collects operations in buffers and brings them to the file.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use parking_lot::{Mutex, MutexGuard};

use super::file::{RecordFile, Stop};
use super::format::{End, Entry, Payload};
use super::{RecordOptions, RecordingState};
use crate::clock::Clock;

/// How long operations may lie in a buffer while others are recorded.
const FLUSH_NS: u64 = 2_000_000_000;

/// Blocks of others that may be written while operations lie in a buffer: what a reader has to
/// keep in order to bring operations into their order.
const MAX_BEHIND: u32 = 64;

/// Operations of a buffer between two looks at whether this is still the same process, which costs
/// a system call.
const OPERATIONS_PER_CHECK: u32 = 64;

/// Buffers per processor: threads that share one wait for each other.
const STRIPES_PER_PROCESSOR: usize = 4;
const MAX_STRIPES: usize = 128;

const ACTIVE: u8 = 0;
const CLOSED: u8 = 1;
const FULL: u8 = 2;
const FAILED: u8 = 3;

/// Numbers threads, in order of their first recorded operation.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The operations of one thread, or of a few, that are not in the file yet. Alone on its cache
/// lines.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe(Mutex<Buffer>);

#[derive(Debug)]
struct Buffer {
    payload: Payload,
    /// Blocks of others that were written since the first operation.
    behind: u32,
    until_check: u32,
}

#[derive(Debug)]
struct Output {
    file: RecordFile,
    /// Room for a block while its stripe goes on.
    spare: Vec<u8>,
    error: Option<String>,
}

/// Records operations. Locks are taken in this order: `output`, then a stripe.
#[derive(Debug)]
pub(super) struct Recorder {
    stripes: Box<[Stripe]>,
    output: Mutex<Output>,
    state: AtomicU8,
    /// When buffers are flushed next that are not full.
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
            output: Mutex::new(Output { file, spare: Vec::new(), error: None }),
            state: AtomicU8::new(ACTIVE),
            options,
            clock,
        })
    }

    /// Records an operation that has just been done.
    #[inline]
    pub(super) fn record(&self, entry: &Entry<'_>) {
        let number = thread_number() & (self.stripes.len() - 1);
        while self.state.load(Ordering::Relaxed) == ACTIVE {
            let mut buffer = self.stripes[number].0.lock();
            if buffer.payload.is_full() {
                drop(buffer);
                self.flush_full(number);
                continue;
            }
            // Read under the lock: the times of a buffer ascend.
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

    /// Now and then: is this still the same process, and are buffers due?
    #[cold]
    fn check(&self, now_ns: u64) {
        // Whoever holds the output does the same.
        let Some(mut output) = self.output.try_lock() else { return };
        if self.is_recording(&mut output) && now_ns >= self.due_ns.load(Ordering::Relaxed) {
            self.flush_all(&mut output);
            if let Err(error) = output.file.check_name() {
                self.fail(&mut output, &error);
            }
        }
    }

    /// Writes what was recorded before the call.
    pub(super) fn flush(&self) {
        let mut output = self.output.lock();
        if self.is_recording(&mut output) {
            self.flush_all(&mut output);
        }
    }

    /// Writes everything and the end. Later operations are not recorded.
    pub(super) fn close(&self) {
        let mut output = self.output.lock();
        if !output.file.is_ours() {
            // A forked process that never got to record anything of its own.
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

    /// Whether operations are recorded. A forked process gets a file of its own here.
    fn is_recording(&self, output: &mut MutexGuard<'_, Output>) -> bool {
        if self.state.load(Ordering::Relaxed) != ACTIVE {
            return false;
        }
        if output.file.is_ours() {
            return true;
        }
        // What is in the buffers was recorded by the parent, which writes it, but for the last few
        // operations.
        for stripe in &self.stripes {
            stripe.0.lock().payload.discard();
        }
        match RecordFile::create(&self.options, &*self.clock) {
            Ok(file) => output.file = file,
            Err(error) => self.fail(output, &error),
        }
        false
    }

    fn flush_all(&self, output: &mut MutexGuard<'_, Output>) {
        self.due_ns.store(self.clock.now_ns().saturating_add(FLUSH_NS), Ordering::Relaxed);
        for number in 0..self.stripes.len() {
            self.flush_stripe(output, number);
        }
    }

    /// Writes the block of a stripe, and then those of stripes that have fallen behind by it.
    fn flush_stripe(&self, output: &mut MutexGuard<'_, Output>, number: usize) {
        let mut next = Some(number);
        while let Some(number) = next.take() {
            let origin_ns = output.file.origin_ns();
            // Before any buffer is looked at: what is recorded later is later than this.
            let mut floor_ns = self.clock.now_ns();
            let mut header = {
                let mut buffer = self.stripes[number].0.lock();
                if buffer.payload.records() == 0 || self.state.load(Ordering::Relaxed) != ACTIVE {
                    return;
                }
                buffer.behind = 0;
                let stripe = u32::try_from(number).expect("there are few");
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
            let Output { file, spare, .. } = &mut **output;
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

    fn end(&self, output: &mut MutexGuard<'_, Output>, end: End) {
        let floor_ns = self.clock.now_ns().saturating_sub(output.file.origin_ns());
        if let Err(error) = output.file.end(end, floor_ns) {
            self.fail(output, &error);
        }
        self.release();
    }

    fn fail(&self, output: &mut MutexGuard<'_, Output>, error: &io::Error) {
        self.state.store(FAILED, Ordering::Relaxed);
        output.error = Some(format!("{}: {error}", output.file.path().display()));
        self.release();
    }

    /// Gives the memory of the buffers back.
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
