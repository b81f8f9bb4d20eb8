//! Eviction policies against hand-worked queues and against plain models, and what has to hold of
//! every one of them.

#![expect(clippy::unwrap_used, reason = "a plain model that breaks its own rules fails its test")]

mod driver;
mod invariants;
mod plain;
mod requests;

mod every;
mod ranking;
mod spec;

mod arc;
mod clock;
mod fifo;
mod lirs;
mod s3fifo;
mod sieve;
mod slru;
mod slru4;
mod wtinylfu;
