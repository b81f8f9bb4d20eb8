//! The simulator predicts the stores: the same requests with real values have the same number of hits
//! in the `memory` store, for every policy, and nearly the same in the `file` store.
//!
//! The `memory` store has the seed of the simulated hash function of keys, so that shards, ghosts and sketches
//! see the same.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haypile::memory::MemoryBuilder;
use haypile::{Error, SetOptions, Store};
use haypile_policy::PolicySpec;
use haypile_policy::rules::memory::MIN_SIZE_BYTES;
use haypile_sim::Trace;
use haypile_sim::simulate::{Accounting, Counts, ENGINE_HASH_SEED, Options, Outcome, footprint};
use haypile_sim::trace::format::Format;
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{Key, Op};

use crate::support::simulation::{generate, read_trace, redis_build, run, run_in, shared_traces};

/// Every policy with its defaults, and the variants that take another way.
fn policies() -> Vec<String> {
    let of_memory = |name: &String| !name.parse::<PolicySpec>().unwrap().is_of_file_store();
    let names = PolicySpec::kinds().iter().map(|kind| kind.name.to_owned()).filter(of_memory);
    let variants = [
        "s3fifo:threshold=2",
        "s3fifo:ghost=20",
        "wtinylfu:window=10",
        "arc:weighted=0",
        "slru4:fall=1",
        "lirs:demote=1",
    ];
    names.chain(variants.map(str::to_owned)).collect()
}

/// Keys by id, as a program would write them.
fn keys_of(trace: &Trace) -> Vec<Vec<u8>> {
    let key = |id| match trace.key(id) {
        Key::Number(number) => number.to_string().into_bytes(),
        Key::Text(text) => text.to_vec(),
    };
    (0..trace.keys()).map(key).collect()
}

/// Where the values of a trace come from: each is a part of one long noise, which begins where its
/// key and its version say, so that no byte of it is where another value has the same one.
struct Noise(Vec<u8>);

impl Noise {
    /// Places where values begin.
    const STARTS: usize = 1 << 20;

    fn new(largest_bytes: usize) -> Self {
        let mut state = 1_u64;
        let words = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state ^ (state >> 29)).to_le_bytes()
        });
        Self(words.take((Self::STARTS + largest_bytes).div_ceil(8)).flatten().collect())
    }

    fn value(&self, id: u32, version: u32, bytes: usize) -> &[u8] {
        let hash = (u64::from(id) << 32 | u64::from(version)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let start = usize::try_from(hash >> 44).unwrap();
        &self.0[start..start + bytes]
    }
}

struct Replay<'a> {
    trace: &'a Trace,
    keys: &'a [Vec<u8>],
    noise: &'a Noise,
    /// One cache, opened several times: they take turns.
    stores: Vec<Arc<dyn Store>>,
    turn: usize,
    /// By id, which value was stored last, and its bytes.
    last: Vec<Option<(u32, usize)>>,
    value: Vec<u8>,
    counts: Counts,
}

impl<'a> Replay<'a> {
    fn new(
        trace: &'a Trace,
        keys: &'a [Vec<u8>],
        noise: &'a Noise,
        stores: Vec<Arc<dyn Store>>,
    ) -> Self {
        let last = vec![None; keys.len()];
        let (value, counts) = (Vec::new(), Counts::default());
        Self { trace, keys, noise, stores, turn: 0, last, value, counts }
    }

    fn store(&self) -> &dyn Store {
        &*self.stores[self.turn % self.stores.len()]
    }

    fn run(mut self) -> (Counts, haypile::Stats) {
        let sizes = self.trace.sizes().unwrap();
        for (at, (id, size)) in self.trace.ids().iter().zip(sizes).enumerate() {
            let (id, bytes) = (id.get(), size.get() as usize);
            let version = u32::try_from(at).unwrap();
            self.turn = at;
            match self.trace.ops().map_or(Op::Read, |ops| Op::from_number(ops[at])) {
                Op::Read if self.hits(id) => {
                    self.counts.hits += 1;
                    self.counts.hit_bytes += bytes as u64;
                }
                Op::Read => {
                    self.counts.misses += 1;
                    self.counts.miss_bytes += bytes as u64;
                    self.set(id, version, bytes);
                }
                Op::Write => {
                    self.counts.writes += 1;
                    self.set(id, version, bytes);
                }
                Op::Delete => {
                    self.counts.deletes += 1;
                    self.delete(id);
                }
            }
        }
        let stats = self.store().stats().unwrap();
        self.counts.evictions = stats.evictions;
        self.counts.refused += stats.declined;
        (self.counts, stats)
    }

