//! A process without memory for more: writes fail, and nothing hangs or ends the process.
//!
//! Each case runs in a process of its own, which is this program.

#![cfg(all(target_os = "linux", not(shuttle)))]

use std::env;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use haypile::{Error, Registry, SetOptions, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const CASE: &str = "HAYPILE_TEST_MEMORY_LIMIT_URL";

/// The memory that a process may take in addition to that at the opening of the cache.
const FREE_BYTES: u64 = 24 << 20;

const PATIENCE: Duration = Duration::from_mins(2);

/// Writes that fail once the first has, so that the errors find memory each time.
const ERRORS: u32 = 1_000;

fn limit_memory() {
    let statm = fs::read_to_string("/proc/self/statm").expect("a file of this process");
    let pages: u64 =
        statm.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    let current = pages * rustix::param::page_size() as u64 + FREE_BYTES;
    setrlimit(
        Resource::As,
        Rlimit { current: Some(current), maximum: getrlimit(Resource::As).maximum },
    )
    .expect("a limit");
}

fn set(cache: &dyn Store, number: u32, value: &[u8]) -> haypile::Result<()> {
    cache.set(&number.to_le_bytes(), value, &SetOptions::default()).map(drop)
}

fn exhaust(url: &str) {
    let cache = Registry::default().open(url).expect("a cache");
    limit_memory();
    for value in [&[1; 10][..], &[2; 200]] {
        let first = (0..u32::MAX).find(|number| set(&*cache, *number, value).is_err());
        let first = first.expect("memory ends");
        assert!(first > 10_000 || value.len() > 10, "{first}");
        for number in first..first + ERRORS {
            match set(&*cache, number, value) {
                Ok(()) | Err(Error::OutOfMemory { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(cache.get(&0_u32.to_le_bytes()).expect("an answer").is_some());
        assert!(cache.delete(&1_u32.to_le_bytes()).expect("an answer") || value.len() > 10);
    }
    cache.clear().expect("memory to clear");
    set(&*cache, 0, b"there is memory again").expect("memory");
    for number in 0..100_000 {
        set(&*cache, number, b"and for many").expect("memory");
    }
    cache.close().expect("a close");
}

#[test]
#[ignore = "the process that the other test starts"]
fn in_a_process_of_its_own() {
    if let Ok(url) = env::var(CASE) {
        exhaust(&url);
    }
}

#[test]
fn a_write_without_memory_is_an_error() {
    let urls = [
        "memory:size=4GB,policy=lirs",
        "memory:size=4GB,policy=s3fifo",
        "memory:size=4GB,policy=arc",
        "memory:size=4GB,policy=lru",
        "memory:size=4GB,policy=wtinylfu",
        "memory:size=4GB,shards=8",
        "memory:size=4GB,ttl=1h",
        "memory:size=4GB,policy=lirs,ttl=1h",
    ];
    let children = urls.map(|url| {
        Command::new(env::current_exe().expect("a path"))
            .args(["--ignored", "--exact", "in_a_process_of_its_own", "--nocapture"])
            .env(CASE, url)
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process")
    });
    let start = Instant::now();
    for (url, mut child) in urls.into_iter().zip(children) {
        let status = loop {
            if let Some(status) = child.try_wait().expect("a status") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                child.kill().expect("a process");
            }
            sleep(Duration::from_millis(10));
        };
        let mut text = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
        assert!(status.success(), "{url}: {status}: {text}");
    }
}
