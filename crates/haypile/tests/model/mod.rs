//! The protocol under many interleavings of its threads, by the Shuttle model checker, on
//! [memory](memory) whose loads may be late.
//!
//! Each access to a shared word is a point at which another thread may go on. Threads stand for
//! processes; one that is dead stays where it is, with what it holds.

mod doubt;
mod groups;
mod lanes;
mod leases;
mod memory;
mod orders;
mod owner_slots;
mod readers;
mod room;
mod steps;
mod writers;

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::AtomicU64;

use crate::file::area::now::Now;
use crate::file::area::{Area, Key, OpError, Owner};
use crate::file::format::header;
use crate::file::format::layout::{Geometry, LINE_BYTES, Numbers};
use crate::file::format::owner_slot::SLOT_STAMP;
use crate::file::format::segment::SMALL;
use crate::file::format::slot::{LockWord, Token};
use crate::file::index::bucket::Bucket;
use crate::file::log::append::{Appended, Appender, Draft};
use crate::file::log::lane::Lanes;
use crate::file::log::recycle::Recycled;
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::{Cause, Choice};
use crate::file::log::sweep::Sweeper;
use crate::file::operations::read::{Lookup, Search, Seen};
use crate::file::operations::write::{Expiry, Write, WriteOutcome, Writer};
use crate::file::platform::ground::{Checked, Ground, IN_ORDER, exchange_orders};
use crate::file::platform::halted::ProcessId;
use crate::write::{WriteMode, Written};
use memory::{Memory, View};

const FOREVER: u64 = u64::MAX;
/// As all stamps, with the upper bit.
const STAMP: u64 = 1 << 63 | 7;

/// Words of memory, and the kernel's knowledge of owners and pins.
struct Model {
    memory: Memory,
    /// The owner slots of the dead, and what they had seen and done.
    dead: Mutex<HashMap<u32, View>>,
    /// The number of pins of each segment.
    pins: Mutex<HashMap<u32, u32>>,
    /// Moves on with each pause, so that waiting ends.
    clock: AtomicU64,
    /// By this much: longer pauses make fewer of them.
    pause_us: std::sync::atomic::AtomicU64,
    /// Where the lanes are.
    lanes: std::ops::Range<u64>,
    /// Operations of others, which follow at once when the lock of a lane is released.
    others: Mutex<Option<Others>>,
    /// The stores that the process still makes before it ends; the others have no effect.
    stores_left: std::sync::atomic::AtomicU64,
}

type Others = Box<dyn FnMut() + Send>;

impl Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

fn word(at: u64) -> usize {
    assert!(at.is_multiple_of(8), "offset {at}");
    usize::try_from(at / 8).expect("an index")
}

/// A segment is pinned as long as this lives.
#[derive(Debug)]
struct Pinned<'a> {
    model: &'a Model,
    segment: u32,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let mut pins = self.model.pins.lock().expect("no panic");
        *pins.get_mut(&self.segment).expect("it was pinned") -= 1;
    }
}

impl Model {
    /// Whether a store has an effect; counts it.
    fn is_there(&self) -> bool {
        let left = |left: u64| left.checked_sub(1);
        self.stores_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok()
    }
}

impl Ground for Model {
    type Pin<'a> = Pinned<'a>;
    type Line<'a> = Checked<'a, Self>;

