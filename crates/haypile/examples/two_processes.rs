//! A file that two processes share: this program starts itself a second time, and of both one computes.
//!
//! ```sh
//! cargo run --example two_processes /dev/shm/demo.haypile
//! ```

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::env;
use std::error::Error;
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use haypile::file::FileBuilder;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: two_processes FILE")?;
    let cache = FileBuilder::new(&path).size(1 << 20).open()?;
    let is_second = env::var_os("SECOND").is_some();
    let second = if is_second {
        None
    } else {
        cache.delete("answer")?;
        Some(Command::new(env::current_exe()?).arg(&path).env("SECOND", "yes").spawn()?)
    };
    let answer = cache.get_or_compute("answer", Duration::from_mins(1), || {
        // Long enough for the other process to come and wait for this one.
        thread::sleep(Duration::from_millis(500));
        println!("process {} computes", process::id());
        b"42".to_vec()
    })?;
    println!("process {} has {}", process::id(), String::from_utf8_lossy(&answer));
    if let Some(mut second) = second {
        second.wait()?;
    }
    Ok(())
}
