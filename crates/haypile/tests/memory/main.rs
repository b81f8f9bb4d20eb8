//! The memory store: its operations, its bound, its policies, and what it saves.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod bound;
mod declined;
mod leases;
mod model;
mod persist;
mod policy;
mod saving;
mod shards;
mod store;