    fn line(&self, at: u64) -> Checked<'_, Self> {
        Checked { ground: self, at }
    }

    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.memory.load(word(at), order)
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        if !self.is_there() {
            return;
        }
        self.memory.store(word(at), value, order);
        if self.lanes.contains(&at)
            && at.is_multiple_of(LINE_BYTES)
            && LockWord(value).token() == Token::NOBODY
        {
            // Taken out for now: they release it as well.
            let others = self.others.lock().expect("no panic").take();
            if let Some(mut others) = others {
                others();
                *self.others.lock().expect("no panic") = Some(others);
            }
        }
    }

    fn exchange(&self, at: u64, old: u64, new: u64) -> Result<(), u64> {
        if !self.is_there() {
            return Ok(());
        }
        self.memory.exchange(word(at), old, new, exchange_orders()).map(|_| ())
    }

    fn fence(&self, order: Ordering) {
        self.memory.fence(order);
    }

    fn add(&self, at: u64, delta: u64) -> u64 {
        let delta = if self.is_there() { delta } else { 0 };
        self.memory.change(word(at), Ordering::Relaxed, |value| value.wrapping_add(delta))
    }

    fn raise(&self, at: u64, value: u64) {
        if !self.is_there() {
            return;
        }
        let _ = self.memory.change(word(at), IN_ORDER, |before| before.max(value));
    }

    fn copy_out_to(&self, at: u64, bytes: usize, into: &mut Vec<u8>) {
        for offset in (0..bytes).step_by(8) {
            let word = self.load(at + offset as u64, Ordering::Relaxed).to_le_bytes();
            into.extend_from_slice(&word[..(bytes - offset).min(8)]);
        }
    }

    fn copy_in(&self, at: u64, from: &[u8]) {
        for (number, bytes) in (0_u64..).zip(from.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.store(at + 8 * number, u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    fn prefetch(&self, _: u64) {}

    fn prefetch_bytes(&self, _: u64, _: u64) {}

    fn prefetch_to_write(&self, _: u64, _: u64) {}

    /// A process that hears of a death sees all that was done before.
    fn is_taken(&self, slot: u32) -> bool {
        let left = self.dead.lock().expect("no panic").get(&slot).cloned();
        if let Some(left) = &left {
            self.memory.see(left);
        }
        left.is_none()
    }

    fn is_halted(&self, _: ProcessId) -> bool {
        false
    }

    fn is_pinned(&self, segment: u32) -> bool {
        self.pins.lock().expect("no panic").get(&segment).is_some_and(|pins| *pins > 0)
    }

    fn pin(&self, segment: u32, _: u32) -> Option<Pinned<'_>> {
        *self.pins.lock().expect("no panic").entry(segment).or_default() += 1;
        Some(Pinned { model: self, segment })
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.clock.load(Ordering::SeqCst))
    }

    fn sleep_on(&self, _: u64, _: u64, _: Duration) {
        shuttle::thread::yield_now();
    }

    fn wake(&self, _: u64) {}

    fn pause(&self, _: u32) {
        self.clock.fetch_add(self.pause_us.load(Ordering::SeqCst), Ordering::SeqCst);
        shuttle::thread::yield_now();
    }
}

/// A file of twelve segments of 256 bytes, with one bucket.
fn numbers() -> Numbers {
    Numbers {
        owner_slots: 4,
        lanes: 2,
        claims: 1,
        removals: 1,
        groups: 8,
        buckets: 1,
        overflows: 2,
        ghosts: 1,
        segments: 12,
        segment_log2: 8,
    }
}

fn area() -> Arc<Area<Model>> {
    area_of(numbers())
}

fn area_of(numbers: Numbers) -> Arc<Area<Model>> {
    let geometry = Geometry::of(numbers, 1 << 20);
    let end = geometry.segment_start(numbers.segments);
    let ground = Model {
        memory: Memory::new(word(end)),
        dead: Mutex::new(HashMap::new()),
        pins: Mutex::new(HashMap::new()),
        clock: AtomicU64::new(0),
        pause_us: std::sync::atomic::AtomicU64::new(40),
        lanes: geometry.lanes..geometry.lane(numbers.lanes),
        others: Mutex::new(None),
        stores_left: std::sync::atomic::AtomicU64::new(u64::MAX),
    };
    let area = Area::new(ground, geometry, 1, STAMP);
    for segment in 0..numbers.segments {
        area.entry(segment).free();
    }
    for at in [header::EPOCH, header::SEQUENCE, header::NEXT_VERSION] {
        area.ground.store(at, 1, Ordering::Relaxed);
    }
    for at in [header::STAMP, header::SWEPT] {
        area.ground.store(at, STAMP, Ordering::Relaxed);
    }
    area.ground.store(header::OWNER_SLOTS_USED, numbers.owner_slots.into(), Ordering::Relaxed);
    for slot in 0..numbers.owner_slots {
        area.ground.store(geometry.owner_slot(slot), 1, Ordering::Relaxed);
        area.ground.store(geometry.owner_slot(slot) + SLOT_STAMP, STAMP, Ordering::Relaxed);
    }
    Arc::new(area)
}

