//! An entry that a memory store declines costs no other entry its place, and what fits is kept, under every
//! policy and however many shards there are.

use haypile::memory::MemoryBuilder;
use haypile::{Cache, Stats};
use haypile_policy::PolicySpec;
use haypile_policy::rules::memory::charge;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// Every policy with its defaults, and some that decline other entries.
fn policies() -> Vec<String> {
    let of_memory = |name: &String| !name.parse::<PolicySpec>().unwrap().is_of_file_store();
    let names = PolicySpec::kinds().iter().map(|kind| kind.name.to_owned()).filter(of_memory);
    let variants = ["wtinylfu:window=10", "wtinylfu:window=0", "lirs:hir=20", "s3fifo:small=50"];
    names.chain(variants.map(str::to_owned)).collect()
}

fn open(size_bytes: u64, shards: usize, policy: &str) -> Cache {
    let builder = MemoryBuilder::new(size_bytes).shards(shards).policy(policy.parse().unwrap());
    // Which keys share a shard is the same in each run.
    Cache::new(builder.hash_seed(1).store().unwrap())
}

fn stats(cache: &Cache) -> Stats {
    cache.stats().unwrap()
}

fn longest(cache: &Cache, key: &str) -> usize {
    let limits = cache.store().limits();
    usize::try_from(limits.max_value_bytes).unwrap() - key.len()
}

/// Entries that were all read several times, in nearly all of the size.
fn warm(cache: &Cache, size_bytes: u64) -> u64 {
    let keys = size_bytes * 98 / 100 / charge(8, 700);
    for key in 0..keys {
        cache.set(key.to_le_bytes(), vec![1; 700]).unwrap();
    }
    for key in (0..keys).cycle().take(usize::try_from(3 * keys).unwrap()) {
        cache.get(key.to_le_bytes()).unwrap();
    }
    stats(cache).entries
}

#[test]
fn a_large_value_that_is_declined_evicts_nothing() {
    for policy in ["wtinylfu", "wtinylfu:window=10", "slru4", "lirs"] {
        for shards in [1, 2, 16] {
            let cache = open(4 * MIB, shards, policy);
            let entries = warm(&cache, 4 * MIB);
            let before = stats(&cache);
            for bytes in [1_300_000, 2_500_000, 3_500_000] {
                cache.set("large", vec![2; bytes]).unwrap();
                assert!(!cache.contains("large").unwrap(), "{policy}, {shards}: {bytes}");
            }
            let after = stats(&cache);
            let declined = after.declined - before.declined;
            let evictions = after.evictions - before.evictions;
            assert_eq!((declined, evictions), (3, 0), "{policy}, {shards}");
            assert_eq!(after.entries, entries, "{policy}, {shards}");
        }
    }
}

/// It has to be asked for more often than the entries that leave for it.
#[test]
fn a_large_value_that_is_asked_for_often_is_stored_under_wtinylfu() {
    for shards in [1, 16] {
        let cache = open(4 * MIB, shards, "wtinylfu");
        warm(&cache, 4 * MIB);
        let value = vec![2; 1_300_000];
        let asked = (1..20).find(|_| {
            cache.set("large", &value).unwrap();
            cache.get("large").unwrap().is_some()
        });
        // The others were written once and read three times.
        assert!(asked.is_some_and(|asked| asked > 3), "{shards}: {asked:?}");
    }
}

#[test]
fn an_entry_of_any_size_is_kept_while_there_is_room() {
    for policy in policies() {
        for shards in [1, 16] {
            for part in [1_000, 130, 100, 60, 20, 5, 3, 1] {
                let cache = open(4 * MIB, shards, &policy);
                let value = vec![1; longest(&cache, "key") / part];
                cache.set("key", &value).unwrap();
                let found = cache.get("key").unwrap();
                assert!(found == Some(value), "{policy}, {shards} shards, 1/{part} of the size");
                // Its other values as well.
                let value = vec![2; longest(&cache, "key") * 2 / (part + 1)];
                cache.set("key", &value).unwrap();
                assert!(cache.get("key").unwrap() == Some(value), "{policy}, {shards}: 1/{part}");
                assert_eq!((stats(&cache).declined, stats(&cache).evictions), (0, 0), "{policy}");
            }
        }
    }
}

/// Each of them is heavier than the part of a shard that `lirs` has for newcomers, or a segment of `slru4`.
#[test]
fn many_entries_of_a_size_are_kept_while_there_is_room() {
    for policy in policies() {
        for (shards, entries, bytes) in [(16, 500, 3_500), (16, 25, 70_000), (1, 30, 45_000)] {
            let cache = open(4 * MIB, shards, &policy);
            for round in 0..2 {
                for key in 0..entries {
                    let key = format!("key {key}");
                    if cache.get(&key).unwrap().is_none() {
                        assert_eq!(round, 0, "{policy}, {shards} shards: {key} is gone");
                        cache.set(&key, vec![1; bytes]).unwrap();
                    }
                }
            }
            let stats = stats(&cache);
            assert_eq!((stats.evictions, stats.declined), (0, 0), "{policy}, {shards} shards");
        }
    }
}

