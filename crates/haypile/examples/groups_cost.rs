//! The costs of groups, leases and removals: a row for each operation, with the medians of its blocks.
//!
//! `cargo run --release -p haypile --example groups_cost [DIRECTORY [ADDRESS-OF-A-REDIS]]`
//!
//! The operations take turns within each block, so that what slows the machine down slows all of them
//! down. For comparison, tags as other libraries have them: versions that are entries of their own and
//! are read with each value (`tag versions`), and sets of keys on a Redis that this may fill
//! (`redis sets`), deleted by a script in the server.

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Instant;

use haypile::{Cache, SetOptions, Ttl};

type Outcome = Result<(), Box<dyn Error>>;

/// The entries of the group `many`; `few` has ten.
const ENTRIES: usize = 1_000_000;
const BLOCKS: usize = 100;
const CALLS: usize = 2_000;
const GROUPS: [&str; 3] = ["user:7", "page", "site"];
const VALUE: [u8; 160] = [7; 160];

/// An operation, by number of its call.
type Operation<'a> = Box<dyn FnMut(usize) -> haypile::Result<()> + 'a>;

fn main() -> Outcome {
    let directory = env::args_os().nth(1).map_or_else(env::temp_dir, PathBuf::from);
    let path = directory.join("haypile-groups-cost.haypile");
    let file = format!("file:{},size=1GiB,recreate=yes", path.display());
    for (name, url) in [("memory", "memory:size=1GiB"), ("file", &*file)] {
        measure(name, &Cache::open(url)?)?;
    }
    std::fs::remove_file(path)?;
    match env::args().nth(2) {
        Some(address) => sets(&address),
        None => Ok(()),
    }
}

fn measure(name: &str, cache: &Cache) -> Outcome {
    let keys: Vec<String> = (0..ENTRIES).map(|number| format!("an object: {number:09}")).collect();
    let plain: Vec<String> = (0..CALLS).map(|number| format!("without: {number:09}")).collect();
    let tagged: Vec<String> = (0..CALLS).map(|number| format!("tagged: {number:09}")).collect();
    let absent: Vec<String> = (0..CALLS).map(|number| format!("absent: {number:09}")).collect();
    let in_three: Vec<String> = (0..CALLS).map(|number| format!("grouped: {number:09}")).collect();
    let grouped = cache.in_groups(GROUPS)?;
    // The groups that are invalidated are not those of what is read, which would be misses.
    let many = cache.in_groups(["many"])?;
    let few = cache.in_groups(["few"])?;
    for key in &keys {
        many.set(key, VALUE)?;
    }
    for (key, in_three) in plain.iter().zip(&in_three) {
        cache.set(key, VALUE)?;
        grouped.set(in_three, VALUE)?;
    }
    for key in &plain[..10] {
        few.set(key.to_uppercase(), VALUE)?;
    }
    let tags: Vec<&[u8]> = GROUPS.iter().map(|tag| tag.as_bytes()).collect();
    for tag in &tags {
        cache.set(tag, "1")?;
    }
    for key in &tagged {
        cache.set(key, VALUE)?;
    }
    let store = cache.store();
    let mut buffer = Vec::new();
    let mut other = Vec::new();
    let lease = cache.lease("leased")?;
    let at = |number: usize| number * 769 % CALLS;
    let mut operations: Vec<(&str, Operation<'_>)> = vec![
        (
            "get",
            Box::new(|number| store.get_into(plain[at(number)].as_bytes(), &mut buffer).map(drop)),
        ),
        (
            "get, in three groups",
            Box::new(|number| {
                store.get_into(in_three[at(number)].as_bytes(), &mut other).map(drop)
            }),
        ),
        (
            "get, three tag versions",
            Box::new(|number| {
                let tagged: [&[u8]; 4] = [tagged[at(number)].as_bytes(), tags[0], tags[1], tags[2]];
                black_box(store.get_many(&tagged)?);
                Ok(())
            }),
        ),
        ("set", Box::new(|number| cache.set(&plain[at(number)], VALUE).map(drop))),
        (
            "set, in three groups",
            Box::new(|number| grouped.set(&in_three[at(number)], VALUE).map(drop)),
        ),
        (
            "lease",
            Box::new(|number| {
                cache.lease(&absent[at(number)]).map(|lease| {
                    black_box(lease);
                })
            }),
        ),
        (
            "set, lease that is revoked",
            Box::new(move |_| {
                let options = SetOptions::leased(lease).with_ttl(Ttl::Default);
                cache.write("leased", VALUE, options).map(drop)
            }),
        ),
        ("delete, absent", Box::new(|number| cache.delete(&absent[at(number)]).map(drop))),
        ("invalidate, 10 entries", Box::new(|_| cache.invalidate("few"))),
        ("invalidate, 1,000,000 entries", Box::new(|_| cache.invalidate("many"))),
        ("invalidate, tag versions", Box::new(|_| cache.incr(tags[0], 1).map(drop))),
    ];
    let mut blocks = vec![Vec::with_capacity(BLOCKS); operations.len()];
    // The first block is not counted.
    for block in 0..=BLOCKS {
        for ((_, operation), times) in operations.iter_mut().zip(&mut blocks) {
            let start = Instant::now();
            for number in 0..CALLS {
                operation(number)?;
            }
            if block > 0 {
                times.push(start.elapsed().as_nanos() as f64 / CALLS as f64);
            }
        }
    }
    for ((operation, _), times) in operations.iter().zip(blocks) {
        print(name, operation, times);
    }
    Ok(())
}

