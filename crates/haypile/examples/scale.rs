//! The cost of operations on a file of many entries, and of opening it, next to a file of fewer.
//!
//! ```sh
//! cargo run --release --example scale -- file:/dev/shm/scale.haypile,size=8GiB --keys 30000000
//! valgrind --tool=callgrind target/release/examples/scale … --operations 0
//! ```
//!
//! Fills the file unless it has entries, opens it several times, and then reads and overwrites keys at random.
//! Prints a line of JSON: microseconds to open it, nanoseconds of wall time per operation. Keys have 12 bytes
//! and values 160.

use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use haypile::{Registry, SetOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const VALUE: [u8; 160] = [7; 160];
const OPENED: usize = 21;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().ok_or("a file is missing, for example file:/dev/shm/a,size=8GiB")?;
    let (mut keys, mut operations, mut case) = (1_000_000_u64, 1_000_000_u64, String::from("both"));
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("a value is missing after {name}"))?;
        match name.as_str() {
            "--keys" => keys = value.parse()?,
            "--operations" => operations = value.parse()?,
            "--case" => case = value,
            _ => {
                return Err(format!(
                    "unknown option '{name}' (known: --keys, --operations, --case)"
                )
                .into());
            }
        }
    }
    fill(&url, keys)?;
    let mut opened: Vec<u128> = Vec::new();
    for _ in 0..OPENED {
        let begin = Instant::now();
        let store = Registry::new().open(&url)?;
        black_box(store.get_into(&key(0), &mut Vec::new())?);
        opened.push(begin.elapsed().as_micros());
    }
    opened.sort_unstable();
    let store = Registry::new().open(&url)?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let chosen: Vec<_> = (0..operations).map(|_| key(random.random_range(0..keys))).collect();
    let begin = Instant::now();
    let mut hits = 0;
    if case != "set" {
        let mut buffer = Vec::new();
        for key in &chosen {
            hits += u64::from(store.get_into(key, &mut buffer)?.is_some());
        }
    }
    let get_ns = begin.elapsed().as_nanos();
    let begin = Instant::now();
    if case != "get" {
        for key in &chosen {
            let _ = store.set(key, &VALUE, &SetOptions::set())?;
        }
    }
    let each = |ns: u128| ns / u128::from(operations.max(1));
    writeln!(
        std::io::stdout(),
        "{{\"keys\":{keys},\"entries\":{},\"open_us\":{},\"operations\":{operations},\"hits\":{hits},\
         \"get_ns\":{},\"set_ns\":{}}}",
        store.len()?,
        opened[OPENED / 2],
        each(get_ns),
        each(begin.elapsed().as_nanos()),
    )?;
    Ok(())
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:012}").into_bytes()
}

fn fill(url: &str, keys: u64) -> Result<(), Box<dyn Error>> {
    let store = Registry::new().open(url)?;
    if store.len()? == 0 {
        for number in 0..keys {
            let _ = store.set(&key(number), &VALUE, &SetOptions::set())?;
        }
    }
    Ok(())
}
