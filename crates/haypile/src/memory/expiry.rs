//! The expiries of entries, which find those that expire at a given time without a scan.
//!
//! A hierarchical timer wheel: G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels:
//! Data Structures for the Efficient Implementation of a Timer Facility", SOSP 1987 (scheme 7).
//! Time is divided into ticks of 2^20 ns. A tick is written in digits of six bits, and an entry
//! waits at the level of the highest digit in which its tick differs from the current one, in the
//! bucket of that digit. So a bucket of a low level comes before all of a higher one, and a bitmap
//! per level finds the next bucket at once, however far the clock has jumped. When time reaches a
//! bucket, its entries are distributed over the levels below, each entry at most once per level.

use haypile_policy::Slot;
use haypile_policy::link::Links;

use super::record::NEVER_IN_GROUPS;

/// The binary logarithm of a tick in nanoseconds: a tick is 1.05 ms.
const TICK_BITS: u32 = 20;

/// Bits of a tick that select a bucket within a level.
const DIGIT_BITS: u32 = 6;

const BUCKETS: usize = 1 << DIGIT_BITS;

/// Ticks have 45 bits.
const LEVELS: usize = 8;

/// The list of entries whose tick or bucket time has reached; they are checked one by one.
const REACHED: usize = LEVELS * BUCKETS;

const LISTS: usize = REACHED + 1;

/// Not scheduled.
const NEVER: u64 = u64::MAX;

/// The longest delay after which an expired entry is returned, in nanoseconds.
#[cfg(test)]
const RESOLUTION_NS: u64 = 1 << TICK_BITS;

/// The slots of a memory store's entries that have a TTL, ordered by expiry.
///
/// An entry is returned after its expiry, at most 2^20 ns later. The wheel takes 16 bytes per slot,
/// and no memory before the first entry with a TTL.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    wheel: Option<Box<Wheel>>,
}

impl Expiries {
    /// Sets or replaces the expiry of the entry in `slot`; `u64::MAX` means never.
    pub(super) fn schedule(&mut self, slot: Slot, expires_ns: u64) {
        if expires_ns >= NEVER_IN_GROUPS {
            return self.cancel(slot);
        }
        self.wheel.get_or_insert_default().schedule(slot, expires_ns);
    }

    /// Removes the expiry of the entry in `slot`, if it has one.
    pub(super) fn cancel(&mut self, slot: Slot) {
        if let Some(wheel) = &mut self.wheel {
            wheel.cancel(slot);
        }
    }

    /// Whether no entry has had an expiry since the last [`clear`](Self::clear) of all expiries.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.wheel.is_none()
    }

    /// Returns the number of entry slots for whose expiries memory is allocated.
    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.wheel.as_ref().map_or(0, |wheel| wheel.expires_ns.len())
    }

    /// Returns the bytes of memory that the expiries of this number of entry slots take.
    pub(super) const fn bytes(slots: usize) -> usize {
        size_of::<Wheel>() + slots * (size_of::<u64>() + 2 * size_of::<Slot>())
    }

    /// Returns the expiry of the entry in `slot`, in nanoseconds of the store's clock; `u64::MAX`
    /// means never.
    #[cfg(test)]
    pub(super) fn expires_ns(&self, slot: Slot) -> u64 {
        self.wheel.as_ref().map_or(NEVER, |wheel| wheel.expires_ns(slot))
    }

    #[cfg(test)]
    pub(super) fn pop_expired(&mut self, now_ns: u64) -> Option<Slot> {
        let mut steps = usize::MAX;
        self.pop_expired_within(now_ns, &mut steps)
    }

    /// Removes and returns the slot of an expired entry, in no particular order; `None` if no entry
    /// expired more than 2^20 ns ago. Time never goes back: an earlier `now_ns` counts as the
    /// latest so far.
    ///
    /// Stops when `steps` has dropped to zero: each entry that is checked is a step, whether it is
    /// returned or moved to a later bucket. So a lock need not be held until all entries are moved
    /// that expire within the same minutes.
    pub(super) fn pop_expired_within(&mut self, now_ns: u64, steps: &mut usize) -> Option<Slot> {
        self.wheel.as_mut()?.pop_expired(now_ns >> TICK_BITS, steps)
    }

    /// Moves the expiry of the entry in slot `from` to slot `to`, which had none.
    pub(super) fn relocate(&mut self, from: Slot, to: Slot) {
        if let Some(wheel) = &mut self.wheel {
            wheel.relocate(from, to);
        }
    }

    /// Frees the memory for the expiries of entry slots from number `slots` on, none of which has
    /// an expiry.
    pub(super) fn drop_slots(&mut self, slots: usize) {
        if let Some(wheel) = &mut self.wheel {
            wheel.links.drop_slots(slots);
            wheel.expires_ns.truncate(slots);
            wheel.expires_ns.shrink_to_fit();
        }
    }

    /// Removes the expiries of all entries, and frees their memory.
    pub(super) fn clear(&mut self) {
        self.wheel = None;
    }

    /// Returns the bytes of memory that the expiries of all entries take.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.wheel.as_ref().map_or(0, |wheel| {
            size_of::<Wheel>()
                + wheel.links.memory_bytes()
                + wheel.expires_ns.capacity() * size_of::<u64>()
        })
    }
}

