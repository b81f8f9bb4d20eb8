//! The cost of recording per operation: reads of a store that holds nothing, with and without it.
//!
//! `cargo run --release -p haypile --example record_cost [DIRECTORY]`
//!
//! A rough figure of one machine at one moment; the laboratory measures it properly.

use std::env;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use haypile::record::{RecordOptions, RecordingState, RecordingStore};
use haypile::{NoneStore, Store, SystemClock};

const KEYS: usize = 10_000;
const OPERATIONS: usize = 2_000_000;
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = env::args_os().nth(1).map_or_else(env::temp_dir, PathBuf::from);
    // Keys of 36 bytes, a few of them popular: the product of two uniform numbers.
    let keys: Vec<String> =
        (0..KEYS).map(|number| format!("an object with a long name {number:09}")).collect();
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % KEYS
    };
    let order: Vec<usize> =
        (0..1 << 20).map(|_| random() * random() / KEYS * random() / KEYS).collect();
    for threads in [1, 2] {
        let plain = NoneStore::new();
        let options = RecordOptions::new(dir.join("haypile-record-cost"));
        let inner = Arc::new(NoneStore::new());
        let recorded = RecordingStore::new(inner, options, Arc::new(SystemClock::new()))?;
        let mut best = [f64::INFINITY; 2];
        for _ in 0..RUNS {
            let stores: [&dyn Store; 2] = [&plain, &recorded];
            for (best, store) in best.iter_mut().zip(stores) {
                *best = best.min(ns_per_operation(store, &keys, &order, threads));
            }
        }
        recorded.close()?;
        let (path, bytes) = (recorded.path(), recorded.written_bytes());
        let state = recorded.state();
        std::fs::remove_file(path)?;
        let operations = (OPERATIONS * RUNS * threads) as u64;
        let [without, with] = best;
        let cost = with - without;
        let state = if state == RecordingState::Closed { "" } else { " (not all was recorded)" };
        #[expect(clippy::print_stdout, reason = "an example shows what it found")]
        {
            println!(
                "{threads} threads: {without:.1} ns without, {with:.1} ns with: {cost:.1} ns per \
                 operation, {} bytes{state}",
                bytes / operations
            );
        }
    }
    Ok(())
}

/// Returns the processor time of this thread in nanoseconds, including the system's work for it.
/// Other processes do not disturb it. Linux only.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns nanoseconds of processor time per operation.
fn ns_per_operation(store: &dyn Store, keys: &[String], order: &[usize], threads: usize) -> f64 {
    let total_ns: u64 = thread::scope(|scope| {
        let run = |thread: usize| {
            move || {
                let start_ns = cpu_ns();
                let mut buffer = Vec::new();
                let from = thread * 1_000;
                for at in order.iter().cycle().skip(from).take(OPERATIONS) {
                    let _ = black_box(store.get_into(keys[*at].as_bytes(), &mut buffer));
                }
                cpu_ns() - start_ns
            }
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        handles.into_iter().map(|handle| handle.join().expect("it does not panic")).sum()
    });
    total_ns as f64 / (OPERATIONS * threads) as f64
}
