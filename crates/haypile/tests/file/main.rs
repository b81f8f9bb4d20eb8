//! The file store, as its users see it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::match_same_arms,
    clippy::print_stdout,
    clippy::type_complexity,
    clippy::manual_is_multiple_of,
    clippy::verbose_bit_mask,
    reason = "tests with small numbers, which say on their output how far they are"
)]

mod basics;
mod builder;
mod child;
mod closed;
mod containers;
mod copied;
mod counts;
#[cfg(feature = "crash-points")]
mod crash;
mod damage;
mod failing;
mod groups;
#[cfg(feature = "crash-points")]
mod idle;
mod keys;
mod leases;
mod model;
mod pins;
mod places;
mod processes;
mod reboot;
mod refused;
mod replaced;
mod script;
mod seccomp;
mod space;
#[cfg(feature = "crash-points")]
mod stop;
mod trust;
mod volumes;
mod waits;
mod work;