    /// Looks a key up and compares every byte of what is found with what was stored last.
    fn hits(&mut self, id: u32) -> bool {
        let store = &self.stores[self.turn % self.stores.len()];
        if store.get_into(&self.keys[id as usize], &mut self.value).unwrap().is_none() {
            return false;
        }
        let (version, bytes) = self.last[id as usize].expect("a hit on a key that has no value");
        let expected = self.noise.value(id, version, bytes);
        assert!(self.value == expected, "key {id} has another value than version {version}");
        true
    }

    fn set(&mut self, id: u32, version: u32, bytes: usize) {
        let value = self.noise.value(id, version, bytes);
        match self.store().set(&self.keys[id as usize], value, &SetOptions::default()) {
            Ok(_) => self.last[id as usize] = Some((version, bytes)),
            Err(Error::ValueTooLarge { .. }) => {
                // The store keeps the old value, which is not the key's any more.
                self.counts.refused += 1;
                self.delete(id);
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn delete(&mut self, id: u32) {
        self.store().delete(&self.keys[id as usize]).unwrap();
        self.last[id as usize] = None;
    }
}

/// A trace with real keys and values.
struct Real<'a> {
    trace: &'a Trace,
    keys: Vec<Vec<u8>>,
    noise: Noise,
}

impl<'a> Real<'a> {
    fn new(trace: &'a Trace) -> Self {
        let largest_bytes = trace.sizes().unwrap().iter().map(|size| size.get()).max().unwrap();
        let keys = keys_of(trace);
        let distinct: HashSet<&Vec<u8>> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "keys that differ only as numbers and texts");
        Self { trace, keys, noise: Noise::new(largest_bytes as usize) }
    }

    /// The size of a store that has room for such a part of all keys.
    fn size_bytes(&self, share: u64) -> u64 {
        (footprint(self.trace, Accounting::Engine) / share).max(MIN_SIZE_BYTES)
    }

    /// The bytes of the records of all keys in a file, without expiry, as docs/format-file.md lays them out.
    fn record_bytes(&self) -> u64 {
        const HEADER_BYTES: usize = 16;
        let mut last = vec![0; self.keys.len()];
        for (id, size) in self.trace.ids().iter().zip(self.trace.sizes().unwrap()) {
            last[id.get() as usize] = (size.get() as usize).max(last[id.get() as usize]);
        }
        let record = |(key, value): (&Vec<u8>, usize)| {
            HEADER_BYTES + key.len().next_multiple_of(8) + value.next_multiple_of(8)
        };
        self.keys.iter().zip(last).map(record).sum::<usize>() as u64
    }

    /// In the `memory` store.
    fn replay(&self, policy: &str, size_bytes: u64, shards: usize) -> (Counts, haypile::Stats) {
        let store = MemoryBuilder::new(size_bytes)
            .shards(shards)
            .policy(policy.parse().unwrap())
            .hash_seed(ENGINE_HASH_SEED)
            .store()
            .unwrap();
        self.replay_in(vec![store])
    }

    fn replay_in(&self, stores: Vec<Arc<dyn Store>>) -> (Counts, haypile::Stats) {
        Replay::new(self.trace, &self.keys, &self.noise, stores).run()
    }
}

/// A simulation of the `memory` store.
fn predict(
    trace: &Trace,
    policy: &str,
    size_bytes: u64,
    shards: impl Into<Option<usize>>,
) -> Outcome {
    let options = Options { shards: shards.into(), ..Options::new(Accounting::Engine) };
    run(trace, policy, size_bytes, &options)
}

/// Compares policies at stores with room for such parts of all keys.
fn compare(trace: &Trace, shares: &[u64], policies: &[String]) {
    compare_in_shards(trace, shares, policies, 1);
}

/// Compares policies at stores of as many shards, or fewer where the store is too small for them.
fn compare_in_shards(trace: &Trace, parts: &[u64], policies: &[String], shards: usize) {
    let real = Real::new(trace);
    for part in parts {
        let size_bytes = real.size_bytes(*part);
        let most = usize::try_from(size_bytes / MIN_SIZE_BYTES).unwrap().ilog2();
        let shards = shards.min(1 << most);
        for policy in policies {
            let predicted = predict(trace, policy, size_bytes, shards);
            let (counts, stats) = real.replay(policy, size_bytes, shards);
            let predicted_counts = Counts { cold_misses: 0, ..predicted.counts };
            assert_eq!(counts, predicted_counts, "{policy} at {size_bytes} bytes, {shards} shards");
            assert_eq!(stats.bytes, predicted.used, "{policy} at {size_bytes} bytes");
            assert_eq!(stats.entries, predicted.entries, "{policy} at {size_bytes} bytes");
        }
    }
}

fn zipf(sizes: &str, requests: u64) -> Trace {
    generate(&Spec {
        seed: 7,
        sizes: Some(sizes.parse().unwrap()),
        writes: 0.15,
        deletes: 0.05,
        ..Spec::new("zipf:keys=3000,exponent=0.9".parse().unwrap(), requests)
    })
}

#[test]
fn sizes_per_key() {
    compare(&zipf("lognormal:median=200,sigma=1.5", 20_000), &[2, 10, 50], &policies());
}

/// Entries grow and shrink, and some outgrow the whole store.
#[test]
fn sizes_per_request() {
    compare(&zipf("lognormal:median=100,sigma=2,per=request", 20_000), &[3, 30, 300], &policies());
}

#[test]
fn the_files_of_a_build() {
    compare(&redis_build(), &[8, 80], &policies());
}

/// The simulation has the shards of the store, and bytes move among them as in the store.
#[test]
fn shards_hit_as_simulated() {
    compare_in_shards(
        &zipf("lognormal:median=200,sigma=1.5", 20_000),
        &[2, 10, 50],
        &policies(),
        4,
    );
    let of_sizes = zipf("lognormal:median=100,sigma=2,per=request", 20_000);
    compare_in_shards(&of_sizes, &[3, 30], &policies(), 16);
    compare_in_shards(&redis_build(), &[8, 80], &policies(), 8);
}

/// Without a number of shards, store and simulation have the same one.
#[test]
fn the_default_shards_are_the_stores() {
    let trace = redis_build();
    let real = Real::new(&trace);
    for size_bytes in [1 << 20, 20_000_000, 200_000_000] {
        let builder = MemoryBuilder::new(size_bytes).hash_seed(ENGINE_HASH_SEED);
        let (counts, _) = real.replay_in(vec![builder.store().unwrap()]);
        let predicted = predict(&trace, "s3fifo", size_bytes, None);
        assert_eq!(counts.hits, predicted.counts.hits, "{size_bytes} bytes");
        assert_eq!(predicted.shards, haypile_policy::rules::memory::default_shards(size_bytes));
    }
}

/// A shared trace with sizes: its own, or else such as are common.
fn sized(name: &str, path: &Path) -> Trace {
    let format = name.ends_with(".trace.xz").then_some(Format::I32Be);
    let trace = read_trace(
        path,
        format.filter(|_| {
            name.starts_with("web") || name.starts_with("w1") || name.starts_with("orm")
        }),
    );
    if trace.sizes().is_some() {
        return trace;
    }
    trace.assume_sizes(&"lognormal:median=150,sigma=1".parse().unwrap(), 1).unwrap()
}

/// The longer, the fewer policies.
#[test]
fn every_shared_trace() {
    let Some(traces) = shared_traces() else { return };
    let names = std::fs::read_dir(traces).unwrap().map(|entry| entry.unwrap().path());
    let paths: Vec<_> = names.filter(|path| path.is_file() && is_trace(path)).collect();
    assert!(paths.len() > 15, "only {} traces were found", paths.len());
    let next = AtomicUsize::new(0);
    // A minute of one processor.
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    compare_with_many(path);
                }
            });
        }
    });
}