#[derive(Debug)]
struct Wheel {
    /// The tick up to which buckets were taken. All entries in buckets lie after it.
    reached: u64,
    /// The buckets that may have entries, for each level. Buckets that were emptied by cancelling
    /// stay marked until time reaches them.
    occupied: [u64; LEVELS],
    links: Links<LISTS>,
    /// The expiry time of each entry in nanoseconds, indexed by slot.
    expires_ns: Vec<u64>,
}

impl Default for Wheel {
    fn default() -> Self {
        Self { reached: 0, occupied: [0; LEVELS], links: Links::new(), expires_ns: Vec::new() }
    }
}

impl Wheel {
    fn schedule(&mut self, slot: Slot, expires_ns: u64) {
        self.cancel(slot);
        self.reserve(slot);
        self.expires_ns[slot as usize] = expires_ns;
        self.place(slot);
    }

    fn cancel(&mut self, slot: Slot) {
        if self.expires_ns(slot) != NEVER {
            self.links.unlink(slot);
            self.expires_ns[slot as usize] = NEVER;
        }
    }

    fn expires_ns(&self, slot: Slot) -> u64 {
        self.expires_ns.get(slot as usize).copied().unwrap_or(NEVER)
    }

    fn pop_expired(&mut self, now: u64, steps: &mut usize) -> Option<Slot> {
        let now = now.max(self.reached);
        loop {
            while *steps > 0 {
                let Some(slot) = self.links.pop_tail(REACHED) else { break };
                *steps -= 1;
                if self.tick(slot) <= now {
                    self.expires_ns[slot as usize] = NEVER;
                    return Some(slot);
                }
                self.place(slot);
            }
            if *steps == 0 || !self.advance(now) {
                return None;
            }
        }
    }

    /// Advances to the next bucket, or to `now` if that comes first. [`REACHED`] must be empty.
    fn advance(&mut self, now: u64) -> bool {
        let Some(level) = self.occupied.iter().position(|buckets| *buckets != 0) else {
            self.reached = now;
            return false;
        };
        let bucket = self.occupied[level].trailing_zeros();
        let shift = digit_shift(level);
        let above = self.reached >> (shift + DIGIT_BITS) << (shift + DIGIT_BITS);
        let start = above | u64::from(bucket) << shift;
        if start > now {
            self.reached = now;
            return false;
        }
        self.reached = start;
        self.occupied[level] &= !(1 << bucket);
        self.links.move_all(level * BUCKETS + bucket as usize, REACHED);
        true
    }

