//! Memory whose threads see each other's stores late, unless an order says otherwise.
//!
//! Each word has all values that were stored to it, in one order. A thread has a view: for each word
//! the oldest value that it may still read. A store that releases hands the view of its thread on,
//! and a load that acquires takes it over; fences do so for the accesses around them. Threads do
//! nothing ahead of their own program: that is all that the model leaves out of what C++ allows, and
//! sequentially consistent accesses count as no more than releasing and acquiring ones.
//!
//! After J. Kang, C.-K. Hur, O. Lahav, V. Vafeiadis and D. Dreyer, A Promising Semantics for
//! Relaxed-Memory Concurrency (POPL 2017), without promises.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use shuttle::current;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::AtomicBool;

/// The place of a value in the order of its word. Others fit between two.
type Time = u64;

const STEP: Time = 1 << 40;
/// Values of a word that are kept: older ones are read by nobody.
const MOST_VALUES: usize = 12;

/// For each word, the oldest value that may still be read.
#[derive(Clone, Debug, Default)]
pub(super) struct View(Arc<Vec<Time>>);

impl View {
    fn of(&self, word: usize) -> Time {
        self.0.get(word).copied().unwrap_or(0)
    }

    fn raise(&mut self, word: usize, time: Time) {
        if self.of(word) >= time {
            return;
        }
        let times = Arc::make_mut(&mut self.0);
        if times.len() <= word {
            times.resize(word + 1, 0);
        }
        times[word] = time;
    }

    fn join(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.0, &other.0) || other.0.is_empty() {
            return;
        }
        if self.0.is_empty() {
            *self = other.clone();
            return;
        }
        let is_newer = |(word, time): (usize, &Time)| *time > self.of(word);
        if !other.0.iter().enumerate().any(is_newer) {
            return;
        }
        let times = Arc::make_mut(&mut self.0);
        if times.len() < other.0.len() {
            times.resize(other.0.len(), 0);
        }
        for (time, other) in times.iter_mut().zip(other.0.iter()) {
            *time = (*time).max(*other);
        }
    }
}

/// One of the values of a word.
#[derive(Clone, Debug)]
struct Stored {
    time: Time,
    value: u64,
    /// The view that an acquiring load of this value adds to its thread's.
    view: View,
    /// An exchange has read it, and stored the next: none comes between them.
    is_exchanged: bool,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    now: View,
    /// The view that the relaxed loads so far would have shown, had they acquired it.
    acquirable: View,
    /// The view that relaxed stores release, from the last releasing fence on.
    released: View,
}

#[derive(Debug)]
struct MemoryState {
    words: Vec<Vec<Stored>>,
    threads: HashMap<usize, Thread>,
    /// The view that fences of sequential consistency hand from one to the next.
    consistent: View,
    accesses: u64,
}

/// Words of memory.
#[derive(Debug)]
pub(super) struct Memory {
    state: Mutex<MemoryState>,
    /// Each access is a point at which another thread may go on.
    turn: AtomicBool,
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

impl Memory {
    pub(super) fn new(words: usize) -> Self {
        let zero = Stored { time: 0, value: 0, view: View::default(), is_exchanged: false };
        let state = MemoryState {
            words: vec![vec![zero]; words],
            threads: HashMap::new(),
            consistent: View::default(),
            accesses: 0,
        };
        Self { state: Mutex::new(state), turn: AtomicBool::new(false) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut MemoryState, &mut Thread) -> T) -> T {
        self.turn.load(Ordering::SeqCst);
        self.at_once(|state, thread| {
            state.accesses += 1;
            act(state, thread)
        })
    }

    /// The number of accesses to words so far.
    pub(super) fn accesses(&self) -> u64 {
        self.at_once(|state, _| state.accesses)
    }

    fn at_once<T>(&self, act: impl FnOnce(&mut MemoryState, &mut Thread) -> T) -> T {
        let number = usize::from(current::me());
        let mut state = self.state.lock().expect("no panic");
        let mut thread = state.threads.remove(&number).unwrap_or_default();
        let result = act(&mut state, &mut thread);
        state.threads.insert(number, thread);
        result
    }

    /// The view of this thread: for one that it starts, or that waits for its end.
    pub(super) fn view(&self) -> View {
        self.at_once(|_, thread| thread.now.clone())
    }