/// Compares with every policy; with fewer where the trace is long.
fn compare_with_many(path: &Path) {
    let trace = sized(file_name(path), path);
    let policies = match trace.requests() {
        0..120_000 => policies(),
        120_000..2_000_000 => ["s3fifo", "lru"].map(str::to_owned).to_vec(),
        _ => vec!["s3fifo".to_owned()],
    };
    compare(&trace, &[10], &policies);
}

fn is_trace(path: &Path) -> bool {
    let name = file_name(path);
    !name.starts_with("README") && !name.starts_with("known-answers")
}

fn file_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Keys that are spread over shards lose little: each shard decides over its own.
#[test]
fn sixteen_shards_of_a_thousand_entries() {
    let spec = Spec {
        seed: 3,
        sizes: Some("lognormal:median=200,sigma=1".parse().unwrap()),
        ..Spec::new("zipf:keys=100000,exponent=0.9".parse().unwrap(), 400_000)
    };
    let trace = generate(&spec);
    let real = Real::new(&trace);
    let size_bytes = real.size_bytes(4);
    for policy in policies() {
        let predicted = predict(&trace, &policy, size_bytes, 1);
        let (counts, stats) = real.replay(&policy, size_bytes, 16);
        assert!(stats.entries >= 16_000, "{policy} holds {} entries", stats.entries);
        let difference = hits_ahead(&trace, counts.hits, predicted.counts.hits);
        // LIRS keeps one entry in a hundred as a newcomer: ten of a thousand are too few for it.
        let most = if policy.starts_with("lirs") { 0.015 } else { 0.005 };
        assert!(difference.abs() < most, "{policy}: {difference}");
    }
}

