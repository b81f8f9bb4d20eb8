//! Passes to the program the versions of the caches it was built with: those that `Cargo.lock`
//! states, and the compiler's own for the map of the standard library.

use std::error::Error;
use std::process::Command;
use std::{env, fs};

const CACHES: [&str; 10] = [
    "TinyUFO",
    "foyer-memory",
    "heed",
    "lru",
    "mini-moka",
    "moka",
    "quick_cache",
    "redb",
    "rusqlite",
    "stretto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = fs::read_to_string("Cargo.lock")?;
    for cache in CACHES {
        let version = version(&lock, cache).ok_or(format!("Cargo.lock has no {cache}"))?;
        let name = cache.replace('-', "_").to_uppercase();
        println!("cargo::rustc-env=VERSION_{name}={version}");
    }
    let output = Command::new(env::var("RUSTC")?).arg("--version").output()?;
    let rustc = String::from_utf8(output.stdout)?;
    println!("cargo::rustc-env=VERSION_RUSTC={}", rustc.trim());
    Ok(())
}

/// The version of a package; in a lock file it stands in the line after the name.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}
