//! The runner's side: a process that writes, reads or computes, and reports each operation.
//!
//! `docs/torture.md` describes the lines. Nothing is judged here but the wholeness of values.

mod client;
mod compute;
mod files;
mod orders;
mod read;
mod store;
mod subject;
mod target;
mod write;

use std::io::{self, Write};
use std::process;
use std::time::Instant;

use rustix::process::{Signal, set_parent_process_death_signal};

pub use orders::{Orders, OrdersError, Role};
pub use subject::open_subject;
pub use target::{Filled, OpenTarget, Refusal, Target};

pub(super) use client::{ALL_KEYS, GROUPS};

/// The names of the caches whose processes `haypile` runs itself in a torture: `file`, and `files`, which has known
/// defects for tests. Of a server only the case `invalidate` is tested, because the death of a client shows nothing
/// else.
pub const OURS: [&str; 4] = ["file", "files", "memcached", "redis"];

/// The names of those caches in [`OURS`] that are servers.
pub const SERVERS: [&str; 2] = ["memcached", "redis"];

/// Opens, for a process of the torture, one of the caches of this engine that [`OURS`] names.
///
/// # Errors
///
/// Why it cannot be opened.
pub fn open_ours(orders: &Orders) -> Result<Box<dyn Target>, String> {
    match orders.subject.name() {
        "file" | "memcached" | "redis" => store::open(orders),
        "files" => files::open(orders),
        name => Err(format!("unknown subject '{name}' of torture (known: file, memcached, redis)")),
    }
}

/// Runs a process of the torture in its role: opens the cache, and performs operations until standard input ends. An
/// error is printed as a line `error` on standard output.
///
/// # Errors
///
/// Standard output or input that cannot be used any more.
pub fn run(orders: &Orders, open: OpenTarget) -> io::Result<()> {
    // Where the system refuses, the end of standard input is what ends it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut out = io::stdout();
    let begun = Instant::now();
    let mut target = match open(orders) {
        Ok(target) => target,
        Err(error) => return say(&mut out, &format!("error {}\n", line(&error))),
    };
    say(&mut out, &format!("opened {}\n", nanos(begun)))?;
    match orders.role {
        Role::Writer => write::run(orders, &mut *target, &mut out),
        Role::Reader => read::run(orders, &mut *target, &mut out),
        Role::Computer => compute::run(orders, &mut *target, &mut out),
        Role::Client => client::run(orders, &mut *target, &mut out),
    }
}

/// By one call of the system: a kill leaves a line whole or not at all.
fn say(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns the line about an operation that was not done after this time.
fn refused(refusal: &Refusal, time: u64) -> String {
    match refusal {
        Refusal::Busy => format!("busy {time}"),
        Refusal::Unsupported => "unsupported".to_owned(),
        Refusal::Failed(error) => format!("failed {time} {}", line(error)),
    }
}

/// Asks whoever gives the orders for what a value is computed from. Where nobody is there any more, a value must not come of it,
/// and the process ends.
fn ask<T>(out: &mut impl Write, answer: impl Fn(&str) -> Option<T>) -> T {
    let mut told = String::new();
    let said = say(out, "computing\n");
    let heard = said.and_then(|()| io::stdin().read_line(&mut told));
    match (heard, answer(told.trim_end())) {
        (Ok(_), Some(answer)) => answer,
        _ => process::exit(0),
    }
}

/// As one line.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
