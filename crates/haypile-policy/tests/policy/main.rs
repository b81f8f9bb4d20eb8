//! Eviction policies, compared with hand-worked queues and plain models, and invariants of all of
//! them.

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