    /// Links a slot that is in no list.
    fn place(&mut self, slot: Slot) {
        let tick = self.tick(slot);
        if tick <= self.reached {
            return self.links.push_head(REACHED, slot);
        }
        let level = ((tick ^ self.reached).ilog2() / DIGIT_BITS) as usize;
        let digit = (tick >> digit_shift(level)) % BUCKETS as u64;
        let bucket = usize::try_from(digit).expect("a digit is less than BUCKETS");
        self.occupied[level] |= 1 << bucket;
        self.links.push_head(level * BUCKETS + bucket, slot);
    }

    /// Returns the first tick at whose start the entry has expired.
    fn tick(&self, slot: Slot) -> u64 {
        self.expires_ns[slot as usize].div_ceil(1 << TICK_BITS)
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        let expires_ns = self.expires_ns(from);
        debug_assert_eq!(self.expires_ns(to), NEVER, "the target has no expiry");
        if expires_ns == NEVER || from == to {
            return;
        }
        self.reserve(to);
        self.links.relocate(from, to);
        self.expires_ns[to as usize] = expires_ns;
        self.expires_ns[from as usize] = NEVER;
    }

    fn reserve(&mut self, slot: Slot) {
        let slot = slot as usize;
        if slot >= self.expires_ns.len() {
            // Grows by an eighth, because unused slots cost memory as well.
            let slots = slot + slot / 8 + 64;
            self.expires_ns.reserve_exact(slots - self.expires_ns.len());
            self.expires_ns.resize(slots, NEVER);
            self.links.reserve(slots);
        }
    }
}