    /// This thread sees what another saw.
    pub(super) fn see(&self, view: &View) {
        self.at_once(|_, thread| {
            thread.now.join(view);
            thread.acquirable.join(view);
        });
    }

    pub(super) fn load(&self, word: usize, order: Ordering) -> u64 {
        self.with(|state, thread| {
            let oldest = thread.now.of(word);
            let values = &state.words[word];
            let from = values.partition_point(|stored| stored.time < oldest);
            let from = from.min(values.len() - 1);
            let newest = values.len() - 1;
            let is_late = newest > from && thread_rng().gen_bool(0.5);
            let at = if is_late { thread_rng().gen_range(from..newest) } else { newest };
            thread.read(word, &values[at], order);
            values[at].value
        })
    }

    pub(super) fn store(&self, word: usize, value: u64, order: Ordering) {
        self.with(|state, thread| {
            let values = &mut state.words[word];
            let oldest = thread.now.of(word);
            let last = values.len() - 1;
            // It may come before the newest, where nobody who saw that is this thread.
            let comes_before = last > 0
                && values[last - 1].time >= oldest
                && values[last].time > oldest
                && !values[last - 1].is_exchanged
                && values[last].time - values[last - 1].time > 1
                && thread_rng().gen_bool(0.25);
            let (at, time) = if comes_before {
                let before = values[last - 1].time;
                (last, before + (values[last].time - before) / 2)
            } else {
                (last + 1, values[last].time + STEP)
            };
            let view = thread.write(word, time, None, order);
            values.insert(at, Stored { time, value, view, is_exchanged: false });
            forget_oldest(values);
        });
    }

    /// Replaces the newest value by what is made of it, if it is; else says what was read.
    fn update(
        &self,
        word: usize,
        made: Ordering,
        not_made: Ordering,
        change: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        self.with(|state, thread| {
            let values = &mut state.words[word];
            let newest = values.last_mut().expect("each word has a value");
            let old = newest.value;
            let Some(value) = change(old) else {
                thread.read(word, newest, not_made);
                return Err(old);
            };
            thread.read(word, newest, made);
            newest.is_exchanged = true;
            let (time, handed_on) = (newest.time + STEP, newest.view.clone());
            let view = thread.write(word, time, Some(&handed_on), made);
            values.push(Stored { time, value, view, is_exchanged: false });
            forget_oldest(values);
            Ok(old)
        })
    }

    pub(super) fn exchange(
        &self,
        word: usize,
        old: u64,
        new: u64,
        (made, not_made): (Ordering, Ordering),
    ) -> Result<u64, u64> {
        self.update(word, made, not_made, |value| (value == old).then_some(new))
    }

    pub(super) fn change(
        &self,
        word: usize,
        order: Ordering,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let changed = self.update(word, order, Ordering::Relaxed, |value| Some(change(value)));
        changed.unwrap_or_else(|value| value)
    }

    pub(super) fn fence(&self, order: Ordering) {
        self.with(|state, thread| {
            if acquires(order) {
                let acquirable = thread.acquirable.clone();
                thread.now.join(&acquirable);
            }
            if order == Ordering::SeqCst {
                thread.now.join(&state.consistent);
                state.consistent = thread.now.clone();
                thread.acquirable.join(&state.consistent);
            }
            if releases(order) {
                thread.released = thread.now.clone();
            }
        });
    }
}

fn forget_oldest(values: &mut Vec<Stored>) {
    if values.len() > MOST_VALUES {
        values.remove(0);
    }
}

impl Thread {
    fn read(&mut self, word: usize, stored: &Stored, order: Ordering) {
        self.now.raise(word, stored.time);
        self.acquirable.raise(word, stored.time);
        self.acquirable.join(&stored.view);
        if acquires(order) {
            self.now.join(&stored.view);
        }
    }

    /// Notes a store; what it hands on, `handed_on` being that of the value an exchange read.
    fn write(
        &mut self,
        word: usize,
        time: Time,
        handed_on: Option<&View>,
        order: Ordering,
    ) -> View {
        self.now.raise(word, time);
        self.acquirable.raise(word, time);
        let mut view = if releases(order) { self.now.clone() } else { self.released.clone() };
        view.raise(word, time);
        if let Some(handed_on) = handed_on {
            view.join(handed_on);
        }
        view
    }
}