/// By how much of all requests there are more hits.
fn hits_ahead(trace: &Trace, hits: u64, others: u64) -> f64 {
    let number = |count: u64| f64::from(u32::try_from(count).unwrap());
    (number(hits) - number(others)) / number(trace.requests() as u64)
}

/// The hit ratio of the `file` store, and by how much it is ahead of what the simulator says of as many
/// segments.
fn in_a_file(trace: &Trace, share: u64) -> f64 {
    in_a_file_of(1, trace, share)
}

/// The same of a file that is opened several times, by writers that take turns.
fn in_a_file_of(writers: usize, trace: &Trace, share: u64) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let real = Real::new(trace);
    let size_bytes = real.size_bytes(share);
    let url = format!("file://{}?size={size_bytes}", path.display());
    let open = |_| haypile::Registry::new().open(&url).unwrap();
    let (counts, _) = real.replay_in((0..writers).map(open).collect());
    let file = haypile::file::FileStat::of(&path).unwrap();
    assert!(file.segments >= 32 && file.stats.evictions > 1_000, "{file:?}");
    let policy = format!("segment:segments={}", file.segments);
    // The simulator charges what the `memory` store does. Records of a file have a shorter header, and lie in
    // a whole number of words.
    let charged = u128::from(footprint(trace, Accounting::Engine));
    let capacity = u128::from(file.capacity_bytes) * charged / u128::from(real.record_bytes());
    let predicted = run_in(trace, &policy, capacity.try_into().unwrap(), Accounting::Engine);
    hits_ahead(trace, counts.hits, predicted.counts.hits)
}

/// Hits of a file that the prediction does not have or that it has in addition, as a part of all requests.
const MOST_BESIDE: f64 = 0.005;

#[test]
fn a_file_of_small_values() {
    let spec = Spec {
        seed: 5,
        sizes: Some("lognormal:median=400,sigma=1".parse().unwrap()),
        writes: 0.15,
        deletes: 0.05,
        ..Spec::new("zipf:keys=30000,exponent=0.9".parse().unwrap(), 200_000)
    };
    let ahead = in_a_file(&generate(&spec), 5);
    assert!(ahead.abs() < MOST_BESIDE, "{ahead}");
}

/// Writers that have lanes of their own hit as predicted for one writer.
#[test]
fn a_file_of_sixteen_writers() {
    let spec = Spec {
        seed: 5,
        sizes: Some("lognormal:median=400,sigma=1".parse().unwrap()),
        writes: 0.15,
        deletes: 0.05,
        ..Spec::new("zipf:keys=200000,exponent=0.9".parse().unwrap(), 600_000)
    };
    let trace = generate(&spec);
    let [one, sixteen] = [1, 16].map(|writers| in_a_file_of(writers, &trace, 5));
    for ahead in [one, sixteen] {
        assert!(ahead.abs() < MOST_BESIDE, "{one} and {sixteen} ahead of the prediction");
    }
}

/// A cache of few large values must not remember for longer than others what left it. Their sizes change, so
/// that the prediction's room is less exact.
#[test]
fn files_of_large_values() {
    let Some(traces) = shared_traces() else { return };
    for (name, share) in [("cloudPhysicsIO.csv.zst", 10), ("adapt-size.trace.xz", 10)] {
        let trace = read_trace(&traces.join(name), None);
        let ahead = in_a_file(&trace, share);
        assert!(ahead.abs() < 2.0 * MOST_BESIDE, "{name}: {ahead}");
    }
}
