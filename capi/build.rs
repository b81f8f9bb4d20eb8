//! Names the shared library for the dynamic linker: programs ask for the version that they were
//! linked with, and not for any `libhaypile.so`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // The number changes when a program that was linked with an earlier version would break.
    if ["linux", "freebsd", "netbsd", "openbsd", "dragonfly"].contains(&system.as_str()) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhaypile.so.0");
    }
}