/// The state after a restart of the machine: nothing is swept.
fn restart(area: &mut Arc<Area<Model>>) {
    let stamp = area.stamp + 1;
    let area = Arc::get_mut(area).expect("nobody else has it");
    area.stamp = stamp;
    area.ground.store(header::STAMP, stamp, Ordering::Relaxed);
    for slot in 0..area.geometry.numbers.owner_slots {
        area.ground.store(area.geometry.owner_slot(slot) + SLOT_STAMP, stamp, Ordering::Relaxed);
    }
}

/// Under random schedules, and under those that change at few points only.
fn check(test: impl Fn() + Send + Sync + Copy + 'static, iterations: usize) {
    shuttle::check_random(test, iterations);
    shuttle::check_pct(test, iterations, 3);
}

/// A thread that sees what the one saw that started it.
fn spawn<T: Send + 'static>(
    area: &Arc<Area<Model>>,
    run: impl FnOnce(&Area<Model>) -> T + Send + 'static,
) -> Joining<T> {
    let (area, view) = (Arc::clone(area), area.ground.memory.view());
    Joining(shuttle::thread::spawn(move || {
        area.ground.memory.see(&view);
        let result = run(&area);
        (result, area.ground.memory.view())
    }))
}

/// A thread that was started and will be waited for.
struct Joining<T>(shuttle::thread::JoinHandle<(T, View)>);

impl<T: 'static> Joining<T> {
    /// Waits for its end, and sees what it saw.
    fn join(self, area: &Area<Model>) -> T {
        let (result, view) = self.0.join().expect("no panic");
        area.ground.memory.see(&view);
        result
    }
}

/// The owner of a slot ends here, with what it holds.
fn die(area: &Area<Model>, slot: u32) {
    let view = area.ground.memory.view();
    area.ground.dead.lock().expect("no panic").insert(slot, view);
}

fn appender(area: &Area<Model>, slot: u32) -> Appender<'_, Model> {
    Appender::new(area, owner(slot))
}

/// Does a part of the sweep, unless another thread does one.
fn sweep_on(area: &Area<Model>, owner: Owner) {
    if let Some(sweeper) = Sweeper::of(area, owner) {
        sweeper.sweep_on();
    }
}

fn clear(area: &Area<Model>, owner: Owner) {
    Recycler::lock(area, owner).expect("nobody is in the way").clear();
}

fn owner(slot: u32) -> Owner {
    Owner::new(slot, Token::new(slot, 1))
}

fn set(
    area: &Area<Model>,
    slot: u32,
    key: &[u8],
    value: &[u8],
    mode: WriteMode,
) -> Result<Written, OpError> {
    write(area, owner(slot), key, value, mode, FOREVER)
}

fn write(
    area: &Area<Model>,
    owner: Owner,
    key: &[u8],
    value: &[u8],
    mode: WriteMode,
    expires_ms: u64,
) -> Result<Written, OpError> {
    let written = write_alone(area, owner, key, value, mode, expires_ms);
    if area.upkeep.is_due() {
        Appender::new(area, owner).keep_up(1);
    }
    written
}

/// Leaves to others what a write has to do afterwards.
fn write_alone(
    area: &Area<Model>,
    owner: Owner,
    key: &[u8],
    value: &[u8],
    mode: WriteMode,
    expires_ms: u64,
) -> Result<Written, OpError> {
    loop {
        let version = area.ground.add(header::NEXT_VERSION, 1);
        let key = area.key(key, false);
        let expiry = Expiry::At(expires_ms);
        let now = &Now::at(1);
        let (has_groups, groups, namespace) = (false, None, None);
        let write = Write { key, value, has_groups, groups, mode, namespace, expiry, version, now };
        if let WriteOutcome::Written(written) = Writer::new(area, owner).write(&write)? {
            return Ok(written);
        }
    }
}

fn get(area: &Area<Model>, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    match Lookup::new(area, &area.key(key, false)).search(Some(&mut value)).expect("memory") {
        Search::Found(_) => Some(value),
        Search::Nothing | Search::Contended | Search::Damaged => None,
    }
}

