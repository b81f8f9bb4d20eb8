//! Two processes, each with an upper level over one shared lower level, under the test's clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haypile::{Clock, ManualClock, SetOptions, Store};
use proptest::prelude::*;

use crate::hooked::{Hooked, When};
use crate::{get, memory, options, set, tier};

const NS: Duration = Duration::from_nanos(1);

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

#[test]
fn what_another_process_writes_is_seen_when_the_bound_ends_and_not_before() {
    let clock = Arc::new(ManualClock::new());
    let lower = memory(64 << 10, &clock);
    let one = tier(&memory(64 << 10, &clock), &lower, options(ns(10)), &clock);
    let other = tier(&memory(64 << 10, &clock), &lower, options(ns(10)), &clock);
    set(&other, "key", "old");
    clock.advance(ns(3));
    assert_eq!(get(&one, "key").unwrap(), "old");
    // The writing process sees it at once.
    set(&other, "key", "new");
    assert_eq!(get(&other, "key").unwrap(), "new");
    clock.advance(ns(9));
    assert_eq!(get(&one, "key").unwrap(), "old");
    clock.advance(NS);
    assert_eq!(get(&one, "key").unwrap(), "new");
    // The same for deletions, where the copy comes from a write.
    set(&one, "key", "mine");
    assert!(other.delete(b"key").unwrap());
    clock.advance(ns(9));
    assert_eq!(get(&one, "key").unwrap(), "mine");
    assert!(one.contains(b"key").unwrap());
    clock.advance(NS);
    assert_eq!((get(&one, "key"), one.contains(b"key").unwrap()), (None, false));
}

#[test]
fn the_bound_is_counted_from_before_the_lower_level_is_asked() {
    let clock = Arc::new(ManualClock::new());
    let inner = memory(64 << 10, &clock);
    set(&*inner, "key", "old");
    let hooked = Hooked::new(&inner);
    let lower = Arc::clone(&hooked) as Arc<dyn Store>;
    let upper = memory(64 << 10, &clock);
    let store = tier(&upper, &lower, options(ns(10)), &clock);
    let later = Arc::clone(&clock);
    hooked.once(When::After("get"), move || later.advance(ns(4)));
    assert_eq!(get(&store, "key").unwrap(), "old");
    set(&*inner, "key", "new");
    clock.advance(ns(5));
    assert_eq!(get(&store, "key").unwrap(), "old");
    clock.advance(NS);
    assert_eq!(get(&store, "key").unwrap(), "new");
    // A read or a write that takes as long as the bound leaves nothing in the upper level.
    clock.advance(ns(10));
    let later = Arc::clone(&clock);
    hooked.once(When::After("get"), move || later.advance(ns(10)));
    assert_eq!(get(&store, "key").unwrap(), "new");
    assert!(upper.get(b"key").unwrap().is_none());
    let later = Arc::clone(&clock);
    hooked.once(When::After("set"), move || later.advance(ns(10)));
    set(&store, "key", "newer");
    assert!(upper.get(b"key").unwrap().is_none());
}

#[test]
fn the_bounds_of_levels_add_up() {
    let clock = Arc::new(ManualClock::new());
    let last = memory(64 << 10, &clock);
    let middle = tier(&memory(64 << 10, &clock), &last, options(ns(10)), &clock);
    let middle = Arc::new(middle) as Arc<dyn Store>;
    let store = tier(&memory(64 << 10, &clock), &middle, options(ns(5)), &clock);
    set(&*last, "key", "old");
    assert_eq!(get(&*middle, "key").unwrap(), "old");
    set(&*last, "key", "new");
    clock.advance(ns(9));
    assert_eq!(get(&store, "key").unwrap(), "old");
    clock.advance(ns(4));
    assert_eq!(get(&store, "key").unwrap(), "old");
    clock.advance(NS);
    assert_eq!(get(&store, "key").unwrap(), "new");
}

#[derive(Clone, Debug)]
enum Op {
    Set { process: usize, key: u8, ttl_ns: Option<u64> },
    Delete { process: usize, key: u8 },
    Get { process: usize, key: u8 },
    Advance(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let (process, key) = (0..2_usize, 0..3_u8);
    prop_oneof![
        3 => (process.clone(), key.clone(), prop::option::of(1..30_u64))
            .prop_map(|(process, key, ttl_ns)| Op::Set { process, key, ttl_ns }),
        1 => (process.clone(), key.clone())
            .prop_map(|(process, key)| Op::Delete { process, key }),
        6 => (process, key).prop_map(|(process, key)| Op::Get { process, key }),
        4 => (1..8_u64).prop_map(Op::Advance),
    ]
}

/// Writes and deletions, in their order.
struct Event {
    at_ns: u64,
    process: usize,
    /// The value and its expiry.
    value: Option<(String, Option<u64>)>,
}

impl Event {
    fn value_at(&self, now_ns: u64) -> Option<&str> {
        let (value, expires_ns) = self.value.as_ref()?;
        expires_ns.is_none_or(|expires_ns| expires_ns > now_ns).then_some(value)
    }
}

proptest! {
    #[test]
    fn nobody_sees_what_was_overwritten_longer_ago_than_the_bound_or_by_himself(
        ops in prop::collection::vec(op(), 0..100),
        stale_ns in 1..20_u64,
        front_bytes in prop_oneof![Just(1_u64 << 10), Just(64 << 10)],
    ) {
        let clock = Arc::new(ManualClock::new());
        let lower = memory(64 << 10, &clock);
        let process = || tier(&memory(front_bytes, &clock), &lower, options(ns(stale_ns)), &clock);
        let processes = [process(), process()];
        let mut events: HashMap<u8, Vec<Event>> = HashMap::new();
        for (number, op) in ops.into_iter().enumerate() {
            let now_ns = clock.now_ns();
            match op {
                Op::Set { process, key, ttl_ns } => {
                    let value = number.to_string();
                    let options = SetOptions::set().with_ttl(ttl_ns.map(ns));
                    let _ = processes[process].set(&[key], value.as_bytes(), &options).unwrap();
                    let value = Some((value, ttl_ns.map(|ttl_ns| now_ns + ttl_ns)));
                    events.entry(key).or_default().push(Event { at_ns: now_ns, process, value });
                }
                Op::Delete { process, key } => {
                    processes[process].delete(&[key]).unwrap();
                    let event = Event { at_ns: now_ns, process, value: None };
                    events.entry(key).or_default().push(event);
                }
                Op::Get { process, key } => {
                    let read = processes[process].get(&[key]).unwrap();
                    let read = read.map(|value| String::from_utf8(value).unwrap());
                    let events = events.entry(key).or_default();
                    let Some(read) = read else {
                        let now = events.last().and_then(|event| event.value_at(now_ns));
                        prop_assert_eq!(now, None);
                        continue;
                    };
// The value of that time, and all since; but nothing before an own write.
                    let oldest = events
                        .iter()
                        .rposition(|event| {
                            event.process == process || event.at_ns + stale_ns <= now_ns
                        })
                        .unwrap_or(0);
                    let allowed = events[oldest..].iter();
                    let allowed: Vec<_> =
                        allowed.filter_map(|event| event.value_at(now_ns)).collect();
                    prop_assert!(allowed.contains(&read.as_str()), "{read} not in {allowed:?}");
                }
                Op::Advance(by) => clock.advance(ns(by)),
            }
        }
    }
}
