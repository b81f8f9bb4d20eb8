//! Leases of the memory store: a value that was computed before a change of its key is refused.

use std::sync::Arc;
use std::time::Duration;

use haypile::{Cache, Lease, ManualClock, Registry, SetOptions, Written};

const LIFE: Duration = Duration::from_secs(1);

fn cache() -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let store = Registry::new().with_clock(clock.clone()).open("memory:size=64KiB,shards=2");
    (Cache::new(store.unwrap()), clock)
}

fn write(cache: &Cache, lease: Lease) -> Written {
    cache.write("key", "old", SetOptions::leased(lease)).unwrap()
}

/// More than fits, one by one.
fn fill(cache: &Cache) {
    for number in 0..500_u32 {
        cache.set(number.to_le_bytes(), [0; 1_000]).unwrap();
    }
}

type Change = fn(&Cache, &ManualClock);

const CHANGES: &[(&str, Change)] = &[
    ("delete", |cache, _| assert!(!cache.delete("key").unwrap())),
    ("delete_many", |cache, _| drop(cache.delete_many(&["key", "other"]))),
    ("clear", |cache, _| cache.clear().unwrap()),
    ("set", |cache, _| cache.set("key", "new").unwrap()),
    ("set on the store", |cache, _| {
        assert!(cache.store().set(b"key", b"new", &SetOptions::set()).unwrap().is_stored());
    }),
    ("delete on the store", |cache, _| assert!(!cache.store().delete(b"key").unwrap())),
    ("set, then delete", |cache, _| {
        cache.set("key", "new").unwrap();
        assert!(cache.delete("key").unwrap());
    }),
    ("set, then expired", |cache, clock| {
        cache.set_with_ttl("key", "new", LIFE).unwrap();
        clock.advance(2 * LIFE);
        assert_eq!(cache.get("key").unwrap(), None);
    }),
    ("set, then evicted", |cache, _| {
        cache.set("key", "new").unwrap();
        fill(cache);
        assert_eq!(cache.get("key").unwrap(), None);
    }),
    ("set, then resized", |cache, _| {
        cache.set("key", vec![0; 30_000]).unwrap();
        cache.store().resize(16 << 10).unwrap();
        cache.store().resize(64 << 10).unwrap();
        assert_eq!(cache.get("key").unwrap(), None);
    }),
];

#[test]
fn a_lease_is_revoked_by_every_change_of_its_key() {
    for (name, change) in CHANGES {
        let (cache, clock) = cache();
        let lease = cache.lease("key").unwrap();
        change(&cache, &clock);
        let left = cache.get("key").unwrap();
        assert_eq!(write(&cache, lease), Written::Revoked, "{name}");
        assert_eq!(cache.get("key").unwrap(), left, "{name}");
        assert_eq!(cache.stats().unwrap().revoked, 1, "{name}");

        cache.delete("key").unwrap();
        let computed = cache.get_or_compute("key", None, || {
            change(&cache, &clock);
            b"old".to_vec()
        });
        assert_eq!(computed.unwrap(), b"old");
        assert_ne!(cache.get("key").unwrap().as_deref(), Some(b"old".as_slice()), "{name}");
    }
}

/// A newer value that the policy did not keep is newer all the same.
#[test]
fn a_lease_is_revoked_by_a_value_that_was_accepted_and_not_kept() {
    let cache = Cache::open("memory:size=64KiB,shards=1,policy=wtinylfu").unwrap();
    for _ in 0..20 {
        for number in 0..64_u32 {
            if cache.get(number.to_le_bytes()).unwrap().is_none() {
                cache.set(number.to_le_bytes(), [0; 1_000]).unwrap();
            }
        }
    }
    let (mut declined, mut number) = (0, 1_000_u32);
    while declined == 0 {
        let key = number.to_le_bytes();
        let lease = cache.lease(key).unwrap();
        let before = cache.stats().unwrap().declined;
        cache.set(key, [1; 1_000]).unwrap();
        declined = cache.stats().unwrap().declined - before;
        let written = cache.write(key, "old", SetOptions::leased(lease)).unwrap();
        assert_eq!(written, Written::Revoked);
        number += 1;
        assert!(number < 100_000, "nothing is declined");
    }
}