fn delete(area: &Area<Model>, slot: u32, key: &[u8]) -> bool {
    Writer::new(area, owner(slot))
        .delete(&area.key(key, false), None, &Now::at(1))
        .expect("nobody is in the way")
}

/// The entry that readers find.
fn find(area: &Area<Model>, key: &Key<'_>) -> Seen {
    match Lookup::new(area, key).search(None) {
        Ok(Search::Found(seen)) => seen,
        other => panic!("{other:?}"),
    }
}

/// The segment that is open for a queue, in the first lane that has one.
fn open_for(area: &Area<Model>, queue: u32) -> Option<u32> {
    Lanes::of(area).open_segments().find(|segment| area.entry(*segment).state().queue == queue)
}

/// The segment that the record of a key is in.
fn segment_of(area: &Area<Model>, key: &[u8]) -> u32 {
    find(area, &area.key(key, false)).segment
}

/// Makes a free segment one that can be appended to.
fn begin(area: &Area<Model>, slot: u32, segment: u32) {
    let recycler = Recycler::lock(area, owner(slot)).expect("nobody is in the way for long");
    assert_eq!(recycler.begin(SMALL, segment, 1), Ok(true));
}

/// Gives new entries another segment than the one they went to until now, which is sealed.
fn seal(area: &Area<Model>, slot: u32) {
    let free = (0..area.geometry.numbers.segments).find(|segment| area.is_free(*segment));
    let free = free.expect("few are used");
    begin(area, slot, free);
    appender(area, slot).name(SMALL, free).expect("nobody is in the way");
}

/// Empties a segment: what is live is kept if it is emptied because it is sparse, and else dropped.
fn empty(area: &Area<Model>, slot: u32, segment: u32, cause: Cause) -> Recycled {
    let mut reserve = Reserve::default();
    let recycler = Recycler::lock(area, owner(slot)).expect("nobody is in the way for long");
    let recycled = recycler.recycle(Choice::of(segment, cause), 0, &mut reserve, 1);
    recycler.publish(&reserve);
    recycled.expect("nobody is in the way")
}

fn draft<'a>(area: &Area<Model>, key: &'a [u8], value: &'a [u8]) -> Draft<'a> {
    let version = area.ground.add(header::NEXT_VERSION, 1);
    Draft::new(area.key(key, false), value, version, FOREVER, false)
}

fn bucket<'a>(area: &'a Area<Model>, slot: u32, key: &[u8]) -> Bucket<'a, Model> {
    Bucket::lock(area, owner(slot), area.key(key, false).hash).expect("free")
}

/// Lets one more slot of a key point to a record.
fn publish(area: &Area<Model>, key: &[u8], appended: &Appended<'_, Model>) {
    let mut bucket = bucket(area, 0, key);
    let hash = area.key(key, false).hash;
    appended.drop_aliases(&mut bucket, hash).expect("memory");
    let at = bucket.vacancy().expect("a slot");
    area.add_live(0, appended.segment, appended.head.bytes());
    let slot = appended.publishable(hash, 0);
    bucket.put(at, slot);
}

/// Keys of one byte that a bucket has: one more than its slots.
fn eight_keys_of(area: &Area<Model>, bucket: u32) -> Vec<u8> {
    let is_of = |key: &u8| area.geometry.bucket_of(area.key(&[*key], false).hash) == bucket;
    (0..=255).filter(is_of).take(8).collect()
}

/// A value of three words that say which key it is of, and which of a writer's values.
fn value_of(key: u8, writer: u8, round: u16) -> Vec<u8> {
    let word = u64::from(key) << 32 | u64::from(writer) << 24 | u64::from(round);
    [word, !word, word.rotate_left(7)].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The writer and the round of a value of a key, which has to be whole.
fn parts_of(key: u8, value: &[u8]) -> (u8, u16) {
    let word = u64::from_le_bytes(value[..8].try_into().expect("8 bytes"));
    let writer = u8::try_from(word >> 24 & 0xFF).expect("8 bits");
    let round = u16::try_from(word & 0xFFFF).expect("16 bits");
    assert_eq!(value, value_of(key, writer, round), "torn, or of another key");
    (writer, round)
}
