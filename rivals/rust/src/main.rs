//! `haypile-rivals`: other caches in Rust as subjects of Haypile's laboratory. README.md says how
//! each is configured, and why that is fair.

mod files;
mod foyer;
mod leftover;
mod lmdb;
mod lru;
mod map;
mod mini;
mod moka;
mod options;
mod quick;
mod redb;
mod rival;
mod shared;
mod sqlite;
mod stretto;
mod subjects;
mod tinyufo;

use std::process::ExitCode;

fn main() -> ExitCode {
    haypile_measure::runner::main(&subjects::rivals())
}
