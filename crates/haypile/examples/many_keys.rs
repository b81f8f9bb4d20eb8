//! The cost per key of reading and writing many keys by one call, next to a call for each.
//!
//! ```sh
//! cargo run --release --example many_keys -- file:/dev/shm/many.haypile,size=4GiB --keys 10000000
//! ```
//!
//! Prints a line of JSON for each measurement, in nanoseconds of wall time per key; the two ways take
//! turns. Keys have 12 bytes and values 160, all of which are read.

use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use haypile::{Registry, SetOptions, Store};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const BATCH: usize = 64;
const VALUE_BYTES: usize = 160;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().ok_or("a cache is missing, for example memory:size=4GiB")?;
    let (mut keys, mut operations, mut blocks) = (10_000_000, 1_000_000, 7);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("a number is missing after {name}"))?;
        match name.as_str() {
            "--keys" => keys = value.parse()?,
            "--operations" => operations = value.parse()?,
            "--blocks" => blocks = value.parse()?,
            _ => {
                return Err(format!(
                    "unknown option '{name}' (known: --keys, --operations, --blocks)"
                )
                .into());
            }
        }
    }
    let store = Registry::new().open(&url)?;
    let names: Vec<String> = (0..keys).map(|number| format!("{number:012}")).collect();
    for name in &names {
        let _ = store.set(name.as_bytes(), &[7; VALUE_BYTES], &SetOptions::set())?;
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for block in 0..blocks {
        for way in ["get", "get_many", "set", "set_many"] {
            let chosen: Vec<&[u8]> = (0..operations)
                .map(|_| names[random.random_range(0..names.len())].as_bytes())
                .collect();
            let begin = Instant::now();
            let hits = run(&*store, way, &chosen)?;
            let ns = begin.elapsed().as_nanos() / (chosen.len() as u128).max(1);
            writeln!(
                std::io::stdout(),
                "{{\"subject\":\"{}\",\"operation\":\"{way}\",\"keys\":{keys},\"block\":{block},\
                 \"batch\":{BATCH},\"hits\":{hits},\"wall_ns\":{ns}}}",
                url.split(':').next().unwrap_or_default()
            )?;
        }
    }
    Ok(())
}

/// Works on these keys; returns how many were there.
fn run(store: &dyn Store, way: &str, keys: &[&[u8]]) -> Result<usize, Box<dyn Error>> {
    let value = [9; VALUE_BYTES];
    let (mut hits, mut sum) = (0, 0_u64);
    let mut read = |value: &[u8]| {
        hits += 1;
        let words = value.as_chunks::<8>().0;
        sum = words.iter().fold(sum, |sum, word| sum ^ u64::from_le_bytes(*word));
    };
    for keys in keys.chunks(BATCH) {
        match way {
            "get" => {
                for key in keys {
                    let mut buffer = Vec::new();
                    if store.get_into(key, &mut buffer)?.is_some() {
                        read(&buffer);
                    }
                }
            }
            "get_many" => {
                for (value, _) in store.get_many(keys)?.into_iter().flatten() {
                    read(&value);
                }
            }
            "set" => {
                for key in keys {
                    let _ = store.set(key, &value, &SetOptions::set())?;
                }
            }
            _ => {
                let entries: Vec<_> =
                    keys.iter().map(|key| (*key, &value[..], SetOptions::set())).collect();
                for written in store.set_many(&entries) {
                    let _ = written?;
                }
            }
        }
    }
    std::hint::black_box(sum);
    Ok(hits)
}