/// Measures groups that are sets of keys on a Redis.
fn sets(address: &str) -> Outcome {
    let mut stream = TcpStream::connect(address)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let script = "local n = 0 for _, key in ipairs(redis.call('smembers', KEYS[1])) do \
                  n = n + redis.call('unlink', key) end redis.call('unlink', KEYS[1]) return n";
    for (entries, name, blocks) in
        [(10, "invalidate, 10 entries", BLOCKS), (ENTRIES, "invalidate, 1,000,000 entries", 3)]
    {
        let mut times = Vec::new();
        for _ in 0..blocks {
            for from in (0..entries).step_by(10_000) {
                let upto = entries.min(from + 10_000);
                let mut commands = Vec::new();
                for number in from..upto {
                    let key = format!("an object: {number:09}");
                    command(&mut commands, &[b"SET", key.as_bytes(), &VALUE]);
                    command(&mut commands, &[b"SADD", b"many", key.as_bytes()]);
                }
                stream.write_all(&commands)?;
                for _ in 0..2 * (upto - from) {
                    answer(&mut answers)?;
                }
            }
            let mut invalidation = Vec::new();
            command(&mut invalidation, &[b"EVAL", script.as_bytes(), b"1", b"many"]);
            let start = Instant::now();
            stream.write_all(&invalidation)?;
            let removed = answer(&mut answers)?;
            times.push(start.elapsed().as_nanos() as f64);
            assert_eq!(
                removed,
                format!(":{entries}"),
                "the Redis has other keys, or too little memory"
            );
        }
        print("redis sets", name, times);
    }
    Ok(())
}

/// Appends a command in the protocol of Redis.
fn command(to: &mut Vec<u8>, words: &[&[u8]]) {
    to.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        to.extend(format!("${}\r\n", word.len()).bytes());
        to.extend_from_slice(word);
        to.extend_from_slice(b"\r\n");
    }
}

fn answer(from: &mut impl BufRead) -> Result<String, Box<dyn Error>> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    if line.starts_with('-') || line.is_empty() {
        return Err(format!("the Redis answers {line:?}").into());
    }
    Ok(line.trim_end().to_owned())
}

/// Prints the median of the blocks, their first and third quartile, and their number.
fn print(cache: &str, operation: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let quantile = |part: usize| times[(times.len() - 1) * part / 4];
    let (low, median, high) = (quantile(1), quantile(2), quantile(3));
    let blocks = times.len();
    #[expect(clippy::print_stdout, reason = "an example shows what it found")]
    {
        println!(
            "{{\"cache\": \"{cache}\", \"operation\": \"{operation}\", \"median_ns\": {median:.1}, \
             \"q1_ns\": {low:.1}, \"q3_ns\": {high:.1}, \"blocks\": {blocks}}}"
        );
    }
}
