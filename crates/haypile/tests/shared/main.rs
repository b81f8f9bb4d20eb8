//! The file store, as its users see it.
#![cfg(target_os = "linux")]

mod basics;
mod child;
#[cfg(feature = "crash-points")]
mod crash;
mod damage;
mod model;
mod processes;
mod reboot;
mod script;
mod work;