/// Entries that are too heavy for the queues of a policy follow each other.
#[test]
fn large_entries_make_room_for_large_entries() {
    for policy in ["lirs", "slru4"] {
        let cache = open(MIB, 1, policy);
        for key in 0..20_u8 {
            cache.set([key], vec![key; 300_000]).unwrap();
            assert!(cache.contains([key]).unwrap(), "{policy}: {key}");
        }
        assert_eq!((stats(&cache).entries, stats(&cache).declined), (3, 0), "{policy}");
        // Those that are small push them out, and not the other way round.
        for key in 0..2_000_u64 {
            cache.set(key.to_le_bytes(), vec![1; 700]).unwrap();
        }
        let before = stats(&cache);
        cache.set("large", vec![1; 300_000]).unwrap();
        let after = stats(&cache);
        assert!(!cache.contains("large").unwrap(), "{policy}");
        assert_eq!((after.entries, after.evictions), (before.entries, before.evictions));
    }
}

#[test]
fn nothing_leaves_for_an_entry_that_cannot_fit_because_of_a_reader() {
    for shards in [1, 8] {
        let cache = open(MIB, shards, "lru");
        cache.set("removed", vec![1; 600_000]).unwrap();
        let pin = cache.get_pinned("removed").unwrap().unwrap();
        cache.delete("removed").unwrap();
        for key in 0..200_u64 {
            cache.set(key.to_le_bytes(), vec![1; 700]).unwrap();
        }
        let before = stats(&cache);
        cache.set("new", vec![2; 600_000]).unwrap();
        assert!(!cache.contains("new").unwrap());
        // The entry itself leaves, for its old value is not the key's any more.
        cache.set([0; 8], vec![2; 600_000]).unwrap();
        assert!(!cache.contains([0; 8]).unwrap());
        let after = stats(&cache);
        assert_eq!(after.declined - before.declined, 1, "{shards} shards");
        assert_eq!(after.evictions - before.evictions, 1, "{shards} shards");
        assert_eq!(after.entries, 199, "{shards} shards");
        drop(pin);
        cache.set("new", vec![2; 600_000]).unwrap();
        assert!(cache.contains("new").unwrap());
    }
}

/// It is the oldest of its shard, all of which have to leave as well.
#[test]
fn an_entry_that_grows_stays_if_other_shards_make_room_for_it() {
    for policy in policies() {
        let cache = open(4 * MIB, 16, &policy);
        cache.set("key", "small").unwrap();
        warm(&cache, 4 * MIB);
        if cache.contains("key").unwrap() {
            let value = vec![1; 2_500_000];
            cache.set("key", &value).unwrap();
            let is_kept = cache.get("key").unwrap() == Some(value);
            // These two have a queue for it, whose entries make room for all others.
            assert!(is_kept || ["slru4", "lirs"].contains(&policy.split(':').next().unwrap()));
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Set { key: u8, bytes: usize },
    Get(u8),
    Delete(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = prop_oneof![
        8 => 0..300_usize,
        3 => 0..4_000_usize,
        2 => 4_000..30_000_usize,
        1 => 30_000..39_000_usize,
    ];
    prop_oneof![
        8 => (any::<u8>(), bytes).prop_map(|(key, bytes)| Op::Set { key, bytes }),
        6 => any::<u8>().prop_map(Op::Get),
        1 => any::<u8>().prop_map(Op::Delete),
    ]
}

/// The size of a store for random operations.
const SIZE_BYTES: u64 = 40_000;

/// Sets a value, and checks what has left for it, and that it is there if at most half of the size is used: a
/// shard may hold some free bytes that others could use.
fn check_set(cache: &Cache, key: u8, bytes: usize) {
    let name = cache.store().describe();
    let is_new = !cache.contains([key]).unwrap();
    let before = stats(cache);
    cache.set([key], vec![key; bytes]).unwrap();
    let after = stats(cache);
    let evicted = after.evictions - before.evictions;
    let is_there = cache.contains([key]).unwrap();
    if is_new {
        assert_eq!(after.declined - before.declined, u64::from(!is_there), "{name}: {bytes} bytes");
    }
    if before.bytes + charge(1, bytes as u64) <= SIZE_BYTES / 2 {
        assert!(is_there && evicted == 0, "{name}: {bytes} bytes fit");
    }
    if is_new && !is_there {
        assert_eq!((evicted, after.entries), (0, before.entries), "{name}: {bytes} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_declined_write_evicts_nothing_and_what_fits_is_kept(
        shards in prop::sample::select(vec![1, 2, 4, 16]),
        ops in prop::collection::vec(op(), 0..400),
    ) {
        for policy in policies() {
            let cache = open(SIZE_BYTES, shards, &policy);
            for op in &ops {
                match *op {
                    Op::Set { key, bytes } => check_set(&cache, key, bytes),
                    Op::Get(key) => drop(cache.get([key]).unwrap()),
                    Op::Delete(key) => drop(cache.delete([key])),
                }
            }
        }
    }
}
