//! Passes the compiler and the commit to the program, for its results.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").and_then(|rustc| first_line(Command::new(rustc).arg("-V")));
    tell("HAYPILE_RUSTC", rustc);
    // The log of the checkout changes with every commit. Without git there is neither.
    let log = first_line(Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"]));
    if let Some(log) = log.filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
        tell("HAYPILE_COMMIT", first_line(Command::new("git").args(["rev-parse", "HEAD"])));
    }
}

fn tell(name: &str, value: Option<String>) {
    if let Some(value) = value {
        println!("cargo::rustc-env={name}={value}");
    }
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