fn digit_shift(level: usize) -> u32 {
    DIGIT_BITS * u32::try_from(level).expect("there are eight levels")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        /// Sets an expiry this long after the current time, or before it.
        Schedule(Slot, i64),
        Cancel(Slot),
        Relocate(Slot, Slot),
        Advance(u64),
        Pop(usize),
        Clear,
    }

    const SECOND_NS: u64 = 1_000_000_000;

    fn op() -> impl Strategy<Value = Op> {
        let slot = 0..40_u32;
        // Lengths of every magnitude, so that all levels are used and time jumps over levels.
        let length = || (0..63_u32).prop_flat_map(|bits| 0..=1_u64 << bits);
        let signed = prop_oneof![
            9 => length().prop_map(|length| i64::try_from(length).unwrap()),
            1 => Just(i64::MAX),
            1 => (0..SECOND_NS).prop_map(|length| -i64::try_from(length).unwrap()),
        ];
        prop_oneof![
            8 => (slot.clone(), signed).prop_map(|(slot, after)| Op::Schedule(slot, after)),
            2 => slot.clone().prop_map(Op::Cancel),
            2 => (slot.clone(), slot).prop_map(|(from, to)| Op::Relocate(from, to)),
            4 => (0..40 * SECOND_NS).prop_map(Op::Advance),
            2 => length().prop_map(Op::Advance),
            4 => (1..20_usize).prop_map(Op::Pop),
            1 => Just(Op::Clear),
        ]
    }

    fn run(ops: Vec<Op>) {
        let mut expiries = Expiries::default();
        let mut model: BTreeSet<(u64, Slot)> = BTreeSet::new();
        let of = |model: &BTreeSet<(u64, Slot)>, slot| {
            model.iter().find(|(_, other)| *other == slot).map(|(expires_ns, _)| *expires_ns)
        };
        let mut now_ns = 0_u64;
        for op in ops {
            match op {
                Op::Schedule(slot, after) => {
                    let expires_ns = now_ns.saturating_add_signed(after);
                    model.retain(|(_, other)| *other != slot);
                    if expires_ns != NEVER {
                        model.insert((expires_ns, slot));
                    }
                    expiries.schedule(slot, expires_ns);
                }
                Op::Cancel(slot) => {
                    model.retain(|(_, other)| *other != slot);
                    expiries.cancel(slot);
                }
                Op::Relocate(from, to) => {
                    if of(&model, to).is_none() {
                        if let Some(expires_ns) = of(&model, from) {
                            model.remove(&(expires_ns, from));
                            model.insert((expires_ns, to));
                        }
                        expiries.relocate(from, to);
                    }
                }
                Op::Advance(by) => now_ns = now_ns.saturating_add(by),
                Op::Pop(steps) => {
                    let mut left = steps;
                    while let Some(slot) = expiries.pop_expired_within(now_ns, &mut left) {
                        let expires_ns = of(&model, slot).expect("it is scheduled");
                        assert!(expires_ns <= now_ns, "{slot} expires later");
                        model.remove(&(expires_ns, slot));
                    }
                    let late = |(expires_ns, _): &(u64, Slot)| now_ns - expires_ns > RESOLUTION_NS;
                    let past = model.iter().take_while(|(expires_ns, _)| *expires_ns <= now_ns);
                    assert!(left == 0 || past.filter(|entry| late(entry)).count() == 0);
                }
                Op::Clear => {
                    model.clear();
                    expiries.clear();
                    assert_eq!(expiries.memory_bytes(), 0);
                }
            }
            for slot in 0..40 {
                assert_eq!(expiries.expires_ns(slot), of(&model, slot).unwrap_or(NEVER));
            }
        }
        while let Some(slot) = expiries.pop_expired(NEVER) {
            let expires_ns = of(&model, slot).expect("it is scheduled");
            model.remove(&(expires_ns, slot));
        }
        assert!(model.iter().all(|(expires_ns, _)| NEVER - expires_ns <= RESOLUTION_NS));
    }

    proptest! {
        #[test]
        fn gives_what_a_sorted_set_gives(ops in prop::collection::vec(op(), 0..120)) {
            run(ops);
        }
    }

    #[test]
    fn nothing_is_allocated_for_entries_without_a_ttl() {
        let mut expiries = Expiries::default();
        expiries.schedule(1_000_000, NEVER);
        expiries.cancel(7);
        assert_eq!(expiries.pop_expired(u64::MAX), None);
        assert_eq!(expiries.memory_bytes(), 0);
        expiries.schedule(0, 1);
        assert!(expiries.memory_bytes() > 0);
    }

    #[test]
    fn a_time_before_an_earlier_one_counts_as_that() {
        // Two threads may read the clock in one order and get here in the other.
        let mut expiries = Expiries::default();
        expiries.schedule(1, 100 * SECOND_NS);
        assert_eq!(expiries.pop_expired(10 * SECOND_NS), None);
        expiries.schedule(2, 5 * SECOND_NS);
        assert_eq!(expiries.pop_expired(SECOND_NS), Some(2));
        assert_eq!(expiries.pop_expired(SECOND_NS), None);
    }

    #[test]
    fn an_entry_is_looked_at_once_per_level_at_most() {
        let year_ns = 365 * 86_400 * SECOND_NS;
        let mut expiries = Expiries::default();
        let entries = 1_000;
        for slot in 0..entries {
            expiries.schedule(slot, year_ns - u64::from(slot) * 7_777_777);
        }
        let (mut steps, mut given) = (usize::MAX, 0);
        for now_ns in (0..=year_ns + RESOLUTION_NS).step_by(3_600 * 1_000_000_000) {
            while expiries.pop_expired_within(now_ns, &mut steps).is_some() {
                given += 1;
            }
        }
        while expiries.pop_expired_within(year_ns + RESOLUTION_NS, &mut steps).is_some() {
            given += 1;
        }
        assert_eq!(given, entries);
        assert!(usize::MAX - steps <= LEVELS * entries as usize);
    }

    #[test]
    fn a_jump_of_a_year_gives_each_entry_in_one_step() {
        let mut expiries = Expiries::default();
        for slot in 0..1_000 {
            expiries.schedule(slot, u64::from(slot) * SECOND_NS);
        }
        let mut steps = 1_000;
        let year_ns = 365 * 86_400 * SECOND_NS;
        let mut given = 0;
        while expiries.pop_expired_within(year_ns, &mut steps).is_some() {
            given += 1;
        }
        assert_eq!((given, steps), (1_000, 0));
    }
}
