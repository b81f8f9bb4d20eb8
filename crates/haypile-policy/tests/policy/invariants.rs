//! Invariants of every policy after any request.

use std::collections::{BTreeMap, BTreeSet};

use crate::driver::{Cache, Dump, Event, Op, Setup};

/// Queues of fingerprints of evicted entries.
pub(crate) const GHOSTS: [&str; 4] = ["ghost", "b1", "b2", "ghosts"];

fn keys<'a>(dump: &'a [Dump], name: &str) -> &'a [u32] {
    dump.iter().find(|(queue, _)| *queue == name).map_or(&[], |(_, keys)| keys)
}

fn weight(cache: &dyn Cache, keys: &[u32]) -> u64 {
    keys.iter().map(|key| cache.last_weight(*key)).sum()
}

/// Checks that every entry is in exactly one resident queue, that nothing else is, that no queue
/// holds a key twice, and that ghosts stay within the policy's limit.
pub(crate) fn check(cache: &dyn Cache, spec: &str) {
    if !cache.dumps_keys() && spec.starts_with("lirs") {
        return; // It shows nodes, which the driver cannot tell from slots.
    }
    let weights = cache.entries();
    assert_eq!(weights.values().sum::<u64>(), cache.used());
    let entries: Vec<u32> = weights.into_keys().collect();
    let dump = cache.dump();
    for (name, queue) in &dump {
        let distinct: BTreeSet<u32> = queue.iter().copied().collect();
        assert_eq!(distinct.len(), queue.len(), "{spec}: a key twice in {name}: {queue:?}");
    }
    let mut resident: Vec<u32> = if spec.starts_with("lirs") {
        let ghosts = keys(&dump, "ghosts");
        let (stack, queue) = (keys(&dump, "s"), keys(&dump, "q"));
        assert!(ghosts.iter().all(|key| stack.contains(key)), "{spec}: a ghost outside S");
        let in_stack_only = |key: &&u32| !ghosts.contains(key) && !queue.contains(key);
        let large = keys(&dump, "large");
        let of_stack = stack.iter().filter(in_stack_only);
        queue.iter().chain(large).chain(of_stack).copied().collect()
    } else {
        let is_resident = |(name, _): &&Dump| *name != "hand" && !GHOSTS.contains(name);
        dump.iter().filter(is_resident).flat_map(|(_, keys)| keys.iter().copied()).collect()
    };
    resident.sort_unstable();
    assert_eq!(resident, entries, "{spec}: queues {dump:?}");
    for name in GHOSTS {
        for key in keys(&dump, name) {
            assert!(!entries.contains(key), "{spec}: {key} is in the cache and a ghost");
        }
    }
    assert!(keys(&dump, "hand").iter().all(|key| entries.contains(key)));
    bound_of_ghosts(cache, spec, &dump);
}

/// - `s3fifo`, `segment`: `ghost` per cent of the capacity.
/// - `arc`: T1 and B1 hold the capacity at most, all four queues twice that.
/// - `lirs`: S holds `stack` capacities at most, unless it holds no ghost.
/// - The others have none.
fn bound_of_ghosts(cache: &dyn Cache, spec: &str, dump: &[Dump]) {
    let capacity = cache.capacity();
    let weigh = |name| weight(cache, keys(dump, name));
    match spec.split(':').next().expect("a name") {
        "s3fifo" | "segment" => {
            let percent = parameter(spec, "ghost").unwrap_or(90);
            assert!(
                u128::from(weigh("ghost")) * 100 <= u128::from(capacity) * u128::from(percent),
                "{spec}: {dump:?}"
            );
        }
        "arc" if !spec.contains("weighted=0") => {
            let (t1, t2, b1, b2) = (weigh("t1"), weigh("t2"), weigh("b1"), weigh("b2"));
            assert!(t1 + b1 <= capacity, "{spec}: T1 {t1} + B1 {b1} > {capacity}");
            assert!(t1 + t2 + b1 + b2 <= capacity.saturating_mul(2), "{spec}: {t1} {t2} {b1} {b2}");
        }
        "lirs" => {
            let stack = parameter(spec, "stack").unwrap_or(2);
            assert!(
                keys(dump, "ghosts").is_empty() || weigh("s") <= stack.saturating_mul(capacity)
            );
        }
        _ => {
            let has_ghosts = dump.iter().any(|(name, _)| GHOSTS.contains(name));
            assert!(!has_ghosts || spec.starts_with("arc"), "{spec}: state its bound");
        }
    }
}

fn parameter(spec: &str, name: &str) -> Option<u64> {
    let (_, params) = spec.split_once(':')?;
    let value = params.split(',').find_map(|param| param.strip_prefix(name)?.strip_prefix('='))?;
    value.parse().ok()
}

/// Checks that two caches decide alike: the same outcome of each request, and the same queues after
/// it.
pub(crate) fn same_decisions(
    setup: &Setup<'_>,
    mut left: Box<dyn Cache>,
    mut right: Box<dyn Cache>,
    ops: &[Op],
) {
    let compare_queues = left.dumps_keys() && right.dumps_keys() || !setup.spec.contains("lirs");
    for (at, op) in ops.iter().enumerate() {
        let mut events = [left.apply(*op), right.apply(*op)];
        if setup.spec.contains("lirs") || setup.spec.contains("overflow") {
            // The order of several victims of one request is unspecified.
            for events in &mut events {
                events.sort();
            }
        }
        assert_eq!(events[0], events[1], "{setup:?}: request {at}, {op:?}; {}", left.queues());
        if compare_queues {
            assert_eq!(left.dump(), right.dump(), "{setup:?}: after request {at}, {op:?}");
        }
    }
}

/// Removes all entries; then all queues except those of ghosts are empty.
pub(crate) fn check_empties(mut cache: Box<dyn Cache>, spec: &str) {
    let entries: BTreeMap<u32, u64> = cache.entries();
    for key in entries.keys() {
        assert_eq!(cache.apply(Op::Remove(*key)), [Event::Removed(*key)]);
    }
    assert_eq!(cache.used(), 0);
    check(&*cache, spec);
}

/// Applies requests and checks the invariants now and then, and after each change of the capacity.
pub(crate) fn run(cache: &mut dyn Cache, spec: &str, ops: &[Op], check_every: usize) {
    for (at, op) in ops.iter().enumerate() {
        let resized = matches!(op, Op::Resize(_));
        cache.apply(*op);
        if at % check_every == 0 || resized {
            check(cache, spec);
        }
    }
    check(cache, spec);
}

pub(crate) fn remembers(cache: &dyn Cache, spec: &str, key: u32) -> bool {
    if !cache.dumps_keys() && spec.starts_with("lirs") {
        return false;
    }
    let dump = cache.dump();
    let mut ghosts = dump.iter().filter(|(name, _)| GHOSTS.contains(name));
    ghosts.any(|(_, keys)| keys.contains(&key))
}
