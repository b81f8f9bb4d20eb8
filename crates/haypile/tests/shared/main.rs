//! The file store, as its users see it.
#![cfg(target_os = "linux")]

mod basics;
#[cfg(feature = "crash-points")]
mod child;
#[cfg(feature = "crash-points")]
mod crash;
mod damage;
mod model;
mod reboot;
mod script;
mod work;