#[test]
fn what_is_not_a_change_of_the_key_revokes_nothing() {
    let acts: &[(&str, Change)] = &[
        ("nothing", |_, _| {}),
        ("a touch", |cache, _| assert!(cache.touch("key", 2 * LIFE).unwrap())),
        ("a write that is refused", |cache, _| assert!(!cache.add("key", "another").unwrap())),
        ("a deletion that is refused", |cache, _| {
            assert!(!cache.compare_and_delete("key", "another").unwrap());
        }),
        ("removals of six other keys, again and again", |cache, _| {
            for number in 0..600_u32 {
                assert!(!cache.delete((number % 6).to_le_bytes()).unwrap());
            }
        }),
    ];
    for (name, act) in acts {
        let (cache, clock) = cache();
        cache.set_with_ttl("key", "value", 10 * LIFE).unwrap();
        let lease = cache.lease("key").unwrap();
        act(&cache, &clock);
        assert_eq!(write(&cache, lease), Written::Stored, "{name}");
        assert_eq!(write(&cache, lease), Written::Revoked, "{name}: it serves once");
    }
}

/// Of an entry that has expired before, its lease knows nothing.
#[test]
fn an_entry_that_has_expired_revokes_no_later_lease() {
    let (cache, clock) = cache();
    cache.set_with_ttl("key", "value", LIFE).unwrap();
    clock.advance(2 * LIFE);
    let lease = cache.lease("key").unwrap();
    // A write removes what has expired.
    cache.set("other", "value").unwrap();
    assert_eq!(write(&cache, lease), Written::Stored);
}

/// Making room for a large value takes several steps, which are one to the lease.
#[test]
fn a_value_for_which_others_leave_is_stored_under_its_lease() {
    let (cache, clock) = cache();
    fill(&cache);
    for number in 0..50_u32 {
        let key = format!("key-{number}");
        cache.set_with_ttl(&key, [0; 100], LIFE).unwrap();
        clock.advance(2 * LIFE);
        let lease = cache.lease(&key).unwrap();
        let written = cache.write(&key, vec![1; 20_000], SetOptions::leased(lease)).unwrap();
        assert_eq!(written, Written::Stored, "{key}");
    }
}

#[test]
fn a_lease_of_anything_else_is_revoked() {
    let ((cache, _), (other, _)) = (cache(), cache());
    let lease = cache.lease("key").unwrap();
    other.lease("key").unwrap();
    assert_eq!(write(&other, lease), Written::Revoked, "of another store");
    let written = cache.write("kez", "old", SetOptions::leased(lease)).unwrap();
    assert_eq!(written, Written::Revoked, "of another key");
    for bit in 0..8 * Lease::BYTES {
        let mut bytes = lease.to_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(write(&cache, Lease::from_bytes(bytes)), Written::Revoked, "bit {bit}");
    }
    assert_eq!(write(&cache, lease), Written::Stored);
}

/// Levels have the leases of the last one.
#[test]
fn a_lease_over_levels_is_that_of_the_last() {
    for url in
        ["memory:size=64KiB->memory:size=64KiB", "memory:size=64KiB,write=back->memory:size=64KiB"]
    {
        let Ok(cache) = Cache::open(url) else { continue };
        let lease = cache.lease("key").unwrap();
        assert_eq!(write(&cache, lease), Written::Stored);
        assert_eq!(write(&cache, lease), Written::Revoked);
        cache.set("key", "waits").unwrap();
        let lease = cache.lease("key").unwrap();
        assert_eq!(write(&cache, lease), Written::Stored, "{url}");
        let lease = cache.lease("key").unwrap();
        assert!(cache.delete("key").unwrap());
        assert_eq!(write(&cache, lease), Written::Revoked);
        assert_eq!(cache.get("key").unwrap(), None);
    }
}
