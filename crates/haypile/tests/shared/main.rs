//! The file store, as its users see it.
#![cfg(target_os = "linux")]

mod basics;
